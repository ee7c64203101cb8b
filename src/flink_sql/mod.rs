//! Flink SQL in and out: a script becomes definitions, one for each INSERT, and a definition becomes a script.

mod alone;
mod export;
mod import;
mod places;
mod rename;
mod repair;
mod reserved;
mod script;
mod select;
mod settings;
mod shown;
mod sql;
mod statements;
mod table;
mod write;
mod yaml;

pub use export::export;
pub use import::{Import, Imported, import};
