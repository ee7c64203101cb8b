//! Footers and headers of pages by hand, each with one lie.

use std::{io::Write, sync::Arc};

use parquet::{
    basic::{Compression, GzipLevel},
    schema::{parser::parse_message_type, types::SchemaDescriptor},
};

use super::*;

/// The fields of a struct in Thrift's compact protocol, numbers of 32 bits all of them.
fn ints(fields: &[(u8, i32)]) -> Vec<u8> {
    let (mut bytes, mut before) = (Vec::new(), 0);
    for (field, value) in fields {
        bytes.push((field - before) << 4 | 5);
        varint(((value << 1) ^ (value >> 31)) as u32, &mut bytes);
        before = *field;
    }
    bytes
}

fn varint(mut rest: u32, bytes: &mut Vec<u8>) {
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// What is said of a schema whose elements have so many children, one after the other.
fn told_of_schema(children: &[i32]) -> Result<(), String> {
    let elements = children.iter().map(|children| [ints(&[(5, *children)]), vec![0]].concat());
    told_of_elements(&elements.collect::<Vec<_>>())
}

fn told_of_elements(elements: &[Vec<u8>]) -> Result<(), String> {
    let mut file = vec![0x29, 0xfc];
    varint(u32::try_from(elements.len()).unwrap(), &mut file);
    file.extend(elements.concat());
    file.push(0);
    schema(&read_struct(&file).unwrap().0)
}

#[test]
fn a_schema_is_a_tree_of_its_elements_and_neither_too_wide_nor_too_deep() {
    let broken = Err(BROKEN_FOOTER.to_owned());
    assert_eq!(told_of_schema(&[2, 0, 1, 0]), Ok(()));
    for lie in [&[3, 0, 1, 0][..], &[1, 0, 1, 0], &[2, 0, -1, 0], &[i32::MAX, 0], &[0, 0]] {
        assert_eq!(told_of_schema(lie), broken, "{lie:?}");
    }
    // A list where the number of children should be.
    assert_eq!(told_of_elements(&[vec![0x59, 0x05, 0]]), broken);
    let wide = |columns: i32| told_of_schema(&[vec![columns], vec![0; columns as usize]].concat());
    assert_eq!(wide(9999), Ok(()));
    assert_eq!(wide(10_000), Err("the file has more than 10000 columns".into()));
    let deep = |levels: usize| told_of_schema(&[vec![1; levels], vec![0]].concat());
    assert_eq!(deep(64), Ok(()));
    assert_eq!(deep(65), Err("columns are nested more than 64 levels deep".into()));
}

/// Which struct of a page's header says what is in it.
#[derive(Clone, Copy)]
enum Kind {
    Data,
    Dictionary,
    /// Compressed or not.
    Data2(bool),
}

/// A page: its header with the size that it says of itself once decompressed, and what its kind says; and its bytes.
fn page(kind: Kind, says: &[(u8, i32)], size: i32, bytes: &[u8]) -> Vec<u8> {
    let (step, end): (u8, &[u8]) = match kind {
        Kind::Data => (2, &[]),
        Kind::Dictionary => (4, &[]),
        // Field 7 behind field 6.
        Kind::Data2(compressed) => (5, if compressed { &[0x11] } else { &[0x12] }),
    };
    let sizes = ints(&[(1, 0), (2, size), (3, i32::try_from(bytes.len()).unwrap())]);
    [&sizes[..], &[step << 4 | 0xc], &ints(says), end, &[0, 0], bytes].concat()
}

struct Told {
    pages: Pages,
    taken: usize,
    room: usize,
}

fn chunk(codec: Compression, length: usize) -> ColumnChunkMetaData {
    let schema = parse_message_type("message m { required binary s; }").unwrap();
    let descriptor = SchemaDescriptor::new(Arc::new(schema));
    let column = ColumnChunkMetaData::builder(descriptor.column(0)).set_compression(codec);
    column.set_total_compressed_size(i64::try_from(length).unwrap()).build().unwrap()
}

fn look_at(codec: Compression, body: &[u8], length: usize) -> Result<Told, String> {
    let (mut budget, mut room) = (Budget::new(), Budget::new());
    let all = budget.left();
    let pages = pages(body, &chunk(codec, length), &mut budget, &mut room)?;
    Ok(Told { pages, taken: all - budget.left(), room: all - room.left() })
}

const PLAIN: [(u8, i32); 4] = [(1, 10), (2, 0), (3, 3), (4, 3)];
const NOT_THERE: &str = "column s: the pages are not where the footer says";

#[test]
fn pages_take_what_they_say_they_are_and_the_largest_is_known() {
    let body =
        [page(Kind::Dictionary, &[(1, 5), (2, 0)], 300, &[1; 300]), page(Kind::Data, &PLAIN, 20, &[1; 20])].concat();
    let told = look_at(Compression::UNCOMPRESSED, &body, body.len()).ok().unwrap();
    assert_eq!((told.pages.largest, told.taken, told.room, told.pages.delta), (300, 320, 80, false));
    let much = page(Kind::Data, &PLAIN, (64 << 20) + 1, &[]);
    let told = look_at(Compression::UNCOMPRESSED, &much, much.len()).err();
    assert_eq!(told.as_deref(), Some("the body holds more than 64 MiB once it is decoded"));
}

#[test]
fn pages_of_the_encodings_that_count_for_themselves_are_known_in_both_versions() {
    for encoding in [6, 7] {
        let old = page(Kind::Data, &[(1, 10), (2, encoding)], 0, &[]);
        let new = page(Kind::Data2(true), &[(1, 10), (2, 0), (3, 10), (4, encoding), (5, 0), (6, 0)], 0, &[]);
        for body in [old, new] {
            assert!(look_at(Compression::UNCOMPRESSED, &body, body.len()).ok().unwrap().pages.delta, "{encoding}");
        }
    }
}

#[test]
fn more_values_or_entries_than_may_be_are_refused_however_few_bytes_they_are() {
    let half = (2 << 20) + 1;
    let many = "the body holds more than 4194304 rows or elements of one column";
    let data = page(Kind::Data, &[(1, half), (2, 0)], 0, &[]);
    let twice = [&data[..], &data].concat();
    let dictionary = page(Kind::Dictionary, &[(1, 2 * half), (2, 0)], 0, &[]);
    assert!(look_at(Compression::UNCOMPRESSED, &data, data.len()).is_ok());
    for body in [twice, dictionary] {
        assert_eq!(look_at(Compression::UNCOMPRESSED, &body, body.len()).err().as_deref(), Some(many));
    }
}

#[test]
fn pages_that_are_not_where_they_should_be_are_refused() {
    let body = page(Kind::Data, &PLAIN, 20, &[1; 20]);
    let told = |body: &[u8], length| look_at(Compression::UNCOMPRESSED, body, length).err();
    assert_eq!(told(&body, body.len()), None);
    // Behind the body, and cut off within it.
    assert_eq!(told(&body, body.len() + 1).as_deref(), Some(NOT_THERE));
    assert_eq!(told(&body, body.len() - 1).as_deref(), Some(NOT_THERE));
    // One that does not say how many values it has.
    let silent = page(Kind::Data, &PLAIN[1..], 20, &[1; 20]);
    assert_eq!(told(&silent, silent.len()).as_deref(), Some(NOT_THERE));
}

#[test]
fn of_a_page_of_version_2_only_what_is_behind_the_levels_is_compressed() {
    let gzip = Compression::GZIP(GzipLevel::default());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&[7; 100]).unwrap();
    let packed = packed.finish().unwrap();
    let says = |levels| [(1, 10), (2, 0), (3, 10), (4, 0), (5, levels), (6, levels)];
    let told = |kind, levels, size, bytes: &[u8]| {
        let body = page(kind, &says(levels), size, bytes);
        look_at(gzip, &body, body.len()).err()
    };
    let page = [&[0; 8][..], &packed].concat();
    assert_eq!(told(Kind::Data2(true), 4, 108, &page), None);
    assert!(told(Kind::Data2(true), 4, 107, &page).unwrap().contains("another size"));
    assert_eq!(told(Kind::Data2(false), 4, 108, &[0; 108]), None);
    // Levels that are longer than the page, or than it is once decompressed.
    assert_eq!(told(Kind::Data2(true), 60, 1000, &page).as_deref(), Some(NOT_THERE));
    assert_eq!(told(Kind::Data2(true), 4, 7, &page).as_deref(), Some(NOT_THERE));
}
