//! The folder: its lock, its database, its incarnation.
//!
//! ```text
//! DIR/lock           held for life; pid and HTTP address of the holder
//! DIR/incarnation    written last when the store is created: a database that has lost its own copy is refused
//! DIR/store/         the database
//! ```

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write},
    os::unix::fs::FileExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::mpsc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::sync::watch;

use super::{
    disk::{Change, Disk, DiskError, SledDisk},
    holder::Holder,
    layout::{FORMAT, META_KEY, Meta},
    store::{Command, Store},
    worker::{Worker, words},
};

/// An opened state directory. Holds the lock until it is dropped, which also waits for the store's thread; so drop
/// it where blocking is allowed.
#[derive(Debug)]
pub struct StateDir {
    dir: PathBuf,
    incarnation: String,
    store: Store,
    thread: Option<JoinHandle<()>>,
    /// Dropped after the thread has ended.
    lock: File,
}

/// Why a state directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another supervisor has it.
    #[error("the state directory {} is in use by {}", dir.display(), holder(*pid, address.as_deref()))]
    Locked {
        /// The directory.
        dir: PathBuf,
        /// The process that has it, if it has written its id yet.
        pid: Option<u32>,
        /// Its HTTP address, if it has one yet.
        address: Option<String>,
    },
    /// There is no state there.
    #[error("there is no state in {}: no supervisor has used that directory", dir.display())]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// What is there is damaged, foreign or of another version. Nothing has been deleted.
    #[error(
        "the state in {} cannot be read ({reason}). Without it this would start over: rows that were written but whose \
         messages are not yet deleted would be written again, staged output that is not yet committed would stay \
         hidden, and queues read by position would start where their options say. To accept that, move the directory \
         aside and start again", dir.display()
    )]
    Unreadable {
        /// The directory.
        dir: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The system refused.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn holder(pid: Option<u32>, address: Option<&str>) -> String {
    let pid = pid.map_or("another process".to_owned(), |pid| format!("process {pid}"));
    address.map_or(pid.clone(), |address| format!("{pid}, which serves http://{address}"))
}

/// How often the lock is tried, and the pause: somebody may only be looking whether it is held.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

impl StateDir {
    /// Takes the lock, creates what is missing, and starts the store's thread. Blocks.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let dir = std::path::absolute(dir).map_err(io("find", dir))?;
        create_durably(&dir)?;
        let lock = take_lock(&dir)?;
        write_holder(&lock, None).map_err(io("write", &dir.join("lock")))?;
        let (disk, incarnation) = open_store(&dir)?;

        let (commands, received) = mpsc::channel();
        let (failed, failure) = watch::channel(None);
        let worker = Worker::new(Box::new(disk), failed);
        let thread = thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || worker.run(&received))
            .map_err(io("start the store's thread for", &dir))?;
        Ok(Self { dir, incarnation, store: Store { commands, failure }, thread: Some(thread), lock })
    }

    /// The absolute path of the directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The random text written when the store was created: 16 lower-case hex digits.
    pub fn incarnation(&self) -> &str {
        &self.incarnation
    }

    /// A handle to the store.
    pub fn store(&self) -> Store {
        self.store.clone()
    }

    /// Tells whoever finds the directory locked where this supervisor serves HTTP, such as `127.0.0.1:9870`.
    ///
    /// # Errors
    /// The lock file cannot be written.
    pub fn set_address(&self, address: &str) -> io::Result<()> {
        write_holder(&self.lock, Some(address))
    }
}

impl Drop for StateDir {
    fn drop(&mut self) {
        // If the thread has ended already, nobody takes the message.
        drop(self.store.commands.send(Command::Close));
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the store's thread panicked: {}", words(panic.as_ref()));
        }
    }
}

