//! queuewarden
fn main() {}
