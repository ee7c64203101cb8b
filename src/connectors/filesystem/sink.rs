//! The sink itself: encodes on the pipeline's thread, does everything else where blocking is allowed.
//!
//! Of a format of lines every byte is in the file or in the buffer, and rows whose bytes cannot be written are given
//! back. A format of files holds rows that have no bytes yet, and cannot give one back: what it has taken is ours, and
//! a disk that is full is told of before the next rows are taken.

use std::{
    collections::VecDeque,
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use arrow_array::RecordBatch;
use async_trait::async_trait;
use tokio::task::spawn_blocking;

use super::{
    commit::{self, commit, discard},
    folder::{FolderLock, fault, prepare_folders, sync, sync_dir},
    names::{Staged, open_name, part_name, staging},
};
use crate::{
    connector::{Fate, RowReject, Sink, SinkContext},
    formats::{FileEncoder, Writer as Format},
    model::{Epoch, Fault, FaultKind, Mend, SinkIdentity, Token},
    telemetry::{fail_point, work_as_here},
};

/// Rows are handed to the system in pieces of at least this many bytes.
const PIECE_BYTES: usize = 128 << 10;

/// Writes rows to files, in two phases.
pub struct FilesystemSink {
    target: PathBuf,
    context: SinkContext,
    format: Format,
    file_size: u64,
    writer: State,
}

/// Where the writer is.
enum State {
    /// `recover` has not been called, or failed.
    New,
    Ready(Box<Writer>),
    /// With a blocking call; if it is still there at the next call, that call was cut off, or failed for good.
    Lent,
}

/// The files of the open epoch.
struct Writer {
    target: PathBuf,
    staging: PathBuf,
    context: SinkContext,
    extension: &'static str,
    /// Encoded, but not yet in the file.
    buffer: Vec<u8>,
    file: Option<OpenFile>,
    /// At which size the file is closed, in bytes.
    file_size: u64,
    /// The file is whole once the buffer is in it, whatever its size.
    complete: bool,
    /// Closed at that size, and durable but for their names, which come with the epoch; in order.
    full: VecDeque<OpenFile>,
    /// The names they have got. Something is in here between calls only after a `prepare` that is to be retried.
    named: Vec<String>,
    /// Files begun so far.
    begun: u64,
    _lock: FolderLock,
}

struct OpenFile {
    file: File,
    path: PathBuf,
    /// Bytes that are in it for good. There may be more after a failed write; they are written over or cut off.
    length: u64,
}

impl OpenFile {
    /// Cuts off what a failed write left, and makes the rest durable.
    fn settle(&self) -> Result<(), Fault> {
        self.file.set_len(self.length).map_err(|error| fault("cut", &self.path, error))?;
        sync(&self.file, &self.path)
    }
}

impl FilesystemSink {
    /// A sink that writes to the folder `path`, which must be absolute, files of about `file_size` bytes. Nothing is
    /// touched before [`Sink::recover`].
    pub fn new(path: PathBuf, format: Format, file_size: u64, context: SinkContext) -> Self {
        Self { target: path, context, format, file_size, writer: State::New }
    }

    fn lend(&mut self) -> Result<Box<Writer>, Fault> {
        match std::mem::replace(&mut self.writer, State::Lent) {
            State::Ready(writer) => Ok(writer),
            State::Lent => {
                Err(Fault::restart(FaultKind::Sink, "an earlier call of the filesystem sink failed or was cut off"))
            }
            State::New => {
                self.writer = State::New;
                Err(Fault::restart(FaultKind::Bug, "a filesystem sink was used before it had recovered"))
            }
        }
    }

    async fn write_lines(&mut self, mut writer: Box<Writer>, rows: &RecordBatch) -> Result<Vec<RowReject>, Fault> {
        let Format::Lines(encoder) = &mut self.format else { return Err(other_format()) };
        let before = writer.buffer.len();
        let rejects = encoder.encode(rows, &mut writer.buffer);
        if writer.buffer.len() >= PIECE_BYTES || writer.is_full() {
            let (returned, result) = move_on(writer).await?;
            writer = returned;
            if let Err(fault) = result {
                // The caller has these rows still and may bring them again.
                writer.buffer.truncate(before);
                return Err(self.failed(writer, fault));
            }
        }
        self.writer = State::Ready(writer);
        Ok(rejects)
    }

    async fn write_to_file(&mut self, mut writer: Box<Writer>, rows: &RecordBatch) -> Result<Vec<RowReject>, Fault> {
        if writer.is_due() {
            // What an earlier call could not write.
            let (returned, result) = move_on(writer).await?;
            writer = returned;
            if let Err(fault) = result {
                return Err(self.failed(writer, fault));
            }
        }
        let Format::Files(encoder) = &mut self.format else { return Err(other_format()) };
        let rejects = encoder.rows(rows, &mut writer.buffer).map_err(encoding)?;
        if writer.size().saturating_add(encoder.pending()) >= writer.file_size {
            writer.end(encoder.as_mut())?;
        }
        if writer.is_due() {
            let (returned, result) = move_on(writer).await?;
            writer = returned;
            if let Err(fault) = result
                && fault.mend != Mend::Retry
            {
                return Err(self.failed(writer, fault));
            }
        }
        self.writer = State::Ready(writer);
        Ok(rejects)
    }

    /// Only after what a retry can mend is the writer used again: what a failed sync was to make durable is not
    /// known to be in the file any more, and a second sync would not say so.
    fn failed(&mut self, writer: Box<Writer>, fault: Fault) -> Fault {
        if fault.mend == Mend::Retry {
            self.writer = State::Ready(writer);
        }
        fault
    }
}

fn other_format() -> Fault {
    Fault::restart(FaultKind::Bug, "a filesystem sink changed its format")
}

fn encoding(reason: String) -> Fault {
    Fault::restart(FaultKind::Bug, format!("a file cannot be encoded: {reason}"))
}

/// Moves the buffer into the file, and closes the file if it is as large as one may become.
async fn move_on(mut writer: Box<Writer>) -> Result<(Box<Writer>, Result<(), Fault>), Fault> {
    blocking(move || {
        let result = writer.drain().and_then(|()| writer.roll());
        Ok((writer, result))
    })
    .await
}

/// Recovers tokens of a filesystem sink that the definition no longer has: commits them where they belong, and
/// discards what else this pipeline staged there.
///
/// # Errors
/// As [`Sink::recover`]; never because of the definition there is now.
pub async fn recover_at(sink: &SinkIdentity, tokens: &[Token], context: &SinkContext) -> Result<(), Fault> {
    let (target, tokens, context) = (PathBuf::from(&sink.target), of(sink, tokens)?, context.clone());
    blocking(move || {
        tokens.iter().try_for_each(commit)?;
        if staging(&target, &context.pipeline).is_dir() { discard(&target, &tokens, &context) } else { Ok(()) }
    })
    .await
}

/// What has become of the output that a token names. Blocks, and touches nothing.
///
/// # Errors
/// The token is not one of this sink.
pub fn fate(token: &Token) -> Result<Fate, Fault> {
    commit::fate(token)
}

/// Refuses tokens of another sink.
fn of(sink: &SinkIdentity, tokens: &[Token]) -> Result<Vec<Token>, Fault> {
    match tokens.iter().find(|token| token.sink != *sink) {
        Some(token) => Err(Fault::restart(FaultKind::Bug, format!("a token of {} was given to {sink}", token.sink))),
        None => Ok(tokens.to_vec()),
    }
}

/// Runs what blocks where that is allowed.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Fault> + Send + 'static) -> Result<T, Fault> {
    spawn_blocking(work_as_here(work)).await.unwrap_or_else(|error| {
        Err(Fault::restart(FaultKind::Bug, "the filesystem sink's blocking work ended").because(error))
    })
}

