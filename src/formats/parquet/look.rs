//! What a file says of itself, looked at before the library believes it: the footer, and the header of every page that
//! will be read.

use parquet::{
    basic::Type as PhysicalType,
    file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader},
};

use super::{
    thrift::{Struct, read_struct},
    unpack,
};
use crate::formats::columnar::{Budget, MOST_LEVELS, MOST_VALUES, too_many};

const MAGIC: &[u8] = b"PAR1";
/// Columns and groups of a schema.
const MOST_NODES: usize = 10_000;
/// What a value takes in memory, if not more.
const VALUE_BYTES: usize = 8;
const BROKEN_FOOTER: &str = "the footer is broken";

/// Field numbers of `parquet.thrift`.
const FILE_SCHEMA: i16 = 2;
const SCHEMA_CHILDREN: i16 = 5;
const PAGE_UNCOMPRESSED: i16 = 2;
const PAGE_COMPRESSED: i16 = 3;
const PAGE_DATA: i16 = 5;
const PAGE_DICTIONARY: i16 = 7;
const PAGE_DATA_V2: i16 = 8;
const HEADER_VALUES: i16 = 1;
const DATA_ENCODING: i16 = 2;
const DATA_V2_ENCODING: i16 = 4;
/// Levels of definition and of repetition, which are never compressed.
const DATA_V2_LEVELS: [i16; 2] = [5, 6];
const DATA_V2_IS_COMPRESSED: i16 = 7;
/// `DELTA_LENGTH_BYTE_ARRAY` and `DELTA_BYTE_ARRAY`
const DELTA_ENCODINGS: [Option<i32>; 2] = [Some(6), Some(7)];

/// The footer of a file.
pub(super) fn footer(body: &[u8]) -> Result<ParquetMetaData, String> {
    if !body.starts_with(MAGIC) {
        return Err("the body is no parquet file: it does not begin with PAR1".into());
    }
    if body.ends_with(b"PARE") {
        return Err("the file is encrypted, which is not supported".into());
    }
    let cut = || "the file is cut off, or its end is broken: it does not end with a footer and PAR1".to_owned();
    let rest = body.strip_suffix(MAGIC).ok_or_else(cut)?;
    let (rest, length) = rest.split_last_chunk::<4>().ok_or_else(cut)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| cut())?;
    let start = rest.len().checked_sub(length).filter(|start| *start >= MAGIC.len()).ok_or_else(cut)?;
    let bytes = rest.get(start..).ok_or_else(cut)?;
    let (structure, _) = read_struct(bytes).ok_or(BROKEN_FOOTER)?;
    schema(&structure)?;
    ParquetMetaDataReader::decode_metadata(bytes).map_err(|error| format!("{BROKEN_FOOTER}: {error}"))
}

/// The schema is a list in which each group says how many children follow it.
fn schema(file: &Struct) -> Result<(), String> {
    let elements = file.structs(FILE_SCHEMA).flatten().ok_or(BROKEN_FOOTER)?;
    if elements.len() > MOST_NODES {
        return Err(format!("the file has more than {MOST_NODES} columns"));
    }
    let mut open: Vec<usize> = Vec::new();
    for (index, element) in elements.iter().enumerate() {
        while open.last() == Some(&0) {
            open.pop();
        }
        match open.last_mut() {
            Some(left) => *left -= 1,
            None if index > 0 => return Err(BROKEN_FOOTER.into()),
            None => {}
        }
        let children = element.int(SCHEMA_CHILDREN).ok_or(BROKEN_FOOTER)?.unwrap_or(0);
        match usize::try_from(children).map_err(|_| BROKEN_FOOTER)? {
            0 => {}
            children => open.push(children),
        }
        if open.len() > MOST_LEVELS {
            return Err(format!("columns are nested more than {MOST_LEVELS} levels deep"));
        }
    }
    // The library makes room for as many as there are said to be.
    if open.iter().any(|left| *left > 0) {
        return Err(BROKEN_FOOTER.into());
    }
    Ok(())
}

/// What there is to know of the pages of a column in a row group.
pub(super) struct Pages {
    /// Size of the largest, once decompressed, which no value exceeds.
    pub(super) largest: usize,
    /// Whether one is in an encoding that says itself how many values there are.
    pub(super) delta: bool,
}

