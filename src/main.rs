//! Queuewarden's binary: everything is in the library.

use std::process::ExitCode;

/// Receipts of a checkpoint live long among bodies that do not: glibc's allocator fragments, and spends an eighth of
/// the time on it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Each connection to RocketMQ has a table of 65,536 slots, nearly all of them empty. Huge pages, which the allocator
    // asks for, would make all of it real memory: 20 MB for every queue. A kernel without them needs nothing.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    queuewarden::cli::main().into()
}
