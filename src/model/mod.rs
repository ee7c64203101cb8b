//! Plain data every layer shares: types, rows, batches, positions, faults, ids.
//!
//! No input or output happens here and nothing here knows an actor. Arrow arrays and `tokio::sync` are the
//! only outside types.

mod batch;
mod columns;
mod credit;
mod dead_letter;
mod fault;
mod ids;
mod inserts;
mod message;
pub mod number;
mod spelling;
mod token;
mod type_display;
mod type_lexer;
mod type_parser;
mod types;

pub use batch::{Batch, BatchMessage, Disposition, Origin, Reject, RowKey, RowReject};
pub use columns::{ColumnBuilder, ColumnError, RowsBuilder, Scalar};
pub use credit::{Credit, CreditLimits, Credits};
pub use dead_letter::{DEAD_LETTER_COLUMNS, DeadLetter, Original, Stage, dead_letter_schema};
pub use fault::{Fault, FaultKind, Mend};
pub use ids::{Epoch, Fingerprint, FingerprintMap, Generation, LaneId, PipelineName, Slot, SourceIdentity, TakeAsIs};
pub use inserts::{inserts, may_overflow};
pub use message::{Body, Message, MetaValue, Receipt};
pub use spelling::nearest;
pub use token::{SinkIdentity, Token};
pub use types::{Column, ColumnType, Field, LogicalType, Schema, TypeError};