/// Takes the lock of a directory that some supervisor has used, and opens its database. Creates nothing.
pub(super) fn open_stopped(dir: &Path) -> Result<(PathBuf, SledDisk, File), OpenError> {
    let dir = std::path::absolute(dir).map_err(io("find", dir))?;
    if !dir.join("incarnation").exists() && !dir.join("store/db").exists() {
        return Err(OpenError::Missing { dir });
    }
    let lock = take_lock(&dir)?;
    // What it says is of a supervisor that has ended, and nobody should send a signal to that process, or to this one.
    lock.set_len(0).map_err(io("write", &dir.join("lock")))?;
    let (disk, _) = open_store(&dir)?;
    Ok((dir, disk, lock))
}

/// Opens or creates the database of a locked directory, durable in its folder.
fn open_store(dir: &Path) -> Result<(SledDisk, String), OpenError> {
    let path = dir.join("store");
    create_durably(&path)?;
    let mut disk = open_disk(dir, &path)?;
    let incarnation = identify(dir, &mut disk)?;
    sync_files(&path)?;
    sync_dir(&path.join("blobs"))?;
    sync_dir(&path)?;
    sync_dir(dir)?;
    Ok((disk, incarnation))
}

fn io<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> OpenError + 'a {
    move |source| OpenError::Io { what, path: path.to_owned(), source }
}

fn take_lock(dir: &Path) -> Result<File, OpenError> {
    let path = dir.join("lock");
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(false).open(&path).map_err(io("open", &path))?;
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(io("lock", &path)(error)),
        }
    }
    let (pid, address) = Holder::read(&path).map_or((None, None), |holder| (Some(holder.pid), holder.address));
    Err(OpenError::Locked { dir: dir.to_owned(), pid, address })
}

fn write_holder(lock: &File, address: Option<&str>) -> io::Result<()> {
    let mut text = serde_json::to_vec(&Holder { pid: std::process::id(), address: address.map(str::to_owned) })?;
    text.push(b'\n');
    lock.set_len(0)?;
    lock.write_all_at(&text, 0)
}

/// How long the database may still be held although our own lock is not: sled's threads let go of its file only after
/// they have finished what they were given, and nothing waits for them when a database is closed.
const LET_GO: Duration = Duration::from_secs(1);

fn open_disk(dir: &Path, path: &Path) -> Result<SledDisk, OpenError> {
    let unreadable = |reason: String| OpenError::Unreadable { dir: dir.to_owned(), reason };
    let is_held = |error: &io::Error| error.to_string().contains("could not acquire lock");
    let begun = Instant::now();
    let opened = loop {
        match catch_unwind(AssertUnwindSafe(|| SledDisk::open(path))) {
            Ok(Err(sled::Error::Io(error))) if is_held(&error) && begun.elapsed() < LET_GO => {
                thread::sleep(Duration::from_millis(10));
            }
            opened => break opened,
        }
    };
    match opened {
        Ok(Ok(disk)) => Ok(disk),
        // Somebody without our lock, or whose lock file was removed.
        Ok(Err(sled::Error::Io(error))) if is_held(&error) => {
            Err(OpenError::Locked { dir: dir.to_owned(), pid: None, address: None })
        }
        Ok(Err(sled::Error::Io(error))) if is_of_the_system(&error) => Err(io("open the database in", path)(error)),
        Ok(Err(error)) => Err(unreadable(error.to_string())),
        Err(panic) => Err(unreadable(format!("the database panicked: {}", words(panic.as_ref())))),
    }
}

/// Whether an error says something of the system rather than of what the files hold.
fn is_of_the_system(error: &io::Error) -> bool {
    error.raw_os_error().is_some()
}

