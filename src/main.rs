//! Queuewarden's binary: everything is in the library.

use std::process::ExitCode;

/// Receipts of a checkpoint live long among bodies that do not: glibc's allocator fragments, and spends an eighth of
/// the time on it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    queuewarden::cli::main().into()
}
