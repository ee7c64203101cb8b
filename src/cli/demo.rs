//! `queuewarden demo`
use super::Exit;
/// x
#[derive(clap::Args)]
pub struct Args {}
/// x
pub fn run(_: Args) -> Exit {
    Exit::Done
}
