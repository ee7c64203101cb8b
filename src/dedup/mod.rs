//! What the dedup-keeper remembers, as plain data: the ids of messages on their way or disposed of, and the primary
//! keys of rows seen shortly before.

mod ids;
mod key_clock;
mod key_columns;
mod key_window;
mod keys;

pub use ids::{Ids, Seen};
pub use key_clock::KeyClock;
pub use key_columns::KeyColumns;
pub use key_window::KeyWindow;
pub use keys::Keys;
