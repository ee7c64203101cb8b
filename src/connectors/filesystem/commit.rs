//! Making prepared files visible, and discarding what was never prepared. Everything here blocks.

use std::{collections::BTreeSet, fs, io, os::unix::fs::MetadataExt, path::Path};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{
    folder::{fault, sync_dir},
    names::{Staged, owner, staging},
};
use crate::{
    connector::{Fate, SinkContext},
    model::{Fault, FaultKind, Token},
    telemetry::fail_point,
};

/// Moves every file of a token into its target, and makes that durable. Idempotent: a staged file that is gone was
/// committed, and its reader may have moved it away since.
pub(super) fn commit(token: &Token) -> Result<(), Fault> {
    let (target, pipeline, staged) = Staged::from_token(token)?;
    let staging = staging(&target, &pipeline);
    if !staging.is_dir() {
        // An unmounted disk must not look like a finished commit.
        return match staged.files.iter().find(|name| !target.join(name).exists()) {
            None => Ok(()),
            Some(name) => Err(Fault::never(
                FaultKind::Missing,
                format!(
                    "{name} is prepared but not committed, and its folder {} is not there: is the disk mounted? If \
                     what was in it is gone for good, stop the supervisor and run `queuewarden state settle \
                     {pipeline}`",
                    staging.display()
                ),
            )),
        };
    }
    fail_point!("fs.before_rename");
    for (at, name) in staged.files.iter().enumerate() {
        if at > 0 {
            fail_point!("fs.between_renames");
        }
        move_new(&staging.join(name), &target.join(name))?;
    }
    fail_point!("fs.after_renames");
    // Also if nothing was left to move: whoever moved it may not have come this far.
    sync_dir(&target)?;
    sync_dir(&staging)?;
    fail_point!("fs.after_commit");
    Ok(())
}

/// What has become of a token's files, as far as [`commit`] would find out. Touches nothing.
pub(super) fn fate(token: &Token) -> Result<Fate, Fault> {
    let (target, pipeline, staged) = Staged::from_token(token)?;
    let staging = staging(&target, &pipeline);
    let waiting = staged.files.iter().map(|name| staging.join(name)).find(|file| !is_gone(file));
    Ok(match waiting {
        Some(file) => Fate::Waiting(file.display().to_string()),
        None if staging.is_dir() || staged.files.iter().all(|name| !is_gone(&target.join(name))) => Fate::Committed,
        None => Fate::Gone,
    })
}

/// Renames a file, never over another one. Done already if it is gone.
fn move_new(from: &Path, to: &Path) -> Result<(), Fault> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_gone(from) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => finish_link(from, to),
        Err(error) if is_unsupported(&error) => link_new(from, to),
        Err(error) => Err(fault("rename", from, error)),
    }
}

/// The same in two steps, for file systems without the one. A crash in between leaves two names of one file.
pub(super) fn link_new(from: &Path, to: &Path) -> Result<(), Fault> {
    match fs::hard_link(from, to) {
        Ok(()) => {
            fail_point!("fs.between_link_and_unlink");
            remove(from)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_gone(from) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => finish_link(from, to),
        Err(error) => Err(fault("link", from, error)),
    }
}

/// There is a file of that name in the target already: the same one, or another.
fn finish_link(from: &Path, to: &Path) -> Result<(), Fault> {
    let from_meta = match fs::symlink_metadata(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|error| fault("look at", from, error))?,
    };
    let to_meta = fs::symlink_metadata(to).map_err(|error| fault("look at", to, error))?;
    if (from_meta.dev(), from_meta.ino()) == (to_meta.dev(), to_meta.ino()) {
        return remove(from);
    }
    Err(Fault::never(
        FaultKind::Sink,
        format!(
            "{} is to become {}, but there is another file of that name, which is never replaced: move it away",
            from.display(),
            to.display()
        ),
    ))
}

fn remove(path: &Path) -> Result<(), Fault> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(fault("remove", path, error)),
        _ => Ok(()),
    }
}

fn is_gone(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn is_unsupported(error: &io::Error) -> bool {
    // The kernel, or the file system (NFS among them), does not know the flag.
    use rustix::io::Errno;
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Removes what earlier generations of this pipeline staged and no token names. What it cannot be sure of stays, with
/// a warning: another supervisor's files, and those of later generations (an old one that wakes up must not remove
/// what its successor stages).
pub(super) fn discard(target: &Path, tokens: &[Token], context: &SinkContext) -> Result<(), Fault> {
    let staging = staging(target, &context.pipeline);
    let mut named = BTreeSet::new();
    for token in tokens {
        named.extend(Staged::from_token(token)?.2.files);
    }
    let read = fs::read_dir(&staging).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    for entry in read.map_err(|error| fault("read", &staging, error))? {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| owner(name).filter(|_| !named.contains(name)));
        match owner {
            Some(owner) if owner.incarnation == context.incarnation && owner.generation < context.generation => {
                tracing::info!("discarding staged output that no checkpoint names: {}", entry.path().display());
                remove(&entry.path())?;
            }
            _ => {
                tracing::warn!("left alone, not staged by an earlier run of this pipeline: {}", entry.path().display())
            }
        }
    }
    Ok(())
}
