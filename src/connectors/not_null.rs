//! NOT NULL columns of a sink whose source may have nulls there: a row with one is refused, its neighbours are written.
//!
//! Flink leaves such a column to `table.exec.sink.not-null-enforcer` too, and fails at the first null by default; here
//! it is a case for `on_error`.

use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use async_trait::async_trait;

use crate::{
    connector::{Sink, SinkContext},
    definition::PipelineDefinition,
    model::{Epoch, Fault, FaultKind, RowReject, Schema, SinkIdentity, Token, may_overflow},
};

use super::plan::MakeSink;

/// The columns of a sink that must hold no null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotNull {
    /// Positions and names.
    columns: Vec<(usize, String)>,
}

impl NotNull {
    /// Those columns of a definition's sink that are NOT NULL where what comes may be null or become so. The decoder has
    /// looked at the others. A query says NOT NULL where Flink does, which is not always true: a DECIMAL that overflows
    /// is null.
    pub fn of(definition: &PipelineDefinition) -> Self {
        Self::between(definition.selected(), &definition.sink.schema, definition.query.is_none())
    }

    /// Matched by position. `sure`: nothing is null where `from` says NOT NULL.
    fn between(from: &Schema, to: &Schema, sure: bool) -> Self {
        let pairs = from.columns.iter().zip(&to.columns).enumerate();
        let unsure = pairs.filter(|(_, (from, to))| {
            !to.ty.nullable && (!sure || from.ty.nullable || may_overflow(&from.ty.logical, &to.ty.logical))
        });
        Self { columns: unsure.map(|(at, (_, to))| (at, to.name.clone())).collect() }
    }

    /// The rows with a null where there must be none, in order.
    pub fn refused(&self, rows: &RecordBatch) -> Vec<RowReject> {
        let columns = self.columns.iter().filter_map(|(at, name)| Some((rows.columns().get(*at)?, name)));
        let with_nulls: Vec<_> = columns.filter(|(column, _)| column.null_count() > 0).collect();
        if with_nulls.is_empty() {
            return Vec::new();
        }
        let reject = |row| {
            let (_, name) = with_nulls.iter().find(|(column, _)| column.is_null(row))?;
            Some(RowReject { row, reason: format!("column {name}: null where the sink's schema says NOT NULL") })
        };
        (0..rows.num_rows()).filter_map(reject).collect()
    }

    /// The same sink, which never gets such a row.
    pub(super) fn around(self, make: MakeSink) -> MakeSink {
        if self.columns.is_empty() {
            return make;
        }
        std::sync::Arc::new(move |context: SinkContext| {
            Ok(Box::new(Guarded { inner: make(context)?, guard: self.clone() }) as Box<dyn Sink>)
        })
    }
}

/// A sink behind a [`NotNull`].
struct Guarded {
    inner: Box<dyn Sink>,
    guard: NotNull,
}

#[async_trait]
impl Sink for Guarded {
    fn identity(&self) -> SinkIdentity {
        self.inner.identity()
    }

    async fn recover(&mut self, tokens: &[Token]) -> Result<(), Fault> {
        self.inner.recover(tokens).await
    }

    async fn write(&mut self, rows: &RecordBatch) -> Result<Vec<RowReject>, Fault> {
        let mut refused = self.guard.refused(rows);
        if refused.is_empty() {
            return self.inner.write(rows).await;
        }
        let mut keep = vec![true; rows.num_rows()];
        for reject in &refused {
            keep.get_mut(reject.row).into_iter().for_each(|kept| *kept = false);
        }
        let kept: Vec<usize> = keep.iter().enumerate().filter_map(|(row, kept)| kept.then_some(row)).collect();
        if kept.is_empty() {
            return Ok(refused);
        }
        let bug = |error| Fault::never(FaultKind::Bug, "rows cannot be taken out of a batch").because(error);
        let rows = filter_record_batch(rows, &BooleanArray::from(keep)).map_err(bug)?;
        for mut reject in self.inner.write(&rows).await? {
            // A row there is not is told to the caller as what it is.
            reject.row = kept.get(reject.row).copied().unwrap_or(usize::MAX);
            refused.push(reject);
        }
        refused.sort_by_key(|reject| reject.row);
        Ok(refused)
    }

    async fn prepare(&mut self, epoch: Epoch) -> Result<Option<Token>, Fault> {
        self.inner.prepare(epoch).await
    }