#[async_trait]
impl Sink for FilesystemSink {
    fn identity(&self) -> SinkIdentity {
        SinkIdentity { connector: super::TABLE.name.to_owned(), target: self.target.display().to_string() }
    }

    async fn recover(&mut self, tokens: &[Token]) -> Result<(), Fault> {
        if !self.target.is_absolute() {
            let message = format!("the path of a filesystem sink must be absolute: {}", self.target.display());
            return Err(Fault::never(FaultKind::Definition, message));
        }
        if !matches!(self.writer, State::New) {
            return Err(Fault::restart(FaultKind::Bug, "a filesystem sink recovers once"));
        }
        let (target, context) = (self.target.clone(), self.context.clone());
        let (tokens, extension) = (of(&self.identity(), tokens)?, self.format.extension());
        let file_size = self.file_size;
        let writer = blocking(move || {
            // Before the folders are made: their absence would say that a disk is missing.
            tokens.iter().try_for_each(commit)?;
            prepare_folders(&target, &context.pipeline)?;
            let lock = FolderLock::take(&target, &context)?;
            discard(&target, &tokens, &context)?;
            Ok(Box::new(Writer::new(target, context, extension, file_size, lock)))
        });
        self.writer = State::Ready(writer.await?);
        Ok(())
    }

    async fn write(&mut self, rows: &RecordBatch) -> Result<Vec<RowReject>, Fault> {
        let writer = self.lend()?;
        match self.format {
            Format::Lines(_) => self.write_lines(writer, rows).await,
            Format::Files(_) => self.write_to_file(writer, rows).await,
        }
    }

    async fn prepare(&mut self, epoch: Epoch) -> Result<Option<Token>, Fault> {
        let mut writer = self.lend()?;
        if let Format::Files(encoder) = &mut self.format {
            writer.end(encoder.as_mut())?;
        }
        let (writer, prepared) = blocking(move || {
            let prepared = writer.prepare(epoch);
            Ok((writer, prepared))
        })
        .await?;
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(fault) => return Err(self.failed(writer, fault)),
        };
        self.writer = State::Ready(writer);
        if prepared.is_empty() {
            return Ok(None);
        }
        let staged = Staged { pipeline: self.context.pipeline.to_string(), files: prepared };
        staged.to_token(self.identity()).map(Some)
    }

    async fn commit(&mut self, token: &Token) -> Result<(), Fault> {
        let tokens = of(&self.identity(), std::slice::from_ref(token))?;
        blocking(move || tokens.iter().try_for_each(commit)).await
    }
}

