use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, cast::AsArray};

use super::{
    container::{Blocks, Codec, write_bytes, write_long},
    derive,
    options::{CODEC, ENCODING, LEGACY_TIMESTAMPS},
};
use crate::{
    definition::Options,
    formats::{self, columnar::Failure, number, scalars::Scalars, time::Unit},
    model::{ColumnType, Field, LogicalType as T, RowReject, Schema},
};

/// A block of a file is made of at least so many bytes, not yet compressed.
const BLOCK_BYTES: usize = 64 << 10;

/// Values as they are written, in the one form or the other.
#[derive(Debug)]
struct Values {
    fields: Vec<Field>,
    legacy: bool,
    json: bool,
}

impl Values {
    fn new(schema: &Schema, options: &Options, json: bool) -> Self {
        let field = |column: &crate::model::Column| Field { name: column.name.clone(), ty: column.ty.clone() };
        let legacy = options.opt_boolean(&LEGACY_TIMESTAMPS).unwrap_or(true);
        Self { fields: schema.columns.iter().map(field).collect(), legacy, json }
    }

    fn schema(&self) -> Result<serde_json::Value, String> {
        derive::schema(self.fields.iter(), self.legacy).map_err(|unfit| unfit.to_string())
    }

    /// Appends every row; those that are refused are left out.
    fn rows(
        &self,
        rows: &RecordBatch,
        out: &mut Vec<u8>,
        mut written: impl FnMut(usize, &mut Vec<u8>),
    ) -> Vec<RowReject> {
        let mut rejects = Vec::new();
        for row in 0..rows.num_rows() {
            let start = out.len();
            match self.record(&self.fields, "record", rows.columns(), row, out) {
                Ok(()) => written(row, out),
                Err((name, failure)) => {
                    out.truncate(start);
                    rejects.push(RowReject { row, reason: failure.of_column(&name) });
                }
            }
        }
        rejects
    }

    fn record(
        &self,
        fields: &[Field],
        name: &str,
        columns: &[ArrayRef],
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), (String, Failure)> {
        for (index, (field, array)) in fields.iter().zip(columns).enumerate() {
            if self.json {
                out.push(if index == 0 { b'{' } else { b',' });
                write_text(&field.name, out);
                out.push(b':');
            }
            let name = format_args!("{name}_{}", field.name).to_string();
            self.value(&field.ty, &name, array, row, out).map_err(|failure| (field.name.clone(), failure))?;
        }
        if self.json {
            out.extend_from_slice(if fields.is_empty() { b"{}" } else { b"}" });
        }
        Ok(())
    }

    /// A value, behind its branch if it may be null.
    fn value(
        &self,
        ty: &ColumnType,
        name: &str,
        array: &ArrayRef,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        match (array.is_null(row), ty.nullable) {
            (true, false) => return Err(Failure::null()),
            (true, true) if self.json => out.extend_from_slice(b"null"),
            (true, true) => write_long(0, out),
            (false, true) if self.json => {
                out.push(b'{');
                match branch(&ty.logical) {
                    Some(branch) => write_text(branch, out),
                    None => write_text(&format!("{}.{name}", derive::NAMESPACE), out),
                }
                out.push(b':');
                self.present(&ty.logical, name, array, row, out)?;
                out.push(b'}');
            }
            (false, nullable) => {
                if nullable {
                    write_long(1, out);
                }
                self.present(&ty.logical, name, array, row, out)?;
            }
        }
        Ok(())
    }

