//! The database behind the store. sled is pinned to an old release whose successor has another disk format, so
//! what the store asks of it is kept small enough to be answered by something else.

use std::{
    error::Error,
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Why the database cannot do what it was asked to.
pub(super) type DiskError = Box<dyn Error + Send + Sync>;

/// One key's new value, or its removal.
pub(super) struct Change {
    pub(super) key: Vec<u8>,
    pub(super) value: Option<Vec<u8>>,
}

/// Takes a key and its value.
pub(super) type Each<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), DiskError> + 'a;

/// An ordered map on a disk. Only the store's thread holds one.
pub(super) trait Disk: Send {
    /// Hands every entry whose key begins with `prefix` to `each`, in the order of keys.
    fn scan(&self, prefix: &[u8], each: &mut Each<'_>) -> Result<(), DiskError>;
    /// Makes all changes or, should the process or the power end, none. Of two changes of one key the later counts.
    fn apply(&mut self, changes: Vec<Change>) -> Result<(), DiskError>;
    /// Hands everything applied to the operating system.
    fn flush(&mut self) -> Result<(), DiskError>;
    /// Returns once everything flushed is on the disk, where the next process will look for it.
    fn sync(&mut self) -> Result<(), DiskError>;
}

/// A sled database.
pub(super) struct SledDisk {
    db: sled::Db,
    /// The database file once more. sled's own flush is `sync_file_range` on Linux, which is no barrier against a
    /// power cut. Opened before the first write, so that a failed write-back of the system is reported to it.
    file: File,
    /// Where that file is to be found, its device and its inode.
    place: (PathBuf, u64, u64),
}

/// sled keeps pages in memory up to this many bytes. The ids themselves live in the dedup-keepers; what is read
/// again here is only the record and the upper pages of the tree.
const CACHE_BYTES: u64 = 32 << 20;

impl SledDisk {
    /// Opens or creates the database in the folder `dir`. sled may panic on a broken file.
    pub(super) fn open(dir: &Path) -> sled::Result<Self> {
        let db = sled::Config::new()
            .path(dir)
            .cache_capacity(CACHE_BYTES)
            .flush_every_ms(None)
            .use_compression(false)
            .open()?;
        let path = dir.join("db");
        let file = File::options().read(true).write(true).open(&path)?;
        let meta = file.metadata()?;
        Ok(Self { db, file, place: (path, meta.dev(), meta.ino()) })
    }

    /// A file that was removed takes writes and syncs as if nothing had happened, and is gone with the process. One
    /// that was moved is not where the next process looks, and does not keep a second one out.
    fn still_there(&self) -> Result<(), DiskError> {
        let (path, device, inode) = &self.place;
        let why = match fs::metadata(path) {
            Ok(meta) if (meta.dev(), meta.ino()) == (*device, *inode) => return Ok(()),
            Ok(_) => "is another file now".to_owned(),
            Err(error) => format!("is not there any more ({error})"),
        };
        Err(format!(
            "{} {why}: the state directory was removed, moved or replaced while it was in use, and what is recorded \
             now would be lost",
            path.display()
        )
        .into())
    }
}

impl Disk for SledDisk {
    fn scan(&self, prefix: &[u8], each: &mut Each<'_>) -> Result<(), DiskError> {
        for entry in self.db.scan_prefix(prefix) {
            let (key, value) = entry?;
            each(&key, &value)?;
        }
        Ok(())
    }

    fn apply(&mut self, changes: Vec<Change>) -> Result<(), DiskError> {
        let mut batch = sled::Batch::default();
        for Change { key, value } in changes {
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        Ok(self.db.apply_batch(batch)?)
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        self.db.flush()?;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        self.file.sync_data()?;
        self.still_there()
    }
}