/// Blocks, all of it.
impl Writer {
    fn new(target: PathBuf, context: SinkContext, extension: &'static str, file_size: u64, lock: FolderLock) -> Self {
        let staging = staging(&target, &context.pipeline);
        let buffer = Vec::with_capacity(2 * PIECE_BYTES);
        let (full, named) = (VecDeque::new(), Vec::new());
        Self {
            target,
            staging,
            context,
            extension,
            buffer,
            file: None,
            file_size,
            complete: false,
            full,
            named,
            begun: 0,
            _lock: lock,
        }
    }

    /// Bytes of the open file, with what is waiting for it.
    fn size(&self) -> u64 {
        self.file.as_ref().map_or(0, |open| open.length) + self.buffer.len() as u64
    }

    /// Whether the file, with what is waiting for it, is as large as one may become.
    fn is_full(&self) -> bool {
        !self.buffer.is_empty() && self.size() >= self.file_size
    }

    /// Of a format of files: whether there is something to be done where blocking is allowed.
    fn is_due(&self) -> bool {
        self.complete || self.buffer.len() >= PIECE_BYTES
    }

    /// Ends the file of a format of files, if there is one that has not ended.
    fn end(&mut self, encoder: &mut dyn FileEncoder) -> Result<(), Fault> {
        encoder.finish(&mut self.buffer).map_err(encoding)?;
        self.complete = self.size() > 0;
        Ok(())
    }

    /// Closes the file if it is as large as one may become. It is synced now, so that a checkpoint does not have to
    /// wait for all of them at once.
    fn roll(&mut self) -> Result<(), Fault> {
        let complete = self.complete;
        let Some(open) = self.file.take_if(|open| complete || open.length >= self.file_size) else { return Ok(()) };
        match open.settle() {
            // What is in it is written, so nobody may bring it again: the next batch closes the file.
            Err(fault) if fault.mend == Mend::Retry => {
                self.file = Some(open);
                Ok(())
            }
            settled => {
                self.full.push_back(open);
                self.complete = false;
                settled
            }
        }
    }

    /// Moves the buffer into the file. After a failure that a retry can mend nothing is lost and nothing is twice:
    /// the next attempt writes at the same place.
    fn drain(&mut self) -> Result<(), Fault> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut open = match self.file.take() {
            Some(open) => open,
            None => self.begin()?,
        };
        let written = open.file.write_all_at(&self.buffer, open.length);
        let result = written.map_err(|error| fault("write to", &open.path, error));
        if result.is_ok() {
            open.length += self.buffer.len() as u64;
            self.buffer.clear();
        }
        self.file = Some(open);
        result
    }

    fn begin(&mut self) -> Result<OpenFile, Fault> {
        loop {
            self.begun += 1;
            let path = self.staging.join(open_name(&self.context, self.begun, self.extension));
            match File::options().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(OpenFile { file, path, length: 0 }),
                // Left by a later generation, of a state that has been set back since.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(fault("create", &path, error)),
            }
        }
    }

    /// Makes the files of the epoch durable under the names they keep, which are answered; none if there were no
    /// rows. After a failure that a retry can mend the next attempt goes on where this one ended.
    fn prepare(&mut self, epoch: Epoch) -> Result<Vec<String>, Fault> {
        fail_point!("fs.before_prepare");
        self.drain()?;
        if let Some(open) = &self.file {
            open.settle()?;
        }
        self.full.extend(self.file.take());
        self.complete = false;
        while let Some(open) = self.full.front() {
            let name = self.free_name(epoch)?;
            let path = self.staging.join(&name);
            std::fs::rename(&open.path, &path).map_err(|error| fault("rename", &open.path, error))?;
            self.named.push(name);
            self.full.pop_front();
            if !self.full.is_empty() {
                fail_point!("fs.between_prepares");
            }
        }
        if self.named.is_empty() {
            return Ok(Vec::new());
        }
        sync_dir(&self.staging)?;
        fail_point!("fs.after_prepare");
        Ok(std::mem::take(&mut self.named))
    }

    /// A name that is neither staged nor in the target: pipelines that wrote here under another name, and a state
    /// that was set back, have counted their epochs too.
    fn free_name(&self, epoch: Epoch) -> Result<String, Fault> {
        let is_free = |path: &Path| match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(fault("look at", path, error)),
            Ok(_) => Ok(false),
        };
        let mut part = self.named.len() as u64;
        loop {
            let name = part_name(&self.context, epoch, part, self.extension);
            if is_free(&self.staging.join(&name))? && is_free(&self.target.join(&name))? {
                return Ok(name);
            }
            part += 1;
        }
    }
}

#[cfg(test)]
mod tests;
