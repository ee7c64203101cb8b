//! Who holds a state directory, for whoever wants to talk to its supervisor.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// The process that holds a state directory: what its lock file says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Where it serves HTTP, such as `127.0.0.1:9870`; `None` while it starts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub address: Option<String>,
}

/// Why it cannot be said who holds a state directory.
#[derive(Debug, thiserror::Error)]
pub enum HolderError {
    /// No such folder.
    #[error("there is no state directory {}", .0.display())]
    NoDirectory(PathBuf),
    /// Held, but not by a process that can be looked at from here.
    #[error("the state directory {} is in use {}", .0.display(), out_of_sight(.1.as_ref()))]
    OutOfSight(PathBuf, Option<Holder>),
    /// The system refused.
    #[error("cannot read {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
}

fn out_of_sight(named: Option<&Holder>) -> String {
    match named {
        Some(holder) => format!(
            "by {holder}, which cannot be seen from here: it may run in another container, on another host, or as \
             another user. Run the command there"
        ),
        None => {
            "by no supervisor that has said what it is: one may be starting, or a `state` command be at work".into()
        }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {}", self.pid)?;
        self.address.iter().try_for_each(|address| write!(f, ", which serves http://{address}"))
    }
}

/// A holder may be about to write what it is.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

impl Holder {
    /// The process that holds a directory now; `None` if none does. Blocks, a fifth of a second at most.
    ///
    /// A lock file outlives its holder, and its number may be another process's by now, or in another container. So
    /// the process named there counts only if it has that very file open.
    ///
    /// # Errors
    /// See [`HolderError`].
    pub fn of(dir: &Path) -> Result<Option<Self>, HolderError> {
        if !dir.is_dir() {
            return Err(HolderError::NoDirectory(dir.to_owned()));
        }
        let path = dir.join("lock");
        let io = |error| HolderError::Io(path.clone(), error);
        let mut named = None;
        for _ in 0..LOOKS {
            let Some(lock) = held(&path).map_err(io)? else { return Ok(None) };
            named = Self::read(&path);
            if let Some(holder) = named.take_if(|holder| has_open(holder.pid, &lock)) {
                return Ok(Some(holder));
            }
            thread::sleep(PAUSE);
        }
        Err(HolderError::OutOfSight(dir.to_owned(), named))
    }

    /// What a lock file says, held or not.
    pub(super) fn read(lock: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(lock).ok()?).ok()
    }
}

/// The lock file, if somebody holds it. It is not left open here: this process, too, may have the number in it.
fn held(path: &Path) -> io::Result<Option<fs::Metadata>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Shared, and for a moment only; whoever takes the lock tries more than once.
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => file.metadata().map(Some),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn has_open(process: u32, file: &fs::Metadata) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    open.flatten().filter_map(|entry| fs::metadata(entry.path()).ok()).any(|open| is_same(&open, file))
}

fn is_same(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StateDir;

    #[test]
    fn only_a_held_lock_names_its_holder() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("state");
        assert!(matches!(Holder::of(&path), Err(HolderError::NoDirectory(_))));
        let state = StateDir::open(&path).expect("opens");
        let (pid, address) = (std::process::id(), Some("127.0.0.1:1".to_owned()));
        assert_eq!(Holder::of(&path).expect("readable"), Some(Holder { pid, address: None }));
        state.set_address("127.0.0.1:1").expect("written");
        assert_eq!(Holder::of(&path).expect("readable"), Some(Holder { pid, address }));
        drop(state);
        assert!(path.join("lock").exists());
        assert_eq!(Holder::of(&path).expect("readable"), None);
    }

    #[test]
    fn a_process_that_is_not_the_holder_is_never_taken_for_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("lock");
        // Number 1 is somebody: in a container's lock file it is the supervisor, outside it is init.
        fs::write(&path, "{\"pid\":1,\"address\":\"127.0.0.1:1\"}").expect("written");
        assert_eq!(Holder::of(dir.path()).expect("readable"), None, "nobody holds it");
        let held = File::open(&path).expect("opens");
        held.lock().expect("locked");
        assert!(matches!(Holder::of(dir.path()), Err(HolderError::OutOfSight(_, Some(Holder { pid: 1, .. })))));
    }
}
