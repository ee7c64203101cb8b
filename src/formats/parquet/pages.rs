//! Pages in the two encodings that say themselves how many values there are: the library makes room for as many before
//! it sees them, so they are looked at first.

use std::sync::Arc;

use bytes::Bytes;
use parquet::{
    basic::Encoding,
    column::{
        page::{Page, PageReader},
        reader::{get_column_reader, get_typed_column_reader},
    },
    data_type::{Int96, Int96Type},
    file::{metadata::RowGroupMetaData, serialized_reader::SerializedPageReader},
};

use crate::{
    formats::columnar::{Failure, MOST_BYTES, too_many},
    model::LogicalType,
};

/// The day of 1970 in INT96, which counts Julian days.
const EPOCH_DAY: i128 = 2_440_588;
const DAY_NS: i128 = 86_400_000_000_000;
/// Records of INT96 looked at together.
const INT96_BATCH: usize = 1024;

/// Checks such pages of a column in a row group.
pub(super) fn check_delta(body: &Arc<Bytes>, group: &RowGroupMetaData, column: usize) -> Result<(), String> {
    let Some(chunk) = group.columns().get(column) else { return Ok(()) };
    let told = |error: parquet::errors::ParquetError| error.to_string();
    let rows = usize::try_from(group.num_rows()).map_err(|_| "a row group has less than no row")?;
    let mut pages = SerializedPageReader::new(Arc::clone(body), chunk, rows, None).map_err(told)?;
    let descriptor = chunk.column_descr();
    let levels = Levels { repeated: descriptor.max_rep_level() > 0, nullable: descriptor.max_def_level() > 0 };
    while let Some(page) = pages.get_next_page().map_err(told)? {
        check(&page, levels)?;
    }
    Ok(())
}

/// Checks that timestamps of INT96 fit what the column holds: the library multiplies without looking. The file has `before`
/// rows in other groups before these.
pub(super) fn check_int96(
    body: &Arc<Bytes>,
    group: &RowGroupMetaData,
    column: usize,
    mut before: usize,
    logical: &LogicalType,
) -> Result<(), String> {
    let Some(chunk) = group.columns().get(column) else { return Ok(()) };
    let told = |error: parquet::errors::ParquetError| error.to_string();
    let rows = usize::try_from(group.num_rows()).map_err(|_| too_many())?;
    let pages = SerializedPageReader::new(Arc::clone(body), chunk, rows, None).map_err(told)?;
    let reader = get_column_reader(chunk.column_descr_ptr(), Box::new(pages));
    let mut reader = get_typed_column_reader::<Int96Type>(reader);
    let (mut definition, mut repetition, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let in_nanoseconds = matches!(logical, LogicalType::Timestamp(7..) | LogicalType::TimestampLtz(7..));
    loop {
        let (records, ..) = reader
            .read_records(INT96_BATCH, Some(&mut definition), Some(&mut repetition), &mut values)
            .map_err(told)?;
        if let Some(value) = values.iter().position(|value| !fits(value, in_nanoseconds)) {
            let before = before + records_before(value, &definition, &repetition);
            let failure = Failure::new(format!("a timestamp is out of range for {logical}"));
            return Err(failure.of_row(before, &chunk.column_path().string()));
        }
        before += records;
        if records == 0 {
            return Ok(());
        }
        definition.clear();
        repetition.clear();
        values.clear();
    }
}

/// How many records stand before that of a value. Levels that a column does not have are not there.
fn records_before(value: usize, definition: &[i16], repetition: &[i16]) -> usize {
    // That of the value, as no level is above that of a value which is there.
    let most = definition.iter().copied().max();
    let mut defined = definition.iter().enumerate().filter(|(_, level)| Some(**level) == most);
    let at = defined.nth(value).map_or(value, |(at, _)| at);
    match repetition.get(..=at) {
        Some(levels) => levels.iter().filter(|level| **level == 0).count().saturating_sub(1),
        None => at,
    }
}

fn fits(value: &Int96, in_nanoseconds: bool) -> bool {
    let [low, high, day] = value.data() else { return false };
    // As the library reads them: the day has a sign.
    let of_day = i64::from(*high as i32) << 32 | i64::from(*low);
    let nanoseconds = (i128::from(*day as i32) - EPOCH_DAY) * DAY_NS + i128::from(of_day);
    let held = if in_nanoseconds { nanoseconds } else { nanoseconds.div_euclid(1000) };
    i64::try_from(held).is_ok()
}

/// What stands before the values of a page.
#[derive(Clone, Copy)]
struct Levels {
    repeated: bool,
    nullable: bool,
}

/// The two encodings that say themselves how many values there are, for which the library makes room at once.
fn check(page: &Page, levels: Levels) -> Result<(), String> {
    let (encoding, count) = (page.encoding(), page.num_values() as usize);
    if !matches!(encoding, Encoding::DELTA_BYTE_ARRAY | Encoding::DELTA_LENGTH_BYTE_ARRAY) {
        return Ok(());
    }
    let broken = || "a page of delta encoded values is broken".to_owned();
    let (buffer, levels_length) = match page {
        Page::DataPage { buf, .. } => {
            let mut length = 0;
            for _ in 0..usize::from(levels.repeated) + usize::from(levels.nullable) {
                let head = buf.get(length..).and_then(|rest| rest.first_chunk::<4>()).ok_or_else(broken)?;
                length += 4 + u32::from_le_bytes(*head) as usize;
            }
            (buf, length)
        }
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            (buf, *def_levels_byte_len as usize + *rep_levels_byte_len as usize)
        }
        Page::DictionaryPage { .. } => return Ok(()),
    };
    let mut rest = buffer.get(levels_length..).ok_or_else(broken)?;
    let size = rest.len();
    // The lengths, or those of the beginnings that values share; then those of what follows.
    let streams = if encoding == Encoding::DELTA_BYTE_ARRAY { 2 } else { 1 };
    for _ in 0..streams {
        if skip_numbers(&mut rest).is_none_or(|told| told > count) {
            return Err(broken());
        }
    }
    // Values that share beginnings may be far larger than their page, and all those of one row are read at once.
    if streams == 2 && levels.repeated && size.saturating_mul(count) > MOST_BYTES {
        return Err(format!(
            "{count} elements of lists are DELTA_BYTE_ARRAY encoded in one page of {size} bytes, which may be more than {} MiB",
            MOST_BYTES >> 20
        ));
    }
    Ok(())
}

