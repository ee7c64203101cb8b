//! A function over rows, as an expression of DataFusion.

use std::{
    any::Any,
    borrow::Cow,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, RecordBatch, StringArray, Time32MillisecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray,
    builder::{BinaryBuilder, StringBuilder},
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Schema, TimeUnit};
use datafusion_common::{DataFusionError, Result as Answer};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::PhysicalExpr;

/// What a function makes of a row: a value, null, or the reason why it can make nothing of it.
pub(super) type Out<T> = Result<Option<T>, String>;

/// A function of a row.
pub(super) type Each<T> = Arc<dyn Fn(&Row<'_>) -> Out<T> + Send + Sync>;
/// A function of a row, of whose arguments it may hand on a part.
pub(super) type Borrowing<T> = Arc<dyn for<'a> Fn(&Row<'a>) -> Out<Cow<'a, T>> + Send + Sync>;
/// A function of whole columns.
pub(super) type Whole = Arc<dyn Fn(&Args) -> Result<ArrayRef, String> + Send + Sync>;

/// What a function makes of one row, by the type of what it makes.
#[derive(Clone)]
pub(super) enum Kernel {
    Text(Borrowing<str>),
    Bytes(Borrowing<[u8]>),
    Bool(Each<bool>),
    /// INT, DATE, TIME, months
    Int(Each<i32>),
    /// BIGINT, timestamps in the unit of their type, milliseconds; and cut to its width what is a smaller integer
    Long(Each<i64>),
    /// DOUBLE, and rounded to it FLOAT
    Double(Each<f64>),
    /// The unscaled value of a DECIMAL
    Decimal(Each<i128>),
    /// A whole column at once, nulls included.
    Column(Whole),
}

/// Columns given to a function.
pub(super) struct Args {
    /// A constant is an array of one value.
    columns: Vec<(ArrayRef, bool)>,
    pub(super) rows: usize,
}

impl Args {
    /// An argument with a value for each row.
    pub(super) fn column(&self, index: usize) -> Result<ArrayRef, String> {
        let (array, constant) = self.columns.get(index).ok_or("an argument is missing")?;
        if !constant {
            return Ok(Arc::clone(array));
        }
        let places = arrow_array::UInt32Array::from(vec![0; self.rows]);
        arrow_select::take::take(array, &places, None).map_err(|error| error.to_string())
    }

    /// An argument as it is, and whether it is one value for all rows.
    pub(super) fn given(&self, index: usize) -> Result<(&ArrayRef, bool), String> {
        self.columns
            .get(index)
            .map(|(array, constant)| (array, *constant))
            .ok_or_else(|| "an argument is missing".into())
    }
}

/// A column, downcast once a batch.
enum Typed<'a> {
    Text(&'a StringArray),
    Bytes(&'a BinaryArray),
    Bool(&'a BooleanArray),
    Int8(&'a [i8]),
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    Decimal(&'a [i128]),
    Other,
}

fn typed(array: &dyn Array) -> Typed<'_> {
    let any: &dyn Any = array.as_any();
    macro_rules! values {
        ($array:ty, $kind:ident) => {
            any.downcast_ref::<$array>().map_or(Typed::Other, |array| Typed::$kind(array.values()))
        };
    }
    match array.data_type() {
        DataType::Utf8 => any.downcast_ref().map_or(Typed::Other, Typed::Text),
        DataType::Binary => any.downcast_ref().map_or(Typed::Other, Typed::Bytes),
        DataType::Boolean => any.downcast_ref().map_or(Typed::Other, Typed::Bool),
        DataType::Int8 => values!(Int8Array, Int8),
        DataType::Int16 => values!(Int16Array, Int16),
        DataType::Int32 => values!(Int32Array, Int32),
        DataType::Int64 => values!(Int64Array, Int64),
        DataType::Float32 => values!(Float32Array, Float32),
        DataType::Float64 => values!(Float64Array, Float64),
        DataType::Decimal128(..) => values!(Decimal128Array, Decimal),
        DataType::Date32 => values!(Date32Array, Int32),
        DataType::Time32(TimeUnit::Millisecond) => values!(Time32MillisecondArray, Int32),
        DataType::Timestamp(TimeUnit::Microsecond, _) => values!(TimestampMicrosecondArray, Int64),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => values!(TimestampNanosecondArray, Int64),
        _ => Typed::Other,
    }
}

struct Arg<'a> {
    typed: Typed<'a>,
    nulls: Option<&'a NullBuffer>,
    all_null: bool,
    constant: bool,
}

/// A row of the arguments. The planner sees to the types: an argument of another is read as empty or zero.
pub(super) struct Row<'a> {
    args: &'a [Arg<'a>],
    row: usize,
}

impl<'a> Row<'a> {
    fn arg(&self, index: usize) -> Option<(&'a Arg<'a>, usize)> {
        let arg = self.args.get(index)?;
        Some((arg, if arg.constant { 0 } else { self.row }))
    }

