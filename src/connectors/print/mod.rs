//! `print`: rows go to standard output as Flink's print connector shows them, `+I[a, b, null]`. At least once.

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
    definition::{ConnectorTables, FormatUse, OptionTable, RoleTables, no_check},
    model::{Epoch, Fault, FaultKind, SinkIdentity, Token},
};

/// The options: none yet.
pub static TABLE: OptionTable = OptionTable { name: "print", options: &[] };

/// The connector's line in the table.
pub static TABLES: ConnectorTables = ConnectorTables {
    name: "print",
    source: None,
    sink: Some(RoleTables { options: &TABLE, columns: None, format: FormatUse::Never, metadata: &[], check: no_check }),
};

/// Prints rows, a line each; a batch is written in one piece, so lines of several pipelines do not mix.
pub struct PrintSink {
    /// Away during a write; a write that was cut off does not bring it back.
    out: Option<Box<dyn Write + Send>>,
}

impl PrintSink {
    /// Prints to standard output.
    pub fn new() -> Self {
        Self::to(Box::new(io::stdout()))
    }

    fn to(out: Box<dyn Write + Send>) -> Self {
        Self { out: Some(out) }
    }
}

impl Default for PrintSink {
    fn default() -> Self {
        Self::new()
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
        SinkIdentity { connector: TABLE.name.to_owned(), target: "stdout".to_owned() }
    }

    async fn recover(&mut self, _: &[Token]) -> Result<(), Fault> {
        Ok(())
    }

    async fn write(&mut self, rows: &RecordBatch) -> Result<Vec<RowReject>, Fault> {
        let mut lines = String::new();
        for row in 0..rows.num_rows() {
            text::line(rows, row, &mut lines)
                .map_err(|ty| Fault::never(FaultKind::Bug, format!("print cannot show values of type {ty}")))?;
        }
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        let cut_off = || Fault::restart(FaultKind::Sink, "an earlier write to standard output was cut off");
        let mut out = self.out.take().ok_or_else(cut_off)?;
        // Locked for the whole piece; a reader that is slow stops this thread only.
        let written = spawn_blocking(move || {
            let result = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
            (out, result)
        });
        let bug = |error| Fault::restart(FaultKind::Bug, "writing to standard output ended").because(error);
        let (out, result) = written.await.map_err(bug)?;
        self.out = Some(out);
        result.map(|()| Vec::new()).map_err(fault)
    }

    async fn prepare(&mut self, _: Epoch) -> Result<Option<Token>, Fault> {
        Ok(None)
    }

    async fn commit(&mut self, _: &Token) -> Result<(), Fault> {
        Ok(())
    }
}

fn fault(error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::BrokenPipe => {
            Fault::never(FaultKind::Sink, "nobody reads standard output any more").because(error)
        }
        _ => Fault::restart(FaultKind::Sink, "cannot write to standard output").because(error),
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
        let mut sink = PrintSink::to(Box::new(out.clone()));
        assert_eq!(sink.write(&rows()).await.unwrap(), []);
        assert_eq!(String::from_utf8(out.0.lock().unwrap().clone()).unwrap(), "+I[x, y, 1]\n+I[null, 2]\n");
        assert_eq!(sink.prepare(Epoch(1)).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_reader_that_has_gone_is_told_as_such_and_for_good() {
        let fault = PrintSink::to(Box::new(Gone)).write(&rows()).await.unwrap_err();
        assert_eq!(fault.mend, Mend::Never);
        assert!(fault.to_string().contains("nobody reads"), "{fault}");
    }
}