/// Skips numbers in the encoding DELTA_BINARY_PACKED; answers how many there are said to be. `None`: they are cut off.
fn skip_numbers(bytes: &mut &[u8]) -> Option<usize> {
    let number = |bytes: &mut &[u8]| varint(bytes).and_then(|value| usize::try_from(value).ok());
    let (block, parts, total) = (number(bytes)?, number(bytes)?, number(bytes)?);
    varint(bytes)?;
    let each = block.checked_div(parts).filter(|each| *each > 0)?;
    let mut left = total.saturating_sub(1);
    while left > 0 {
        varint(bytes)?;
        let (widths, rest) = bytes.split_at_checked(parts)?;
        *bytes = rest;
        for width in widths {
            if left == 0 {
                break;
            }
            // The last part may be cut off where its last value ends.
            let size = usize::from(*width).checked_mul(each)? / 8;
            *bytes = bytes.get(size.min(bytes.len())..)?;
            left = left.saturating_sub(each);
        }
    }
    Some(total)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_of_int96_fit_up_to_the_last_nanosecond() {
        let at = |nanoseconds: i128| {
            let day = nanoseconds.div_euclid(DAY_NS);
            let of_day = nanoseconds.rem_euclid(DAY_NS) as u64;
            let mut value = Int96::new();
            value.set_data(of_day as u32, (of_day >> 32) as u32, (day + EPOCH_DAY) as i32 as u32);
            value
        };
        let (first, last) = (i128::from(i64::MIN), i128::from(i64::MAX));
        assert!(fits(&at(first), true) && fits(&at(last), true));
        assert!(!fits(&at(first - 1), true) && !fits(&at(last + 1), true));
        assert!(fits(&at(first - 1), false) && fits(&at(last * 1000), false));
        assert!(!fits(&at((last + 1) * 1000), false));
    }

    #[test]
    fn a_value_is_of_the_record_that_its_levels_say() {
        assert_eq!(records_before(2, &[], &[]), 2);
        // Null, 0, null, 1.
        assert_eq!([0, 1].map(|value| records_before(value, &[0, 1, 0, 1], &[])), [1, 3]);
        // [0, 1], [], null, [null, 2], [3].
        let (definition, repetition) = ([3, 3, 1, 0, 2, 3, 3], [0, 1, 0, 0, 0, 1, 0]);
        let found = [0, 1, 2, 3].map(|value| records_before(value, &definition, &repetition));
        assert_eq!(found, [0, 0, 3, 4]);
    }
}