/// Finds the incarnation of a store, or makes one if the store is new.
fn identify(dir: &Path, disk: &mut SledDisk) -> Result<String, OpenError> {
    let unreadable = |reason: String| OpenError::Unreadable { dir: dir.to_owned(), reason };
    let marker = dir.join("incarnation");
    let expected = match fs::read(&marker) {
        Ok(bytes) => Some(parse_incarnation(&bytes).ok_or_else(|| {
            unreadable("the file `incarnation` in it does not hold 16 lower-case hexadecimal digits".to_owned())
        })?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(io("read", &marker)(error)),
    };
    let found = catch_unwind(AssertUnwindSafe(|| read_meta(disk)))
        .unwrap_or_else(|panic| Err(words(panic.as_ref()).to_owned().into()))
        .map_err(|error| unreadable(error.to_string()))?;
    match (found, expected) {
        (Found::Meta(meta), _) if meta.format != FORMAT => {
            Err(unreadable(format!("its format is {}, this program reads {FORMAT}", meta.format)))
        }
        (Found::Meta(meta), Some(expected)) if expected != meta.incarnation => {
            Err(unreadable(format!("the database is of incarnation {}, the folder of {expected}", meta.incarnation)))
        }
        (Found::Meta(meta), Some(_)) => Ok(meta.incarnation),
        // The process that created the store ended in between.
        (Found::Meta(meta), None) => write_marker(&marker, &meta.incarnation).map(|()| meta.incarnation),
        (Found::Nothing, Some(_)) => Err(unreadable("the database has lost its contents".to_owned())),
        (Found::Foreign, _) => Err(unreadable("the database is not one of this program".to_owned())),
        (Found::Nothing, None) => {
            let incarnation = format!("{:016x}", fastrand::u64(..));
            write_meta(disk, &incarnation).map_err(|error| unreadable(error.to_string()))?;
            write_marker(&marker, &incarnation)?;
            Ok(incarnation)
        }
    }
}

fn parse_incarnation(marker: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(marker).ok()?.trim();
    let valid = text.len() == 16 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    valid.then(|| text.to_owned())
}

/// What a database begins with.
enum Found {
    Meta(Meta),
    Nothing,
    Foreign,
}

fn read_meta(disk: &SledDisk) -> Result<Found, DiskError> {
    let mut found = Found::Nothing;
    disk.scan(META_KEY, &mut |_, value| {
        found = Found::Meta(serde_json::from_slice(value)?);
        Ok(())
    })?;
    if matches!(found, Found::Nothing) {
        disk.scan(b"", &mut |_, _| {
            found = Found::Foreign;
            Ok(())
        })?;
    }
    Ok(found)
}

fn write_meta(disk: &mut SledDisk, incarnation: &str) -> Result<(), DiskError> {
    let value = serde_json::to_vec(&Meta { format: FORMAT, incarnation: incarnation.to_owned() })?;
    disk.apply(vec![Change { key: META_KEY.to_vec(), value: Some(value) }])?;
    disk.flush()?;
    disk.sync()
}

/// Whole or not at all; the caller syncs the folder.
fn write_marker(marker: &Path, incarnation: &str) -> Result<(), OpenError> {
    let new = marker.with_extension("new");
    let write = || {
        let mut file = File::create(&new)?;
        writeln!(file, "{incarnation}")?;
        file.sync_all()?;
        fs::rename(&new, marker)
    };
    write().map_err(io("write", marker))
}

/// Creates a folder and those above it, each durable in the one above it.
fn create_durably(dir: &Path) -> Result<(), OpenError> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !dir.exists()).collect();
    fs::create_dir_all(dir).map_err(io("create", dir))?;
    for parent in missing.into_iter().filter_map(Path::parent) {
        sync_dir(parent)?;
    }
    Ok(())
}

fn sync_dir(dir: &Path) -> Result<(), OpenError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(io("sync", dir))
}

/// sled's own small files are not all synced by it.
fn sync_files(dir: &Path) -> Result<(), OpenError> {
    for entry in fs::read_dir(dir).map_err(io("read", dir))? {
        let path = entry.map_err(io("read", dir))?.path();
        if path.is_file() {
            File::open(&path).and_then(|file| file.sync_all()).map_err(io("sync", &path))?;
        }
    }
    Ok(())
}