    fn present(&self, logical: &T, name: &str, array: &ArrayRef, row: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
        let wrong = || Failure::new(format!("a value that is no {logical}"));
        match logical {
            T::Array(element) => {
                let items = array.as_list_opt::<i32>().ok_or_else(wrong)?.value(row);
                self.elements(items.len(), [b'[', b']'], out, |item, out| self.value(element, name, &items, item, out))
            }
            T::Map(_, value) => {
                let entries = array.as_map_opt().ok_or_else(wrong)?.value(row);
                let keys: &StringArray = entries.column(0).as_string_opt().ok_or_else(wrong)?;
                self.elements(entries.len(), [b'{', b'}'], out, |entry, out| {
                    if self.json {
                        write_text(keys.value(entry), out);
                        out.push(b':');
                    } else {
                        write_bytes(keys.value(entry).as_bytes(), out);
                    }
                    self.value(value, name, entries.column(1), entry, out)
                })
            }
            T::Row(fields) => {
                let structs = array.as_struct_opt().ok_or_else(wrong)?;
                self.record(fields, name, structs.columns(), row, out)
                    .map_err(|(name, failure)| failure.in_field(&name))
            }
            _ => {
                let values = Scalars::new(logical, array).ok_or_else(wrong)?;
                self.scalar(&values, logical, row, out)
            }
        }
    }

    fn elements(
        &self,
        count: usize,
        brackets: [u8; 2],
        out: &mut Vec<u8>,
        mut each: impl FnMut(usize, &mut Vec<u8>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.json {
            out.push(brackets[0]);
        } else if count > 0 {
            // Offsets have 31 bits.
            write_long(count as i64, out);
        }
        for element in 0..count {
            if self.json && element > 0 {
                out.push(b',');
            }
            each(element, out).map_err(|failure| failure.in_element(element))?;
        }
        if self.json {
            out.push(brackets[1]);
        } else {
            write_long(0, out);
        }
        Ok(())
    }

    fn scalar(&self, values: &Scalars<'_>, logical: &T, row: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
        match values {
            Scalars::Boolean(values) if self.json => {
                out.extend_from_slice(if values.value(row) { b"true" } else { b"false" });
            }
            Scalars::Boolean(values) => out.push(u8::from(values.value(row))),
            Scalars::Int8(values) => self.integer(values[row].into(), out),
            Scalars::Int16(values) => self.integer(values[row].into(), out),
            Scalars::Int32(values) | Scalars::Date(values) | Scalars::Time(values) => {
                self.integer(values[row].into(), out);
            }
            Scalars::Int64(values) => self.integer(values[row], out),
            Scalars::Float32(values) if self.json => match values[row].is_finite() {
                true => number::write_f32(values[row], out),
                false => non_finite(values[row].into(), out),
            },
            Scalars::Float32(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Scalars::Float64(values) if self.json => match values[row].is_finite() {
                true => number::write_f64(values[row], out),
                false => non_finite(values[row], out),
            },
            Scalars::Float64(values) => out.extend_from_slice(&values[row].to_le_bytes()),
            Scalars::Text(values) if self.json => write_text(values.value(row), out),
            Scalars::Text(values) => write_bytes(values.value(row).as_bytes(), out),
            Scalars::Bytes(values) => self.bytes(values.value(row), out),
            Scalars::Decimal { values, .. } => {
                let bytes = values[row].to_be_bytes();
                self.bytes(shortest(&bytes), out);
            }
            Scalars::Timestamp { values, unit, .. } => {
                let per_second = match unit {
                    Unit::Micros => 1_000_000,
                    Unit::Nanos => 1_000_000_000,
                };
                // As the derived schema has it: what is finer is cut off.
                let to = match logical {
                    T::Timestamp(0..=3) | T::TimestampLtz(0..=3) => 1000,
                    _ => 1_000_000,
                };
                self.integer(values[row].div_euclid(per_second / to), out);
            }
        }
        Ok(())
    }

    fn integer(&self, value: i64, out: &mut Vec<u8>) {
        if self.json {
            out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        } else {
            write_long(value, out);
        }
    }

    fn bytes(&self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.json {
            let latin: String = bytes.iter().map(|byte| char::from(*byte)).collect();
            write_text(&latin, out);
        } else {
            write_bytes(bytes, out);
        }
    }
}

/// A text of JSON.
fn write_text(text: &str, out: &mut Vec<u8>) {
    // Neither a text nor a vector fails.
    let _never = serde_json::to_writer(out, text);
}

/// As Java's writer of Avro's JSON has them.
fn non_finite(value: f64, out: &mut Vec<u8>) {
    let text: &[u8] = if value.is_nan() {
        b"\"NaN\""
    } else if value > 0.0 {
        b"\"Infinity\""
    } else {
        b"\"-Infinity\""
    };
    out.extend_from_slice(text);
}

/// A number in two's complement without the bytes that say nothing, as Java's `BigInteger` writes it.
fn shortest(bytes: &[u8; 16]) -> &[u8] {
    let mut rest = &bytes[..];
    while let [first, second, ..] = rest {
        let says_nothing = (*first == 0 && *second < 0x80) || (*first == 0xff && *second >= 0x80);
        if !says_nothing {
            break;
        }
        rest = &rest[1..];
    }
    rest
}

/// What the branch of a type is called; `None` for a record, which is called by its name.
fn branch(logical: &T) -> Option<&'static str> {
    Some(match logical {
        T::Boolean => "boolean",
        T::TinyInt | T::SmallInt | T::Int | T::Date | T::Time(_) => "int",
        T::BigInt | T::Timestamp(_) | T::TimestampLtz(_) => "long",
        T::Float => "float",
        T::Double => "double",
        T::Char(_) | T::VarChar(_) => "string",
        T::Binary(_) | T::VarBinary(_) | T::Decimal(..) => "bytes",
        T::Array(_) => "array",
        T::Map(..) => "map",
        T::Row(_) => return None,
    })
}

/// Writes each row as one value, for messages.
#[derive(Debug)]
pub struct Encoder {
    values: Values,
}

impl Encoder {
    /// An encoder for all columns.
    ///
    /// # Errors
    /// A column that Avro cannot hold.
    pub fn new(schema: &Schema, options: &Options) -> Result<Self, String> {
        let values = Values::new(schema, options, options.opt_text(&ENCODING) == Some("json"));
        values.schema()?;
        Ok(Self { values })
    }
}

impl formats::Encoder for Encoder {
    fn encode_rows(
        &mut self,
        rows: &RecordBatch,
        out: &mut Vec<u8>,
        written: &mut dyn FnMut(usize, &mut Vec<u8>),
    ) -> Vec<RowReject> {
        self.values.rows(rows, out, written)
    }

