//! AND and OR of many conditions, with the three values of SQL. A condition is evaluated only over the rows that the
//! ones before it leave open, so that `i <> 0 AND 10 / i > 2` fails for no row, as in Flink.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Schema};
use arrow_select::filter::filter_record_batch;
use datafusion_common::{DataFusionError, Result as Answer};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::PhysicalExpr;

/// A conjunction or disjunction of at least one condition.
#[derive(Debug, Clone)]
pub(super) struct Logic {
    /// The value of a condition that decides: false of AND, true of OR.
    decides: bool,
    conditions: Vec<(Arc<dyn PhysicalExpr>, bool)>,
}

impl Logic {
    /// `conditions`, each with whether it can fail for a row.
    pub(super) fn expr(and: bool, conditions: Vec<(Arc<dyn PhysicalExpr>, bool)>) -> Arc<dyn PhysicalExpr> {
        Arc::new(Self { decides: !and, conditions })
    }

    fn condition(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Answer<BooleanArray> {
        let array = expr.evaluate(batch)?.into_array(batch.num_rows())?;
        let array = array.as_any().downcast_ref::<BooleanArray>().cloned();
        array.ok_or_else(|| DataFusionError::Internal("a condition is no BOOLEAN".into()))
    }

    /// One more condition; `so_far` is what the ones before it made.
    fn next(
        &self,
        so_far: &BooleanArray,
        expr: &Arc<dyn PhysicalExpr>,
        fails: bool,
        rows: &RecordBatch,
    ) -> Answer<BooleanArray> {
        let decided = |array: &BooleanArray| {
            let values = if self.decides { array.values().clone() } else { !array.values() };
            array.nulls().map_or(values.clone(), |nulls| &values & nulls.inner())
        };
        let before = decided(so_far);
        let open = before.len() - before.count_set_bits();
        if open == 0 {
            return Ok(so_far.clone());
        }
        let found = if !fails || open == before.len() {
            Self::condition(expr, rows)?
        } else {
            let open = BooleanArray::new(!&before, None);
            let found = Self::condition(expr, &filter_record_batch(rows, &open)?)?;
            scatter(&found, &open)
        };
        let both = &before | &decided(&found);
        let null = |array: &BooleanArray| match array.nulls() {
            Some(nulls) => !nulls.inner(),
            None => BooleanBuffer::new_unset(array.len()),
        };
        let valid = &both | &!&(&null(so_far) | &null(&found));
        let values = if self.decides { both } else { !&both };
        Ok(BooleanArray::new(values, Some(valid.into())))
    }
}

/// Values of some rows at their places; the places between are null.
fn scatter(found: &BooleanArray, places: &BooleanArray) -> BooleanArray {
    let mut next = found.iter();
    places.values().iter().map(|there| if there { next.next().flatten() } else { None }).collect()
}

impl fmt::Display for Logic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.decides { "OR(" } else { "AND(" })?;
        for (index, (condition, _)) in self.conditions.iter().enumerate() {
            write!(f, "{}{condition}", if index == 0 { "" } else { ", " })?;
        }
        f.write_str(")")
    }
}

impl PartialEq for Logic {
    fn eq(&self, other: &Self) -> bool {
        self.decides == other.decides && self.conditions == other.conditions
    }
}

impl Eq for Logic {}

impl Hash for Logic {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.decides.hash(state);
        self.conditions.hash(state);
    }
}

impl PhysicalExpr for Logic {
    fn data_type(&self, _: &Schema) -> Answer<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _: &Schema) -> Answer<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Answer<ColumnarValue> {
        let mut so_far: Option<BooleanArray> = None;
        for (expr, fails) in &self.conditions {
            so_far = Some(match &so_far {
                None => Self::condition(expr, batch)?,
                Some(so_far) => self.next(so_far, expr, *fails, batch)?,
            });
        }
        let made = so_far.unwrap_or_else(|| BooleanArray::from(vec![!self.decides; batch.num_rows()]));
        Ok(ColumnarValue::Array(Arc::new(made)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.conditions.iter().map(|(condition, _)| condition).collect()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Answer<Arc<dyn PhysicalExpr>> {
        let fails = self.conditions.iter().map(|(_, fails)| *fails);
        Ok(Arc::new(Self { decides: self.decides, conditions: children.into_iter().zip(fails).collect() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