    async fn commit(&mut self, token: &Token) -> Result<(), Fault> {
        self.inner.commit(token).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use arrow_array::{ArrayRef, Int64Array, cast::AsArray, types::Int64Type};

    use super::*;
    use crate::model::{Column, ColumnType, Generation, PipelineName};

    type Written = Arc<Mutex<Vec<i64>>>;

    /// Keeps the second column; refuses its zeros.
    struct Keeps(Written);

    #[async_trait]
    impl Sink for Keeps {
        fn identity(&self) -> SinkIdentity {
            SinkIdentity { connector: "keeps".to_owned(), target: String::new() }
        }

        async fn recover(&mut self, _: &[Token]) -> Result<(), Fault> {
            Ok(())
        }

        async fn write(&mut self, rows: &RecordBatch) -> Result<Vec<RowReject>, Fault> {
            let values = rows.column(1).as_primitive::<Int64Type>().values();
            self.0.lock().unwrap().extend(values.iter().filter(|value| **value != 0));
            let zeros = values.iter().enumerate().filter(|(_, value)| **value == 0);
            Ok(zeros.map(|(row, _)| RowReject { row, reason: "zero".to_owned() }).collect())
        }

        async fn prepare(&mut self, _: Epoch) -> Result<Option<Token>, Fault> {
            Ok(None)
        }

        async fn commit(&mut self, _: &Token) -> Result<(), Fault> {
            Ok(())
        }
    }

    fn schema(columns: &[(&str, &str)]) -> Schema {
        let column = |(name, ty): &(&str, &str)| Column {
            name: (*name).to_owned(),
            ty: ColumnType::parse(ty).unwrap(),
            metadata: None,
            is_virtual: false,
        };
        Schema { columns: columns.iter().map(column).collect() }
    }

    fn guarded(source: &[(&str, &str)], sink: &[(&str, &str)]) -> (Box<dyn Sink>, Written) {
        let written = Written::default();
        let kept = Arc::clone(&written);
        let make: MakeSink = Arc::new(move |_| Ok(Box::new(Keeps(Arc::clone(&kept)))));
        let context = SinkContext {
            pipeline: PipelineName::new("a").unwrap(),
            incarnation: String::new(),
            generation: Generation(1),
        };
        let made = NotNull::between(&schema(source), &schema(sink), true).around(make)(context);
        (made.unwrap(), written)
    }

    fn rows(first: Vec<Option<i64>>, second: Vec<i64>) -> RecordBatch {
        let (a, b) = (Arc::new(Int64Array::from(first)) as ArrayRef, Arc::new(Int64Array::from(second)) as ArrayRef);
        RecordBatch::try_from_iter([("a", a), ("b", b)]).unwrap()
    }

    #[tokio::test]
    async fn a_null_in_a_not_null_column_refuses_its_row_and_no_other() {
        let (mut sink, written) =
            guarded(&[("a", "BIGINT"), ("b", "BIGINT")], &[("x", "BIGINT NOT NULL"), ("y", "BIGINT")]);
        let batch = rows(vec![Some(1), None, Some(3), None, Some(5)], vec![10, 20, 0, 0, 50]);
        let refused = sink.write(&batch).await.unwrap();
        let reason = "column x: null where the sink's schema says NOT NULL";
        let expected = [(1, reason), (2, "zero"), (3, reason)];
        let refused: Vec<_> = refused.iter().map(|reject| (reject.row, reject.reason.as_str())).collect();
        assert_eq!(refused, expected, "by the rows that were given, whoever refuses them");
        assert_eq!(*written.lock().unwrap(), [10, 50]);
        assert_eq!(sink.write(&rows(vec![None], vec![1])).await.unwrap().len(), 1);
        assert_eq!(*written.lock().unwrap(), [10, 50]);
    }

    #[test]
    fn only_what_the_source_does_not_promise_is_looked_at() {
        let between = |from, to, sure| NotNull::between(&schema(&[("a", from)]), &schema(&[("a", to)]), sure);
        let guard = |from, to| between(from, to, true).columns.len();
        assert_eq!(guard("INT", "INT NOT NULL"), 1);
        assert_eq!(guard("INT NOT NULL", "INT NOT NULL"), 0);
        assert_eq!(guard("INT", "INT"), 0);
        assert_eq!(guard("DECIMAL(10) NOT NULL", "DECIMAL(5) NOT NULL"), 1, "it may overflow");
        assert_eq!(between("INT NOT NULL", "INT NOT NULL", false).columns.len(), 1);
    }
}
