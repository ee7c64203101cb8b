//! The services and places Queuewarden knows, one folder each.

pub mod blackhole;
pub mod filesystem;
pub mod print;
