//! `print`: rows go to standard output, or standard error, as Flink's print connector shows them: `+I[a, b, null]`, with
//! `print-identifier` in front of it as `orders> +I[a, b, null]`. At least once.

mod text;

use std::{
    fmt,
    io::{self, Write},
};

use arrow_array::RecordBatch;
use async_trait::async_trait;
use tokio::task::spawn_blocking;

use crate::{
    connector::{RowReject, Sink},
    definition::{ConnectorTables, FormatUse, OptionKind, OptionSpec, OptionTable, Options, RoleTables, no_check},
    model::{Epoch, Fault, FaultKind, SinkIdentity, Token},
};

/// What stands before each row.
pub static IDENTIFIER: OptionSpec = OptionSpec::new(
    "print-identifier",
    OptionKind::Text,
    "What each row begins with, such as the pipeline's name: `orders> +I[1, a]`.",
)
.example("orders");
/// Which of the two streams.
pub static STANDARD_ERROR: OptionSpec = OptionSpec::new(
    "standard-error",
    OptionKind::Boolean,
    "Whether rows go to standard error, where the log goes too, instead of standard output.",
)
.default("false");

/// The options.
pub static TABLE: OptionTable = OptionTable { name: "print", options: &[&IDENTIFIER, &STANDARD_ERROR] };

/// The connector's line in the table.
pub static TABLES: ConnectorTables = ConnectorTables {
    name: "print",
    source: None,
    sink: Some(RoleTables {
        options: &TABLE,
        columns: None,
        format: FormatUse::Never,
        metadata: &[],
        key_window: None,
        check: no_check,
    }),
};

/// One of the process's own two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    const fn in_words(self) -> &'static str {
        match self {
            Self::Stdout => "standard output",
            Self::Stderr => "standard error",
        }
    }
}

/// Prints rows, a line each; a batch is written in one piece, so lines of several pipelines do not mix.
pub struct PrintSink {
    stream: Stream,
    /// What each line begins with.
    prefix: String,
    /// Away during a write; a write that was cut off does not bring it back.
    out: Option<Box<dyn Write + Send>>,
}

impl PrintSink {
    /// Prints as the options of [`TABLE`] say.
    pub fn new(options: &Options) -> Self {
        let prefix = options.opt_text(&IDENTIFIER).map(|identifier| format!("{identifier}> ")).unwrap_or_default();
        if options.opt_boolean(&STANDARD_ERROR) == Some(true) {
            Self::to(Stream::Stderr, prefix, Box::new(io::stderr()))
        } else {
            Self::to(Stream::Stdout, prefix, Box::new(io::stdout()))
        }
    }

    fn to(stream: Stream, prefix: String, out: Box<dyn Write + Send>) -> Self {
        Self { stream, prefix, out: Some(out) }
    }
}

impl fmt::Debug for PrintSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrintSink").finish_non_exhaustive()
    }
}

#[async_trait]
impl Sink for PrintSink {
    fn identity(&self) -> SinkIdentity {
        let target = match self.stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        SinkIdentity { connector: TABLE.name.to_owned(), target: target.to_owned() }
    }

    async fn recover(&mut self, _: &[Token]) -> Result<(), Fault> {
        Ok(())
    }

    async fn write(&mut self, rows: &RecordBatch) -> Result<Vec<RowReject>, Fault> {
        let mut lines = String::new();
        for row in 0..rows.num_rows() {
            lines.push_str(&self.prefix);
            text::line(rows, row, &mut lines)
                .map_err(|ty| Fault::never(FaultKind::Bug, format!("print cannot show values of type {ty}")))?;
        }
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        let stream = self.stream.in_words();
        let cut_off = || Fault::restart(FaultKind::Sink, format!("an earlier write to {stream} was cut off"));
        let mut out = self.out.take().ok_or_else(cut_off)?;
        // Locked for the whole piece; a reader that is slow stops this thread only.
        let written = spawn_blocking(move || {
            let result = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
            (out, result)
        });
        let bug = |error| Fault::restart(FaultKind::Bug, format!("writing to {stream} ended")).because(error);
        let (out, result) = written.await.map_err(bug)?;
        self.out = Some(out);
        result.map(|()| Vec::new()).map_err(|error| fault(stream, error))
    }

    async fn prepare(&mut self, _: Epoch) -> Result<Option<Token>, Fault> {
        Ok(None)
    }

    async fn commit(&mut self, _: &Token) -> Result<(), Fault> {
        Ok(())
    }
}

fn fault(stream: &str, error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::BrokenPipe => {
            Fault::never(FaultKind::Sink, format!("nobody reads {stream} any more")).because(error)
        }
        _ => Fault::restart(FaultKind::Sink, format!("cannot write to {stream}")).because(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;
    use crate::model::Mend;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Gone;

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn rows() -> RecordBatch {
        let a = Arc::new(StringArray::from(vec![Some("x, y"), None])) as ArrayRef;
        let b = Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
        RecordBatch::try_from_iter([("a", a), ("b", b)]).unwrap()
    }

    #[tokio::test]
    async fn a_row_is_a_line_and_needs_no_commit() {
        let out = Shared::default();
        let mut sink = PrintSink::to(Stream::Stdout, String::new(), Box::new(out.clone()));
        assert_eq!(sink.write(&rows()).await.unwrap(), []);
        assert_eq!(String::from_utf8(out.0.lock().unwrap().clone()).unwrap(), "+I[x, y, 1]\n+I[null, 2]\n");
        assert_eq!(sink.prepare(Epoch(1)).await.unwrap(), None);
    }

    fn with(given: &[(&'static OptionSpec, &str)]) -> PrintSink {
        let mut options = Options::default();
        for (spec, text) in given {
            options.insert(spec, spec.kind.parse(text).unwrap());
        }
        PrintSink::new(&options)
    }

    #[tokio::test]
    async fn each_row_begins_with_the_identifier_as_flink_writes_it() {
        let out = Shared::default();
        let mut sink = with(&[(&IDENTIFIER, "orders")]);
        sink.out = Some(Box::new(out.clone()));
        sink.write(&rows()).await.unwrap();
        let printed = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        assert_eq!(printed, "orders> +I[x, y, 1]\norders> +I[null, 2]\n");
    }

    #[test]
    fn the_stream_is_part_of_who_the_sink_is() {
        assert_eq!(with(&[(&STANDARD_ERROR, "true")]).identity().target, "stderr");
        assert_eq!(with(&[(&STANDARD_ERROR, "false")]).identity().target, "stdout");
        assert_eq!(with(&[]).identity().target, "stdout");
    }

    #[tokio::test]
    async fn a_reader_that_has_gone_is_told_as_such_and_for_good() {
        let fault = PrintSink::to(Stream::Stdout, String::new(), Box::new(Gone)).write(&rows()).await.unwrap_err();
        assert_eq!(fault.mend, Mend::Never);
        assert!(fault.to_string().contains("nobody reads"), "{fault}");
    }
}
