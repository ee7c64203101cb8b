//! `blackhole`: counts rows and drops them, for measuring everything before the sink. At least once.

use arrow_array::RecordBatch;
use async_trait::async_trait;

use crate::{
    connector::{RowReject, Sink},
    definition::{ConnectorTables, FormatUse, OptionTable, RoleTables, no_check},
    model::{Epoch, Fault, SinkIdentity, Token},
};

/// The options: none.
pub static TABLE: OptionTable = OptionTable { name: "blackhole", options: &[] };

/// The connector's line in the table.
pub static TABLES: ConnectorTables = ConnectorTables {
    name: "blackhole",
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

/// Drops rows.
#[derive(Debug, Default)]
pub struct BlackholeSink {
    rows: u64,
}

impl BlackholeSink {
    /// Nothing dropped yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rows dropped so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

#[async_trait]
impl Sink for BlackholeSink {
    fn identity(&self) -> SinkIdentity {
        SinkIdentity { connector: TABLE.name.to_owned(), target: String::new() }
    }

    async fn recover(&mut self, _: &[Token]) -> Result<(), Fault> {
        Ok(())
    }

    async fn write(&mut self, rows: &RecordBatch) -> Result<Vec<RowReject>, Fault> {
        self.rows += rows.num_rows() as u64;
        Ok(Vec::new())
    }

    async fn prepare(&mut self, _: Epoch) -> Result<Option<Token>, Fault> {
        Ok(None)
    }

    async fn commit(&mut self, _: &Token) -> Result<(), Fault> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Int32Array;

    use super::*;

    #[tokio::test]
    async fn rows_are_counted_and_need_no_commit() {
        let column = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let rows = RecordBatch::try_from_iter([("n", column as arrow_array::ArrayRef)]).unwrap();
        let mut sink = BlackholeSink::new();
        assert!(sink.write(&rows).await.unwrap().is_empty());
        sink.write(&rows).await.unwrap();
        assert_eq!(sink.rows(), 6);
        assert_eq!(sink.prepare(Epoch(1)).await.unwrap(), None);
    }
}
