//! COALESCE: the first value that is not null.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_schema::{DataType, Schema};
use arrow_select::zip::zip;
use datafusion_common::Result as Answer;
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::PhysicalExpr;

/// The first value of a row that is not null. Each expression is evaluated once, and only over the rows for which the
/// ones before it are null: none of them fails for a row that does not need it.
#[derive(Debug, Clone)]
pub(super) struct FirstOf {
    of: Vec<Arc<dyn PhysicalExpr>>,
    returns: DataType,
}

impl FirstOf {
    /// `of`: all of the type that is returned.
    pub(super) fn expr(of: Vec<Arc<dyn PhysicalExpr>>, returns: DataType) -> Arc<dyn PhysicalExpr> {
        Arc::new(Self { of, returns })
    }
}

impl fmt::Display for FirstOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("COALESCE(")?;
        for (index, one) in self.of.iter().enumerate() {
            write!(f, "{}{one}", if index == 0 { "" } else { ", " })?;
        }
        f.write_str(")")
    }
}

impl PartialEq for FirstOf {
    fn eq(&self, other: &Self) -> bool {
        self.of == other.of
    }
}

impl Eq for FirstOf {}

impl Hash for FirstOf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.hash(state);
    }
}

impl PhysicalExpr for FirstOf {
    fn data_type(&self, _: &Schema) -> Answer<DataType> {
        Ok(self.returns.clone())
    }

    fn nullable(&self, _: &Schema) -> Answer<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Answer<ColumnarValue> {
        let rows = batch.num_rows();
        let mut found = arrow_array::new_null_array(&self.returns, rows);
        for (index, one) in self.of.iter().enumerate() {
            if index == 0 {
                found = one.evaluate(batch)?.into_array(rows)?;
                continue;
            }
            if found.null_count() == 0 {
                break;
            }
            let open = BooleanArray::new((0..rows).map(|row| found.is_null(row)).collect(), None);
            let more = one.evaluate_selection(batch, &open)?.into_array(rows)?;
            found = zip(&open, &more, &found)?;
        }
        Ok(ColumnarValue::Array(found))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.of.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, of: Vec<Arc<dyn PhysicalExpr>>) -> Answer<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Self { of, returns: self.returns.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
