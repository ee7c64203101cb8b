//! Queuewarden's binary: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    queuewarden::cli::main().into()
}