    fn line_end(&self) -> &[u8] {
        b""
    }

    fn extension(&self) -> &'static str {
        "avro"
    }
}

/// Writes container files.
#[derive(Debug)]
pub struct FileEncoder {
    values: Values,
    schema: String,
    codec: Codec,
    open: Option<Blocks>,
}

impl FileEncoder {
    /// An encoder for all columns.
    ///
    /// # Errors
    /// A column that Avro cannot hold.
    pub fn new(schema: &Schema, options: &Options) -> Result<Self, String> {
        let values = Values::new(schema, options, false);
        let schema = values.schema()?.to_string();
        let codec = Codec::find(options.opt_text(&CODEC).unwrap_or("snappy")).ok_or("no such codec")?;
        Ok(Self { values, schema, codec, open: None })
    }
}

impl formats::FileEncoder for FileEncoder {
    fn rows(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Result<Vec<RowReject>, String> {
        let (mut bytes, mut count) = (Vec::new(), 0);
        if let Some(blocks) = &mut self.open {
            bytes = std::mem::take(&mut blocks.bytes);
        }
        let rejects = self.values.rows(rows, &mut bytes, |_, _| count += 1);
        if self.open.is_none() && count == 0 {
            // A file begins with its first row.
            return Ok(rejects);
        }
        let blocks = self.open.get_or_insert_with(|| Blocks::begin(&self.schema, self.codec, out));
        blocks.bytes = bytes;
        (0..count).for_each(|_| blocks.added());
        if blocks.bytes.len() >= BLOCK_BYTES {
            blocks.flush(out)?;
        }
        Ok(rejects)
    }

    fn pending(&self) -> u64 {
        self.open.as_ref().map_or(0, |blocks| blocks.bytes.len() as u64)
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        self.open.take().map_or(Ok(()), |mut blocks| blocks.flush(out))
    }

    fn extension(&self) -> &'static str {
        "avro"
    }
}
