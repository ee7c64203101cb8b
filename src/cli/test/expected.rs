//! Values of rows as texts that can be compared, whichever way they were written.
//!
//! What a test expects is read by the json format, column by column, and what comes out of the pipeline is written
//! by it. So `2.5` and `2.50` of a DECIMAL(10, 2) are one value, and a mistake has the place of its column.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use serde_json::value::RawValue;

use crate::{
    definition::{Diagnostic, Entry, Located, Node, OptionValue, Options, Report, Span, Value},
    formats::{self, json},
    model::{Column, ColumnType, LogicalType, RowReject, RowsBuilder, Schema, nearest},
};

/// The columns that values are of.
pub(super) struct Values {
    schema: Schema,
    names: Vec<String>,
    options: Options,
}

/// The values of a row, one a column, as JSON.
pub(super) type Row = Vec<String>;

impl Values {
    /// For the columns of a sink.
    ///
    /// # Errors
    /// A column has a type that JSON cannot hold.
    pub(super) fn of(schema: &Schema) -> Result<Self, Box<Diagnostic>> {
        let mut options = Options::default();
        options.insert(&json::options::DECIMAL_AS_PLAIN_NUMBER, OptionValue::Boolean(true));
        let refuse = |why| Box::new(Diagnostic::error(format!("rows of this definition cannot be compared: {why}")));
        json::Encoder::new(schema, &options).map_err(refuse)?;
        let names = schema.columns.iter().map(|column| column.name.clone()).collect();
        Ok(Self { schema: schema.clone(), names, options })
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The rows of a test; `None`: something in them is wrong, and has been told.
    pub(super) fn rows(&self, rows: &[Located<Vec<Entry>>], report: &mut Report) -> Option<Vec<Row>> {
        let rows: Vec<_> = rows.iter().map(|row| self.row(&row.value, row.span, report)).collect();
        rows.into_iter().collect()
    }

    fn row(&self, entries: &[Entry], span: Span, report: &mut Report) -> Option<Row> {
        let before = report.errors();
        for entry in entries {
            if !self.names.contains(&entry.key.value) {
                let known = || self.names.iter().map(String::as_str);
                let list: Vec<_> = known().map(|name| format!("`{name}`")).collect();
                let message = format!("the sink has no column `{}`", entry.key.value);
                let near = nearest(&entry.key.value, known());
                let told = Diagnostic::error(message).at(entry.key.span).nearest(near);
                report.push(if near.is_none() { told.expected(format!("one of {}", list.join(", "))) } else { told });
            }
        }
        let mut row = Row::with_capacity(self.names.len());
        for column in &self.schema.columns {
            let given = entries.iter().find(|entry| entry.key.value == column.name);
            let null = Located::new(Value::Null, span);
            match self.value(column, given.map_or(&null, |entry| &entry.value), report) {
                Ok(text) => row.push(text),
                Err(diagnostic) => report.push(*diagnostic),
            }
        }
        (report.errors() == before).then_some(row)
    }

    /// One value, read and written again.
    fn value(&self, column: &Column, node: &Node, report: &mut Report) -> Result<String, Box<Diagnostic>> {
        let batch = read_value(column, node, report)?;
        let schema = Schema { columns: vec![physical(column)] };
        let single = Self { schema, names: vec![column.name.clone()], options: self.options.clone() };
        match single.of_batch(&batch) {
            Ok((mut rows, refused)) => match (rows.pop().flatten().and_then(|mut row| row.pop()), refused.first()) {
                (Some(text), _) => Ok(text),
                (None, refused) => {
                    let why = refused.map_or("it cannot be written", |refused| refused.reason.as_str());
                    Err(Box::new(Diagnostic::error(format!("`{}`: {why}", column.name)).at(node.span)))
                }
            },
            Err(why) => Err(Box::new(Diagnostic::error(why).at(node.span))),
        }
    }

    /// What came out of the pipeline: the rows in order, `None` for one that cannot be shown, of which is told why.
    pub(super) fn of_batch(&self, batch: &RecordBatch) -> Result<(Vec<Option<Row>>, Vec<RowReject>), String> {
        let mut encoder = json::Encoder::new(&self.schema, &self.options)?;
        let mut lines = Vec::new();
        let refused = formats::Encoder::encode(&mut encoder, batch, &mut lines);
        let mut written = lines.split(|byte| *byte == b'\n');
        let mut rows = Vec::with_capacity(batch.num_rows());
        for at in 0..batch.num_rows() {
            if refused.iter().any(|reject| reject.row == at) {
                rows.push(None);
                continue;
            }
            let line = written.next().unwrap_or_default();
            let mut values: HashMap<String, Box<RawValue>> =
                serde_json::from_slice(line).map_err(|error| error.to_string())?;
            let value = |name: &String| values.remove(name).map_or_else(String::new, |value| value.get().to_owned());
            rows.push(Some(self.names.iter().map(value).collect()));
        }
        Ok((rows, refused))
    }
}

fn physical(column: &Column) -> Column {
    Column { metadata: None, is_virtual: false, ..column.clone() }
}

/// Reads a value of a test as one of a column.
pub(super) fn read_value(column: &Column, node: &Node, report: &mut Report) -> Result<RecordBatch, Box<Diagnostic>> {
    let schema = Schema { columns: vec![physical(column)] };
    let refuse = |why: String| {
        let told = Diagnostic::error(format!("this is no value of `{}`: {why}", column.name));
        Box::new(told.at(node.span).expected(column.ty.to_string()))
    };
    let mut body = serde_json::Value::from(column.name.as_str()).to_string();
    body.insert(0, '{');
    body.push(':');
    write(node, &column.ty.logical, &mut body, report);
    body.push('}');
    let mut decoder = json::Decoder::new(&schema, &Options::default()).map_err(refuse)?;
    let mut rows = RowsBuilder::new(&schema);
    formats::Decoder::decode(&mut decoder, body.as_bytes(), &mut rows).map_err(refuse)?;
    rows.finish().map_err(|fault| refuse(fault.to_string()))
}

/// A value of YAML as JSON, as its type asks for it.
fn write(node: &Node, ty: &LogicalType, out: &mut String, report: &mut Report) {
    match &node.value {
        Value::Null | Value::Broken => out.push_str("null"),
        Value::Scalar(scalar) => {
            let text = scalar.text.as_str();
            // A number that is one in JSON too keeps its digits.
            let bare =
                is_bare(ty) && serde_json::from_str::<&RawValue>(text).is_ok() && !text.starts_with(['"', '[', '{']);
            if bare { out.push_str(text) } else { out.push_str(&serde_json::Value::from(text).to_string()) }
        }
        Value::Sequence(items) => {
            let element = match ty {
                LogicalType::Array(element) => &element.logical,
                _ => &LogicalType::VarChar(None),
            };
            separated(out, ('[', ']'), items, |item, out| write(item, element, out, report));
        }
        Value::Mapping(entries) => separated(out, ('{', '}'), entries, |entry, out| {
            let inner = inner_type(ty, entry, report);
            out.push_str(&serde_json::Value::from(entry.key.value.as_str()).to_string());
            out.push(':');
            write(&entry.value, inner.unwrap_or(&LogicalType::VarChar(None)), out, report);
        }),
    }
}

fn separated<T>(out: &mut String, (open, close): (char, char), items: &[T], mut each: impl FnMut(&T, &mut String)) {
    out.push(open);
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        each(item, out);
    }
    out.push(close);
}

/// The type of a part of a ROW or MAP. A field that the ROW does not have is told.
fn inner_type<'a>(ty: &'a LogicalType, entry: &Entry, report: &mut Report) -> Option<&'a LogicalType> {
    let logical = |ty: &'a ColumnType| &ty.logical;
    match ty {
        LogicalType::Map(_, value) => Some(logical(value)),
        LogicalType::Row(fields) => {
            let found = fields.iter().find(|field| field.name == entry.key.value);
            if found.is_none() {
                let near = nearest(&entry.key.value, fields.iter().map(|field| field.name.as_str()));
                let message = format!("{ty} has no field `{}`", entry.key.value);
                report.push(Diagnostic::error(message).at(entry.key.span).nearest(near));
            }
            found.map(|field| logical(&field.ty))
        }
        _ => None,
    }
}

/// Whether a value of the type stands in JSON without quotes.
const fn is_bare(ty: &LogicalType) -> bool {
    use LogicalType as T;
    matches!(ty, T::Boolean | T::TinyInt | T::SmallInt | T::Int | T::BigInt | T::Float | T::Double | T::Decimal(..))
}
