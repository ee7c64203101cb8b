//! The table of connectors, and what a checked definition becomes. A connector is one folder and one line here.

pub mod blackhole;
pub mod cmq;
pub mod datagen;
pub mod filesystem;
mod http_client;
mod load;
pub mod mns;
mod not_null;
mod outstanding;
mod plan;
pub mod print;
pub mod replay;
mod resolve;
pub mod rocketmq;
mod shape;

pub use load::{Loaded, load};
pub use not_null::NotNull;
pub use plan::{Claim, DeadLetterPlan, MakeSink, Plan, PrimaryKey, Transport};
pub use resolve::{encoder, fate, recover_elsewhere, resolve};
pub use shape::{RowShape, Shaped};

use crate::{definition::Registry, formats};

/// Every connector and format there is, in the order in which they are documented.
pub const REGISTRY: Registry = Registry {
    connectors: &[
        &mns::TABLES,
        &rocketmq::TABLES_4,
        &rocketmq::TABLES_5,
        &rocketmq::mq::TABLES,
        &cmq::TABLES,
        &datagen::TABLES,
        &filesystem::TABLES,
        &print::TABLES,
        &blackhole::TABLES,
    ],
    formats: formats::TABLES,
};
