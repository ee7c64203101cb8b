//! An expression that has its type.

use std::{ops::Range, sync::Arc};

use arrow_array::{Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Schema as ArrowSchema};
use datafusion_common::ScalarValue;
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::{
    PhysicalExpr,
    expressions::{Column as ColumnOf, Literal},
};

use crate::{
    model::{Column, LogicalType},
    query::{
        QueryError,
        call::{Call, Kernel},
        types::{Family, Kind, Type, family},
    },
};

/// The most expressions that one consists of. Functions that use an argument twice double it each time they are nested.
pub(in crate::query) const MOST_SIZE: u64 = 10_000;

/// The most bytes of a constant that is worked out while planning.
const MOST_FOLDED: usize = 16 * 1024;

/// An expression that has its type.
#[derive(Debug, Clone)]
pub(in crate::query) struct Term {
    pub(in crate::query) expr: Arc<dyn PhysicalExpr>,
    pub(in crate::query) ty: Type,
    /// Where it stands in the query.
    pub(in crate::query) at: Range<usize>,
    /// Whether there are rows for which it fails.
    pub(in crate::query) fails: bool,
    /// Whether two evaluations of it may differ, so that it is not worked out while planning.
    pub(in crate::query) volatile: bool,
    /// How many expressions it consists of, those that stand in it twice counted twice: they are evaluated twice.
    pub(in crate::query) size: u64,
}

impl Term {
    /// A column of the source.
    pub(in crate::query) fn column(index: usize, column: &Column, at: Range<usize>) -> Self {
        let expr = Arc::new(ColumnOf::new(&column.name, index));
        Self { expr, ty: Type::from(&column.ty), at, fails: false, volatile: false, size: 1 }
    }

    /// A constant.
    pub(in crate::query) fn constant(value: ScalarValue, kind: Kind, at: Range<usize>) -> Self {
        let nullable = value.is_null();
        let (expr, ty) = (Arc::new(Literal::new(value)), Type { kind, nullable });
        Self { expr, ty, at, fails: false, volatile: false, size: 1 }
    }

    /// The word NULL.
    pub(in crate::query) fn null(at: Range<usize>) -> Self {
        Self::constant(ScalarValue::Null, Kind::Null, at)
    }

    /// A text, which is a CHAR of its length in characters, as in Flink; the empty one is a CHAR(1) to Calcite.
    pub(in crate::query) fn text(text: &str, at: Range<usize>) -> Self {
        let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX).max(1);
        Self::constant(ScalarValue::Utf8(Some(text.into())), Kind::Of(LogicalType::Char(length)), at)
    }

    /// The same as a null of a type.
    pub(in crate::query) fn typed_null(&self, logical: LogicalType) -> Self {
        let null = ScalarValue::try_from(&logical.to_arrow()).unwrap_or(ScalarValue::Null);
        Self::constant(null, Kind::Of(logical), self.at.clone())
    }

    /// The value, if it is a constant.
    pub(in crate::query) fn value(&self) -> Option<&ScalarValue> {
        self.expr.downcast_ref::<Literal>().map(Literal::value)
    }

    /// The text, if it is a constant and one.
    pub(in crate::query) fn constant_text(&self) -> Option<&str> {
        match self.value()? {
            ScalarValue::Utf8(Some(text)) => Some(text),
            _ => None,
        }
    }

    /// The integer, if it is a constant and one.
    pub(in crate::query) fn constant_long(&self) -> Option<i64> {
        match self.value()? {
            ScalarValue::Int8(Some(value)) => Some((*value).into()),
            ScalarValue::Int16(Some(value)) => Some((*value).into()),
            ScalarValue::Int32(Some(value)) => Some((*value).into()),
            ScalarValue::Int64(Some(value)) => Some(*value),
            _ => None,
        }
    }

    pub(in crate::query) fn is_null(&self) -> bool {
        self.ty.kind == Kind::Null
    }

    pub(in crate::query) const fn logical(&self) -> Option<&LogicalType> {
        self.ty.logical()
    }

    pub(in crate::query) fn family(&self) -> Option<Family> {
        self.logical().map(family)
    }

    /// An expression over others. A constant is worked out here; one that fails is left, and fails for every row
    /// that gets to it, as in Flink.
    pub(in crate::query) fn over(expr: Arc<dyn PhysicalExpr>, ty: Type, at: Range<usize>, of: &[&Self]) -> Self {
        let fails = of.iter().any(|one| one.fails);
        let volatile = of.iter().any(|one| one.volatile);
        let size = of.iter().fold(1, |size: u64, one| size.saturating_add(one.size));
        let made = Self { expr, ty, at, fails, volatile, size };
        let constant = size <= MOST_SIZE && !volatile && !of.is_empty() && of.iter().all(|one| one.value().is_some());
        match constant.then(|| made.folded()).flatten() {
            Some(value) => Self { expr: Arc::new(Literal::new(value)), fails: false, size: 1, ..made },
            None => made,
        }
    }

    fn folded(&self) -> Option<ScalarValue> {
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let row = RecordBatch::try_new_with_options(Arc::new(ArrowSchema::empty()), Vec::new(), &options).ok()?;
        let value = match self.expr.evaluate(&row).ok()? {
            ColumnarValue::Scalar(value) => Some(value),
            ColumnarValue::Array(array) if array.len() == 1 && !is_nested(array.data_type()) => {
                ScalarValue::try_from_array(&array, 0).ok()
            }
            ColumnarValue::Array(_) => None,
        };
        // A long one would be copied for every row, whatever size that makes; a call is held to its budget.
        value.filter(|value| match value {
            ScalarValue::Utf8(Some(text)) => text.len() <= MOST_FOLDED,
            ScalarValue::Binary(Some(bytes)) => bytes.len() <= MOST_FOLDED,
            _ => true,
        })
    }

    /// A call that is null where an argument is.
    pub(in crate::query) fn strict(
        name: impl Into<std::borrow::Cow<'static, str>>,
        args: Vec<Self>,
        ty: Type,
        at: Range<usize>,
        kernel: Kernel,
    ) -> Self {
        let call =
            Call::expr(name, args.iter().map(|arg| Arc::clone(&arg.expr)).collect(), ty.kind.to_arrow(), true, kernel);
        Self::over(call, ty, at, &args.iter().collect::<Vec<_>>())
    }

    /// A call that looks at nulls itself.
    pub(in crate::query) fn lenient(
        name: impl Into<std::borrow::Cow<'static, str>>,
        args: Vec<Self>,
        ty: Type,
        at: Range<usize>,
        kernel: Kernel,
    ) -> Self {
        let call =
            Call::expr(name, args.iter().map(|arg| Arc::clone(&arg.expr)).collect(), ty.kind.to_arrow(), false, kernel);
        Self::over(call, ty, at, &args.iter().collect::<Vec<_>>())
    }

    /// The same as one that fails for some rows. A constant was worked out without failing.
    pub(in crate::query) fn may_fail(mut self) -> Self {
        self.fails = self.fails || self.value().is_none();
        self
    }

    /// The same with a nullability that its arguments do not tell.
    pub(in crate::query) fn with_nullable(mut self, nullable: bool) -> Self {
        self.ty.nullable = nullable;
        self
    }

    /// An error at its place.
    pub(in crate::query) fn error(&self, message: impl Into<String>) -> QueryError {
        QueryError::new(self.at.clone(), message)
    }
}

fn is_nested(data_type: &DataType) -> bool {
    data_type.is_nested()
}