    /// How many arguments there are.
    pub(super) fn len(&self) -> usize {
        self.args.len()
    }

    pub(super) fn is_null(&self, index: usize) -> bool {
        self.arg(index).is_none_or(|(arg, row)| arg.all_null || arg.nulls.is_some_and(|nulls| nulls.is_null(row)))
    }

    pub(super) fn text(&self, index: usize) -> &'a str {
        match self.arg(index) {
            Some((Arg { typed: Typed::Text(array), .. }, row)) => array.value(row),
            _ => "",
        }
    }

    pub(super) fn bytes(&self, index: usize) -> &'a [u8] {
        match self.arg(index) {
            Some((Arg { typed: Typed::Bytes(array), .. }, row)) => array.value(row),
            _ => &[],
        }
    }

    pub(super) fn bool(&self, index: usize) -> bool {
        match self.arg(index) {
            Some((Arg { typed: Typed::Bool(array), .. }, row)) => array.value(row),
            _ => false,
        }
    }

    /// An integer of any width, a date in days, a time in milliseconds, a timestamp in its unit.
    pub(super) fn long(&self, index: usize) -> i64 {
        let Some((arg, row)) = self.arg(index) else { return 0 };
        match arg.typed {
            Typed::Int8(values) => values.get(row).copied().map_or(0, i64::from),
            Typed::Int16(values) => values.get(row).copied().map_or(0, i64::from),
            Typed::Int32(values) => values.get(row).copied().map_or(0, i64::from),
            Typed::Int64(values) => values.get(row).copied().unwrap_or(0),
            _ => 0,
        }
    }

    /// An integer of up to 32 bits; a wider one is cut as in Java.
    pub(super) fn int(&self, index: usize) -> i32 {
        self.long(index) as i32
    }

    pub(super) fn double(&self, index: usize) -> f64 {
        match self.arg(index) {
            Some((Arg { typed: Typed::Float64(values), .. }, row)) => values.get(row).copied().unwrap_or(0.0),
            Some((Arg { typed: Typed::Float32(values), .. }, row)) => values.get(row).copied().map_or(0.0, f64::from),
            _ => 0.0,
        }
    }

    pub(super) fn float(&self, index: usize) -> f32 {
        match self.arg(index) {
            Some((Arg { typed: Typed::Float32(values), .. }, row)) => values.get(row).copied().unwrap_or(0.0),
            _ => 0.0,
        }
    }

    pub(super) fn decimal(&self, index: usize) -> i128 {
        match self.arg(index) {
            Some((Arg { typed: Typed::Decimal(values), .. }, row)) => values.get(row).copied().unwrap_or(0),
            _ => 0,
        }
    }
}

/// A call of a function.
#[derive(Clone)]
pub(super) struct Call {
    name: Cow<'static, str>,
    args: Vec<Arc<dyn PhysicalExpr>>,
    returns: DataType,
    /// Whether a null argument makes it null without asking the kernel.
    strict: bool,
    kernel: Kernel,
}

impl Call {
    /// `returns` is what the kernel makes, `strict` whether it is null where an argument is.
    pub(super) fn expr(
        name: impl Into<Cow<'static, str>>,
        args: Vec<Arc<dyn PhysicalExpr>>,
        returns: DataType,
        strict: bool,
        kernel: Kernel,
    ) -> Arc<dyn PhysicalExpr> {
        Arc::new(Self { name: name.into(), args, returns, strict, kernel })
    }

    fn column(&self, args: &Args) -> Result<ArrayRef, String> {
        let row_kernel = match &self.kernel {
            Kernel::Column(run) => return run(args),
            other => other,
        };
        let typed: Vec<Arg<'_>> = args
            .columns
            .iter()
            .map(|(array, constant)| Arg {
                typed: typed(array),
                nulls: array.nulls(),
                all_null: *array.data_type() == DataType::Null,
                constant: *constant,
            })
            .collect();
        let rows = Rows { args: &typed, rows: args.rows, strict: self.strict };
        match row_kernel {
            Kernel::Text(run) => rows.texts(&**run),
            Kernel::Bytes(run) => rows.bytes(&**run),
            Kernel::Bool(run) => {
                let values: Result<Vec<Option<bool>>, String> = rows.each(|row| run(row)).collect();
                Ok(Arc::new(BooleanArray::from(values?)))
            }
            Kernel::Int(run) => {
                let values: Result<Vec<Option<i32>>, String> = rows.each(|row| run(row)).collect();
                self.returned(Arc::new(Int32Array::from(values?)))
            }
            Kernel::Long(run) => {
                let values: Result<Vec<Option<i64>>, String> = rows.each(|row| run(row)).collect();
                self.longs(values?)
            }
            Kernel::Double(run) => {
                let values: Result<Vec<Option<f64>>, String> = rows.each(|row| run(row)).collect();
                if self.returns == DataType::Float32 {
                    let floats = values?.into_iter().map(|value| value.map(|value| value as f32));
                    return Ok(Arc::new(floats.collect::<Float32Array>()));
                }
                Ok(Arc::new(Float64Array::from(values?)))
            }
            Kernel::Decimal(run) => {
                let values: Result<Vec<Option<i128>>, String> = rows.each(|row| run(row)).collect();
                Ok(Arc::new(Decimal128Array::from(values?).with_data_type(self.returns.clone())))
            }
            Kernel::Column(_) => Err("a kernel of columns was run by rows".into()),
        }
    }

