//! What formats whose bodies are files have in common: limits on what a body may become, and the way from the arrays
//! that a library reads to the columns of the schema.
//!
//! A body is some kilobytes that anyone may have made. What it says of itself (lengths, counts, sizes once
//! decompressed) is checked before anything is allocated for it: an allocation that fails ends the process, which no
//! error can be made of.

mod conform;
mod files;
mod names;
#[cfg(test)]
pub(super) mod testing;
mod values;

pub(super) use conform::{Target, lacking, mismatch};
pub(super) use files::FileDecoder;
pub(super) use values::{Failure, decimal, integer, time_of_day, timestamp};

/// Bytes that a body may become, decompressed or as values.
pub(super) const MOST_BYTES: usize = 64 << 20;

/// Rows, or elements of lists and maps, that a body may hold in one column.
pub(super) const MOST_VALUES: usize = 4 << 20;

/// Levels of nesting in a file's own schema; deeper ones would end in a stack overflow.
pub(super) const MOST_LEVELS: usize = 64;

/// Rows read at once, unless values are so large that fewer must do.
const BATCH_ROWS: usize = 1024;

/// What is left of [`MOST_BYTES`] for one body.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Budget {
    /// All of it.
    pub(super) const fn new() -> Self {
        Self(MOST_BYTES)
    }

    /// Bytes left.
    pub(super) const fn left(&self) -> usize {
        self.0
    }

    /// Takes bytes, if there are as many.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), TooLarge> {
        self.0 = self.0.checked_sub(bytes).ok_or(TooLarge)?;
        Ok(())
    }
}

/// That a body becomes too large, which is the fault of no single value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl From<TooLarge> for String {
    fn from(_: TooLarge) -> Self {
        too_large()
    }
}

impl From<TooLarge> for Failure {
    fn from(_: TooLarge) -> Self {
        Self::of_all(too_large())
    }
}

/// Why a body is refused that becomes too large.
pub(super) fn too_large() -> String {
    format!("the body holds more than {} MiB once it is decoded", MOST_BYTES >> 20)
}

/// Why a body is refused that holds too many rows or elements.
pub(super) fn too_many() -> String {
    format!("the body holds more than {MOST_VALUES} rows or elements of one column")
}

/// How many rows to read at once where one value may be as large as this.
pub(super) fn batch_rows(largest_value: usize) -> usize {
    (MOST_BYTES / largest_value.max(1)).clamp(1, BATCH_ROWS)
}
