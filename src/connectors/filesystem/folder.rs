//! The target folder: creating it, making it durable, and keeping other writers out. Everything here blocks.

use std::{
    collections::BTreeMap,
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::names::{HIDDEN, staging};
use crate::{
    connector::SinkContext,
    model::{Fault, FaultKind, Generation, Mend, PipelineName},
};

/// An error of the system as a fault. A full disk can be waited for; a folder that may not be written to, or is not
/// one, takes a person; anything else may look different to a new generation.
pub(super) fn fault(what: &str, path: &Path, error: io::Error) -> Fault {
    use io::ErrorKind as Kind;
    let (kind, mend, hint) = match error.kind() {
        Kind::StorageFull | Kind::QuotaExceeded | Kind::Interrupted => (FaultKind::Sink, Mend::Retry, ""),
        Kind::PermissionDenied => {
            (FaultKind::Sink, Mend::Never, " (the user this process runs as must be able to write there)")
        }
        Kind::NotFound => (FaultKind::Missing, Mend::Never, " (was it removed, or its disk unmounted?)"),
        Kind::NotADirectory | Kind::ReadOnlyFilesystem | Kind::InvalidFilename | Kind::CrossesDevices => {
            (FaultKind::Sink, Mend::Never, "")
        }
        _ => (FaultKind::Sink, Mend::Restart, ""),
    };
    Fault::new(kind, mend, format!("cannot {what} {}{hint}", path.display())).because(error)
}

/// Makes the entries of a folder durable. Never tried again: after a failed sync nothing is known of the disk.
pub(super) fn sync_dir(dir: &Path) -> Result<(), Fault> {
    let dir_file = File::open(dir).map_err(|error| fault("open", dir, error))?;
    sync(&dir_file, dir)
}

/// Makes a file durable; see [`sync_dir`].
pub(super) fn sync(file: &File, path: &Path) -> Result<(), Fault> {
    file.sync_all()
        .map_err(|error| Fault::restart(FaultKind::Sink, format!("cannot sync {}", path.display())).because(error))
}

/// Creates the target and the staging folder, durable up to the top of their disk.
pub(super) fn prepare_folders(target: &Path, pipeline: &PipelineName) -> Result<(), Fault> {
    let staging = staging(target, pipeline);
    fs::create_dir_all(&staging).map_err(|error| fault("create", &staging, error))?;
    let device = |path: &Path| fs::metadata(path).map(|meta| meta.dev()).map_err(|error| fault("look at", path, error));
    let disk = device(target)?;
    if device(&staging)? != disk {
        return Err(Fault::never(
            FaultKind::Sink,
            format!("{} is on another disk than {}: files cannot be moved whole", staging.display(), target.display()),
        ));
    }
    for dir in staging.ancestors() {
        if device(dir)? != disk {
            break;
        }
        match File::open(dir) {
            Ok(file) => sync(&file, dir)?,
            // Not ours to read, so not ours to have created.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !dir.starts_with(target) => {}
            Err(error) => return Err(fault("open", dir, error)),
        }
    }
    Ok(())
}

/// Keeps other processes, and other pipelines of this one, from writing to a target. Let go when dropped.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: Arc<File>,
}

/// Who holds which target in this process. A lock belongs to the process and not to a generation: one that hangs may
/// hold its sink for as long as it likes, and its successor must be able to write.
static HELD: Mutex<BTreeMap<PathBuf, Held>> = Mutex::new(BTreeMap::new());

struct Held {
    pipeline: PipelineName,
    generation: Generation,
    file: Weak<File>,
}

impl FolderLock {
    /// Takes the lock of a target whose folders are there.
    pub(super) fn take(target: &Path, context: &SinkContext) -> Result<Self, Fault> {
        let target = fs::canonicalize(target).map_err(|error| fault("find", target, error))?;
        let SinkContext { pipeline, generation, .. } = context.clone();
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, held| held.file.strong_count() > 0);
        let file = match held.get(&target).and_then(|held| Some((held, held.file.upgrade()?))) {
            Some((held, _)) if held.pipeline != pipeline => {
                return Err(Fault::never(
                    FaultKind::Definition,
                    format!("pipeline {} already writes to {}", held.pipeline, target.display()),
                ));
            }
            Some((held, _)) if held.generation == generation => {
                return Err(Fault::never(
                    FaultKind::Definition,
                    format!("two sinks of pipeline {pipeline} write to {}", target.display()),
                ));
            }
            Some((_, file)) => file,
            None => Arc::new(lock(&target.join(HIDDEN).join("lock"), &pipeline)?),
        };
        held.insert(target, Held { pipeline, generation, file: Arc::downgrade(&file) });
        Ok(Self { _file: file })
    }
}

fn lock(path: &Path, pipeline: &PipelineName) -> Result<File, Fault> {
    let mut options = File::options();
    let opened = options.read(true).write(true).create(true).truncate(false).open(path);
    let file = opened.map_err(|error| fault("open", path, error))?;
    match file.try_lock() {
        Ok(()) => {
            let text = format!("process {}, pipeline {pipeline}\n", std::process::id());
            file.set_len(0)
                .and_then(|()| file.write_all_at(text.as_bytes(), 0))
                .map_err(|e| fault("write", path, e))?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let holder = fs::read_to_string(path).unwrap_or_default();
            let holder = if holder.trim().is_empty() { "another process" } else { holder.trim() };
            Err(Fault::restart(FaultKind::Sink, format!("{} is held by {holder}", path.display())))
        }
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
            tracing::warn!(
                "no locks on the disk of {}: nothing keeps another process from writing there",
                path.display()
            );
            Ok(file)
        }
        Err(TryLockError::Error(error)) => Err(fault("lock", path, error)),
    }
}