/// Checks the headers of the pages of a column in a row group. `budget` is of bytes once decompressed, `room` of values in
/// memory; both are of the whole body.
pub(super) fn pages(
    body: &[u8],
    column: &ColumnChunkMetaData,
    budget: &mut Budget,
    room: &mut Budget,
) -> Result<Pages, String> {
    let broken = || format!("column {}: the pages are not where the footer says", column.column_path().string());
    let begin = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let begin = usize::try_from(begin).map_err(|_| broken())?;
    let length = usize::try_from(column.compressed_size()).map_err(|_| broken())?;
    let end = begin.checked_add(length).ok_or_else(broken)?;
    let mut chunk = body.get(begin..end).ok_or_else(broken)?;
    let (mut pages, mut values) = (Pages { largest: 0, delta: false }, 0_usize);
    // All of them: the library goes on behind the number of values that the footer says.
    while !chunk.is_empty() {
        let (header, size) = read_struct(chunk).ok_or_else(broken)?;
        let number = |field| header.int(field).flatten().and_then(|value| usize::try_from(value).ok());
        let (uncompressed, compressed) =
            (number(PAGE_UNCOMPRESSED).ok_or_else(broken)?, number(PAGE_COMPRESSED).ok_or_else(broken)?);
        budget.take(uncompressed)?;
        pages.largest = pages.largest.max(uncompressed);
        let held = held(&header).ok_or_else(broken)?;
        pages.delta |= held.delta;
        values = values.saturating_add(held.values);
        if held.entries.max(values) > MOST_VALUES {
            return Err(too_many());
        }
        let (page, rest) = chunk.get(size..).and_then(|rest| rest.split_at_checked(compressed)).ok_or_else(broken)?;
        let plain = plain_bytes(&header).ok_or_else(broken)?;
        if let Some(plain) = plain {
            let packed = page.get(plain..).ok_or_else(broken)?;
            let claimed = uncompressed.checked_sub(plain).ok_or_else(broken)?;
            unpack::check(column.compression(), packed, claimed)
                .map_err(|why| format!("column {}: {why}", column.column_path().string()))?;
        }
        chunk = rest;
    }
    room.take(values.saturating_mul(VALUE_BYTES))?;
    // Of values of a fixed size the library makes room for nulls too, of which a page has none.
    if column.column_type() == PhysicalType::FIXED_LEN_BYTE_ARRAY {
        let size = usize::try_from(column.column_descr().type_length()).map_err(|_| broken())?;
        budget.take(size.saturating_mul(values))?;
    }
    Ok(pages)
}

/// What a page holds by its header.
struct Held {
    values: usize,
    /// Of a dictionary.
    entries: usize,
    delta: bool,
}

/// `None`: the header is broken.
fn held(header: &Struct) -> Option<Held> {
    let number = |kind: &Struct| usize::try_from(kind.int(HEADER_VALUES)??).ok();
    let mut held = Held { values: 0, entries: 0, delta: false };
    for (field, encoding) in [(PAGE_DATA, DATA_ENCODING), (PAGE_DATA_V2, DATA_V2_ENCODING)] {
        if let Some(kind) = header.structure(field)? {
            held.values = held.values.saturating_add(number(kind)?);
            held.delta |= DELTA_ENCODINGS.contains(&kind.int(encoding)?);
        }
    }
    if let Some(kind) = header.structure(PAGE_DICTIONARY)? {
        held.entries = number(kind)?;
    }
    Some(held)
}

/// How many bytes of a page come before those that are compressed; `Some(None)` if none is. `None`: the header is broken.
fn plain_bytes(header: &Struct) -> Option<Option<usize>> {
    let Some(kind) = header.structure(PAGE_DATA_V2)? else { return Some(Some(0)) };
    if kind.boolean(DATA_V2_IS_COMPRESSED)? == Some(false) {
        return Some(None);
    }
    let mut plain = 0_usize;
    for field in DATA_V2_LEVELS {
        plain = plain.checked_add(usize::try_from(kind.int(field)??).ok()?)?;
    }
    Some(Some(plain))
}

#[cfg(test)]
#[path = "look_tests.rs"]
mod tests;
