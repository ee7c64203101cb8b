//! What outlives the process: one store per supervisor, in one folder.
//!
//! A [`StateDir`] is the folder: it holds the lock, the database and the incarnation. A [`Store`] is a handle to
//! the one thread that reads and writes the database. An answer of the store means that what it answers for is on
//! the disk: applied, flushed and synced. Everything that waits is applied together and shares one sync.
//!
//! A pipeline's state is a *record* (source, generation, epoch, positions, tokens) and a chain of *deltas*: the
//! message ids each checkpoint added and removed. A *snapshot* takes the place of the whole chain. Primary keys lie in
//! *pages*, in the order in which they came, and leave them in that order.
//!
//! A [`Stopped`] is the same folder while no supervisor runs: what a person looks at, forgets and renames.

mod dir;
mod disk;
mod holder;
mod key_log;
#[cfg(test)]
mod key_tests;
mod layout;
mod stopped;
#[cfg(test)]
mod stopped_tests;
mod store;
#[cfg(test)]
mod tests;
mod worker;

pub use dir::{OpenError, StateDir};
pub use holder::{Holder, HolderError};
pub use stopped::{Entry, Forgotten, Stopped, StoppedError, Stored};
pub use store::{Checkpoint, Deltas, KeyChanges, Opened, Recorded, Store, StoreError};