    fn longs(&self, values: Vec<Option<i64>>) -> Result<ArrayRef, String> {
        Ok(match &self.returns {
            DataType::Int8 => Arc::new(values.into_iter().map(|one| one.map(|one| one as i8)).collect::<Int8Array>()),
            DataType::Int16 => {
                Arc::new(values.into_iter().map(|one| one.map(|one| one as i16)).collect::<Int16Array>())
            }
            DataType::Int32 => {
                Arc::new(values.into_iter().map(|one| one.map(|one| one as i32)).collect::<Int32Array>())
            }
            _ => return self.returned(Arc::new(Int64Array::from(values))),
        })
    }

    /// The same bits as the type that is returned.
    fn returned(&self, array: ArrayRef) -> Result<ArrayRef, String> {
        if *array.data_type() == self.returns {
            return Ok(array);
        }
        reinterpret(&array, &self.returns)
    }
}

/// An array of the same bits under another type.
pub(super) fn reinterpret(array: &ArrayRef, returns: &DataType) -> Result<ArrayRef, String> {
    let data = array.to_data().into_builder().data_type(returns.clone());
    data.build().map(arrow_array::make_array).map_err(|error| error.to_string())
}

/// The most bytes of texts that a call makes of a batch. What needs more is worked out over parts of the batch.
const BUDGET: usize = 64 * 1024 * 1024;

/// Adds the length of a value to those before it. One value alone is never too many.
fn within_budget(made: &mut usize, length: usize) -> Result<(), String> {
    let before = *made;
    *made = before.saturating_add(length);
    if before > 0 && *made > BUDGET {
        return Err(format!("texts of more than {BUDGET} bytes would be made of these rows"));
    }
    Ok(())
}

/// The rows a kernel runs over.
struct Rows<'a> {
    args: &'a [Arg<'a>],
    rows: usize,
    strict: bool,
}

impl<'a> Rows<'a> {
    fn row(&self, row: usize) -> Option<Row<'a>> {
        let row = Row { args: self.args, row };
        (!self.strict || (0..self.args.len()).all(|index| !row.is_null(index))).then_some(row)
    }

    fn each<T>(&self, run: impl Fn(&Row<'a>) -> Out<T>) -> impl Iterator<Item = Out<T>> {
        (0..self.rows).map(move |row| self.row(row).map_or(Ok(None), |row| run(&row)))
    }

    fn texts(&self, run: &dyn Fn(&Row<'a>) -> Out<Cow<'a, str>>) -> Result<ArrayRef, String> {
        let mut texts = StringBuilder::with_capacity(self.rows, self.rows * 16);
        let mut made = 0;
        for text in self.each(run) {
            let text = text?;
            within_budget(&mut made, text.as_ref().map_or(0, |text| text.len()))?;
            texts.append_option(text);
        }
        Ok(Arc::new(texts.finish()))
    }

    fn bytes(&self, run: &dyn Fn(&Row<'a>) -> Out<Cow<'a, [u8]>>) -> Result<ArrayRef, String> {
        let mut all = BinaryBuilder::with_capacity(self.rows, self.rows * 16);
        let mut made = 0;
        for bytes in self.each(run) {
            let bytes = bytes?;
            within_budget(&mut made, bytes.as_ref().map_or(0, |bytes| bytes.len()))?;
            all.append_option(bytes);
        }
        Ok(Arc::new(all.finish()))
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        for (index, arg) in self.args.iter().enumerate() {
            write!(f, "{}{arg}", if index == 0 { "" } else { ", " })?;
        }
        f.write_str(")")
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The kernel may hold a constant, so two calls are the same only if they share it; DataFusion compares expressions
/// where it looks for common ones.
impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Call {}

impl Hash for Call {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.args.len().hash(state);
    }
}

impl PhysicalExpr for Call {
    fn data_type(&self, _: &Schema) -> Answer<DataType> {
        Ok(self.returns.clone())
    }

    fn nullable(&self, _: &Schema) -> Answer<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Answer<ColumnarValue> {
        let mut columns = Vec::with_capacity(self.args.len());
        for arg in &self.args {
            columns.push(match arg.evaluate(batch)? {
                ColumnarValue::Array(array) => (array, false),
                ColumnarValue::Scalar(value) => (value.to_array()?, true),
            });
        }
        let args = Args { columns, rows: batch.num_rows() };
        self.column(&args).map(ColumnarValue::Array).map_err(DataFusionError::Execution)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.args.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, args: Vec<Arc<dyn PhysicalExpr>>) -> Answer<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Self { args, ..(*self).clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
