//! What is said to the person at the terminal.

use std::io::{self, Write};

use super::{Exit, failed};

/// stderr. Where nobody reads it any more a write is no error, and no panic as from `eprintln!`: the exit code still
/// tells, and a supervisor goes on.
pub(super) struct Told;

impl Write for Told {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _nobody_reads = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a line to stderr.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _never_fails = writeln!($crate::cli::told::Told, $($text)*);
    }};
}

/// Writes a text to stderr, as it is.
pub(super) fn show(text: &str) {
    let _never_fails = Told.write_all(text.as_bytes());
}

/// Writes to stdout what the command is there for: where it does not arrive, the command has failed.
pub(super) fn hand_over(text: &str) -> Exit {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Exit::Done,
        // Who has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(error) => failed("stdout cannot be written to", &error),
    }
}

/// Writes a line to stdout. A reader that has gone is no reason to stop.
pub(super) fn say(text: &str) {
    let _closed = writeln!(io::stdout().lock(), "{text}");
}
