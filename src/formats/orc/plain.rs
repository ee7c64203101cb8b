//! A file without its compression, and without what nobody asks for.
//!
//! The library decompresses without a bound, panics at a block that cannot be decompressed, follows the types of columns
//! in circles if they go in circles, and makes room for whatever a length says. So the file is taken apart here, within
//! bounds, and put together again with what the library needs.

use bytes::Bytes;
use orc_rust::proto::{
    self, Footer, PostScript, StripeFooter, StripeInformation, column_encoding, stream::Kind as StreamKind, r#type,
};
use prost_orc::Message;
use std::io::Read;

use super::lengths;
use crate::formats::columnar::{Budget, MOST_BYTES, MOST_LEVELS, MOST_VALUES, too_large, too_many};

const MAGIC: &[u8] = b"ORC";
const MOST_COLUMNS: usize = 10_000;
/// What a value takes in memory, if not more.
const VALUE_BYTES: usize = 8;
const BROKEN: &str = "the file is broken: its parts are not where it says";

/// The file, and what is known of it.
pub(super) struct Plain {
    /// The file.
    pub(super) file: Bytes,
    /// The names of all its columns.
    pub(super) names: Vec<String>,
    /// Its rows.
    pub(super) rows: usize,
    /// Bytes that the texts of one row do not exceed, those in lists and maps left out.
    pub(super) largest: usize,
}

/// Takes a body apart and puts it together again with the columns `wanted`.
pub(super) fn plain(body: &[u8], wanted: &[&str]) -> Result<Plain, String> {
    if !body.starts_with(MAGIC) {
        return Err("the body is no ORC file: it does not begin with ORC".into());
    }
    let (length, rest) = body.split_last().ok_or(BROKEN)?;
    let (rest, tail) = last(rest, usize::from(*length))?;
    let tail = PostScript::decode(tail).map_err(|_| "the end of the file is cut off or broken")?;
    let size = tail.footer_length.and_then(|length| usize::try_from(length).ok()).ok_or(BROKEN)?;
    let (_, footer) = last(rest, size)?;
    let mut parts = Parts { codec: Codec::of(&tail)?, budget: Budget::new(), room: Budget::new(), largest: 1 };
    let footer = Footer::decode(&*parts.inflate(footer)?).map_err(|_| "the footer is broken")?;
    if footer.encryption.is_some() {
        return Err("the file is encrypted, which is not supported".into());
    }
    let kept = columns(&footer.types, wanted)?;
    let (mut file, mut stripes, mut rows) = (MAGIC.to_vec(), Vec::new(), 0_usize);
    for stripe in &footer.stripes {
        let here = usize::try_from(stripe.number_of_rows()).map_err(|_| too_many())?;
        rows = rows.checked_add(here).filter(|rows| *rows <= MOST_VALUES).ok_or_else(too_many)?;
        stripes.push(parts.stripe(body, stripe, &footer, &kept, &mut file)?);
    }
    let texts = footer.types.iter().zip(&kept).filter(|(ty, kept)| **kept && is_text(ty.kind())).count();
    let largest = parts.largest.saturating_mul(texts);
    let names = footer.types.first().map(|root| root.field_names.clone()).unwrap_or_default();
    let footer = Footer { stripes, statistics: Vec::new(), metadata: Vec::new(), ..footer };
    let footer = footer.encode_to_vec();
    file.extend_from_slice(&footer);
    let tail = PostScript {
        compression: Some(proto::CompressionKind::None.into()),
        compression_block_size: None,
        footer_length: Some(footer.len() as u64),
        metadata_length: Some(0),
        ..tail
    };
    let tail = tail.encode_to_vec();
    file.extend_from_slice(&tail);
    file.push(u8::try_from(tail.len()).map_err(|_| BROKEN)?);
    Ok(Plain { file: file.into(), names, rows, largest })
}

fn last(bytes: &[u8], length: usize) -> Result<(&[u8], &[u8]), String> {
    let at = bytes.len().checked_sub(length).ok_or(BROKEN)?;
    Ok(bytes.split_at(at))
}

/// Which columns are wanted: those of the given names, with all that is in them. Types stand in a list, each after the one
/// that it is in, and in no other: the library makes a tree of them, in which a type that is in two would stand twice, and
/// what is in it four times a level further down.
fn columns(types: &[proto::Type], wanted: &[&str]) -> Result<Vec<bool>, String> {
    const ORDER: &str = "the types of the file's columns are broken";
    if types.len() > MOST_COLUMNS {
        return Err(format!("the file has more than {MOST_COLUMNS} columns"));
    }
    let root = types.first().ok_or("the file has no columns")?;
    if root.kind() != r#type::Kind::Struct {
        return Err("the rows of the file are no records".into());
    }
    let (mut kept, mut levels) = (vec![false; types.len()], vec![0_usize; types.len()]);
    let mut inner = vec![false; types.len()];
    if let Some(first) = kept.first_mut() {
        *first = true;
    }
    for (index, ty) in types.iter().enumerate() {
        if ty.kind() == r#type::Kind::Union && kept.get(index) == Some(&true) {
            return Err("a column of the file is a union, which no type of a column is".into());
        }
        for (at, child) in ty.subtypes.iter().enumerate() {
            let child = *child as usize;
            if child <= index || child >= types.len() || std::mem::replace(&mut inner[child], true) {
                return Err(ORDER.into());
            }
            let level = levels.get(index).copied().unwrap_or(0) + 1;
            if level > MOST_LEVELS {
                return Err(format!("columns are nested more than {MOST_LEVELS} levels deep"));
            }
            let keep = match index {
                0 => ty.field_names.get(at).is_some_and(|name| wanted.contains(&name.as_str())),
                _ => kept.get(index) == Some(&true),
            };
            if let (Some(kept), Some(known)) = (kept.get_mut(child), levels.get_mut(child)) {
                (*kept, *known) = (keep, level);
            }
        }
    }
    Ok(kept)
}

/// How blocks of a file are compressed.
enum Codec {
    None,
    Zlib,
    Snappy,
    Lzo,
    Lz4,
    Zstd,
}

impl Codec {
    fn of(tail: &PostScript) -> Result<Self, String> {
        Ok(match proto::CompressionKind::try_from(tail.compression.unwrap_or(0)) {
            Ok(proto::CompressionKind::None) => Self::None,
            Ok(proto::CompressionKind::Zlib) => Self::Zlib,
            Ok(proto::CompressionKind::Snappy) => Self::Snappy,
            Ok(proto::CompressionKind::Lzo) => Self::Lzo,
            Ok(proto::CompressionKind::Lz4) => Self::Lz4,
            Ok(proto::CompressionKind::Zstd) => Self::Zstd,
            Err(_) => return Err("the file is compressed in a way that is not known".into()),
        })
    }

    /// A block as it was, of at most so many bytes.
    fn decompress(&self, block: &[u8], most: usize) -> Result<Vec<u8>, String> {
        fn broken(error: impl std::fmt::Display) -> String {
            format!("a block cannot be decompressed: {error}")
        }
        fn read(from: impl Read, most: usize) -> Result<Vec<u8>, String> {
            let mut plain = Vec::new();
            from.take(most as u64 + 1).read_to_end(&mut plain).map_err(broken)?;
            Ok(plain)
        }
        match self {
            Self::None => Ok(block.to_vec()),
            Self::Zlib => read(flate2::read::DeflateDecoder::new(block), most),
            Self::Zstd => read(zstd::Decoder::new(block).map_err(broken)?, most),
            Self::Snappy => {
                if snap::raw::decompress_len(block).map_err(broken)? > most {
                    return Err(too_large());
                }
                snap::raw::Decoder::new().decompress_vec(block).map_err(broken)
            }
            Self::Lz4 => {
                // No byte of a block stands for more than 255.
                let room = block.len().saturating_mul(255).min(most);
                lz4_flex::block::decompress(block, room).map_err(broken)
            }
            Self::Lzo => Err("the file is compressed with LZO, which is not supported".into()),
        }
    }
}

/// What is done to the parts of one file.
struct Parts {
    codec: Codec,
    budget: Budget,
    /// For what is in memory at once however few bytes stand for it: the values below lists and maps of a row, and the
    /// entries of dictionaries.
    room: Budget,
    largest: usize,
}

impl Parts {
    /// A part as it was: blocks, each with a header of three bytes.
    fn inflate(&mut self, part: &[u8]) -> Result<Vec<u8>, String> {
        if matches!(self.codec, Codec::None) {
            self.budget.take(part.len())?;
            return Ok(part.to_vec());
        }
        let (mut rest, mut plain) = (part, Vec::new());
        while let Some(([a, b, c], after)) = rest.split_first_chunk::<3>() {
            let header = u32::from_le_bytes([*a, *b, *c, 0]);
            let (block, after) = after.split_at_checked(header as usize >> 1).ok_or(BROKEN)?;
            rest = after;
            if header & 1 == 1 {
                self.budget.take(block.len())?;
                plain.extend_from_slice(block);
            } else {
                let block = self.codec.decompress(block, self.budget.left())?;
                self.budget.take(block.len())?;
                plain.extend_from_slice(&block);
            }
        }
        if rest.is_empty() { Ok(plain) } else { Err(BROKEN.into()) }
    }

    /// Appends a stripe to the new file; answers where it stands there.
    fn stripe(
        &mut self,
        body: &[u8],
        stripe: &StripeInformation,
        file: &Footer,
        kept: &[bool],
        out: &mut Vec<u8>,
    ) -> Result<StripeInformation, String> {
        let part = |offset: u64, length: u64| {
            let range = usize::try_from(offset).ok()?..usize::try_from(offset.checked_add(length)?).ok()?;
            body.get(range)
        };
        let data = stripe.index_length().checked_add(stripe.data_length()).ok_or(BROKEN)?;
        let footer = stripe.offset().checked_add(data).and_then(|at| part(at, stripe.footer_length())).ok_or(BROKEN)?;
        let footer = StripeFooter::decode(&*self.inflate(footer)?).map_err(|_| "the footer of a stripe is broken")?;
        self.dictionaries(&footer.columns, kept)?;
        let (start, mut at, mut streams) = (out.len(), stripe.offset(), Vec::new());
        let mut told = vec![Lengths::default(); file.types.len()];
        for stream in &footer.streams {
            let bytes = part(at, stream.length()).ok_or(BROKEN)?;
            at = at.checked_add(stream.length()).ok_or(BROKEN)?;
            let column = stream.column() as usize;
            let data = [
                StreamKind::Present,
                StreamKind::Data,
                StreamKind::Length,
                StreamKind::DictionaryData,
                StreamKind::Secondary,
            ];
            if kept.get(column) != Some(&true) || !data.contains(&stream.kind()) {
                continue;
            }
            let plain = self.inflate(bytes)?;
            if stream.kind() == StreamKind::Length {
                let encoding = footer.columns.get(column).ok_or(BROKEN)?.kind();
                let kind = file.types.get(column).ok_or(BROKEN)?.kind();
                let lengths = self.lengths(&plain, encoding, kind)?;
                if let Some(told) = told.get_mut(column) {
                    *told = lengths;
                }
            }
            let kind = file.types.get(column).map(proto::Type::kind);
            if stream.kind() == StreamKind::Secondary
                && matches!(kind, Some(r#type::Kind::Timestamp | r#type::Kind::TimestampInstant))
            {
                let encoding = footer.columns.get(column).ok_or(BROKEN)?.kind();
                nanoseconds(&plain, encoding)?;
            }
            out.extend_from_slice(&plain);
            streams.push(proto::Stream { length: Some(plain.len() as u64), ..*stream });
        }
        self.elements(&file.types, kept, &told, &footer.columns)?;
        let data_length = (out.len() - start) as u64;
        let footer = StripeFooter { streams, ..footer }.encode_to_vec();
        out.extend_from_slice(&footer);
        Ok(StripeInformation {
            offset: Some(start as u64),
            index_length: Some(0),
            data_length: Some(data_length),
            footer_length: Some(footer.len() as u64),
            ..stripe.clone()
        })
    }

    /// Takes room for the entries of the dictionaries of a stripe: the library reads those of all columns before the first
    /// row, and an entry of no bytes costs the file next to nothing.
    fn dictionaries(&mut self, encodings: &[proto::ColumnEncoding], kept: &[bool]) -> Result<(), String> {
        for (encoding, _) in encodings.iter().zip(kept).filter(|(_, kept)| **kept) {
            let entries = encoding.dictionary_size() as usize;
            if entries > MOST_VALUES {
                return Err(too_many());
            }
            self.room.take(entries.saturating_mul(VALUE_BYTES))?;
        }
        Ok(())
    }

    /// Takes room for the values below lists and maps of a stripe.
    ///
    /// A text of a dictionary is taken to be as long as the longest one there, since which of them stand in the lists is not
    /// looked at. That is never too little, and may be far too much: of a dictionary with one text of a kilobyte, lists of
    /// more than 65,000 elements are refused even if all the others are short. Bodies of queues are far from it.
    fn elements(
        &mut self,
        types: &[proto::Type],
        kept: &[bool],
        told: &[Lengths],
        encodings: &[proto::ColumnEncoding],
    ) -> Result<(), String> {
        // How many there are of each column below a list or map; each type stands after the one that it is in.
        let mut below = vec![None; types.len()];
        for (index, ty) in types.iter().enumerate().filter(|(index, _)| kept.get(*index) == Some(&true)) {
            let lengths = told.get(index).copied().unwrap_or_default();
            let here = below.get(index).copied().flatten();
            if let Some(count) = here {
                let dictionary = encodings.get(index).is_some_and(|encoding| is_dictionary(encoding.kind()));
                let each = if dictionary && is_text(ty.kind()) { lengths.longest } else { 0 };
                self.room.take(each.saturating_add(VALUE_BYTES).saturating_mul(count))?;
            }
            let inner =
                if matches!(ty.kind(), r#type::Kind::List | r#type::Kind::Map) { Some(lengths.sum) } else { here };
            for child in &ty.subtypes {
                if let Some(below) = below.get_mut(*child as usize) {
                    *below = inner;
                }
            }
        }
        Ok(())
    }

    /// Whether as many bytes or elements may be as the lengths say.
    fn lengths(
        &mut self,
        plain: &[u8],
        encoding: column_encoding::Kind,
        kind: r#type::Kind,
    ) -> Result<Lengths, String> {
        let elements = matches!(kind, r#type::Kind::List | r#type::Kind::Map);
        let most = if elements { MOST_VALUES } else { MOST_BYTES };
        let (mut sum, mut longest, mut count) = (0_usize, 0, 0_usize);
        let mut too_much = false;
        let read = lengths::each(plain, is_version_2(encoding), |length| {
            count += 1;
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let next = sum.checked_add(length).filter(|next| *next <= most && count <= MOST_VALUES);
            too_much = next.is_none();
            (sum, longest) = (next?, length.max(longest));
            Some(())
        });
        if !elements {
            self.largest = self.largest.max(longest);
        }
        match read {
            Some(()) => Ok(Lengths { sum, longest }),
            None if too_much => Err(if elements { too_many() } else { too_large() }),
            None => Err("the lengths of a column are cut off or broken".into()),
        }
    }
}

/// What a LENGTH stream says.
#[derive(Debug, Clone, Copy, Default)]
struct Lengths {
    sum: usize,
    longest: usize,
}

fn is_text(kind: r#type::Kind) -> bool {
    use r#type::Kind;
    matches!(kind, Kind::String | Kind::Varchar | Kind::Char | Kind::Binary)
}

fn is_dictionary(encoding: column_encoding::Kind) -> bool {
    matches!(encoding, column_encoding::Kind::Dictionary | column_encoding::Kind::DictionaryV2)
}

fn is_version_2(encoding: column_encoding::Kind) -> bool {
    matches!(encoding, column_encoding::Kind::DirectV2 | column_encoding::Kind::DictionaryV2)
}

/// Whether what is behind the seconds of timestamps is less than a second: it is a number without its noughts, and how
/// many they are in the three lowest bits. The library multiplies without looking.
fn nanoseconds(plain: &[u8], encoding: column_encoding::Kind) -> Result<(), String> {
    let (mut count, mut wrong) = (0_usize, false);
    let read = lengths::each(plain, is_version_2(encoding), |value| {
        count += 1;
        let noughts = match value & 7 {
            0 => 0,
            less => less as u32 + 1,
        };
        let nanoseconds = 10_u64.checked_pow(noughts).and_then(|power| (value >> 3).checked_mul(power));
        wrong = nanoseconds.is_none_or(|nanoseconds| nanoseconds >= 1_000_000_000);
        (!wrong && count <= MOST_VALUES).then_some(())
    });
    match read {
        Some(()) => Ok(()),
        None if wrong => {
            Err("the file has timestamps with broken fractions of a second, as ORC's writer for C++, and \
                              so pyarrow, writes them before 1970"
                .into())
        }
        None if count > MOST_VALUES => Err(too_many()),
        None => Err("the timestamps of a column are cut off or broken".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(kind: column_encoding::Kind) -> proto::ColumnEncoding {
        proto::ColumnEncoding { kind: Some(kind.into()), ..proto::ColumnEncoding::default() }
    }

    #[test]
    fn texts_of_a_dictionary_in_lists_are_as_large_as_they_could_be_and_all_values_take_room() {
        let typed = |kind: r#type::Kind, subtypes: &[u32]| proto::Type {
            kind: Some(kind.into()),
            subtypes: subtypes.to_vec(),
            ..proto::Type::default()
        };
        // ROW<l ARRAY<STRING>, s STRING>
        let types = [
            typed(r#type::Kind::Struct, &[1, 3]),
            typed(r#type::Kind::List, &[2]),
            typed(r#type::Kind::String, &[]),
            typed(r#type::Kind::String, &[]),
        ];
        let taken = |kind, count, longest| {
            let mut parts = Parts { codec: Codec::None, budget: Budget::new(), room: Budget::new(), largest: 1 };
            let list = Lengths { sum: count, longest: count };
            let text = Lengths { sum: longest, longest };
            let told = [Lengths::default(), list, text, Lengths { sum: MOST_BYTES, longest: MOST_BYTES }];
            let encodings = [column_encoding::Kind::Direct, column_encoding::Kind::DirectV2, kind, kind].map(encoded);
            parts.elements(&types, &[true; 4], &told, &encodings)?;
            Ok(MOST_BYTES - parts.room.left())
        };
        assert_eq!(taken(column_encoding::Kind::DirectV2, 1000, 100_000), Ok(8000));
        assert_eq!(taken(column_encoding::Kind::DictionaryV2, 1000, 100), Ok(108_000));
        assert_eq!(taken(column_encoding::Kind::DictionaryV2, 1000, 100_000), Err(too_large()));
    }

    fn told_of_lengths(plain: &[u8], kind: r#type::Kind) -> Result<usize, String> {
        let mut parts = Parts { codec: Codec::None, budget: Budget::new(), room: Budget::new(), largest: 1 };
        parts.lengths(plain, column_encoding::Kind::Direct, kind).map(|lengths| lengths.sum)
    }

    #[test]
    fn lengths_are_no_more_than_may_be_and_not_cut_off() {
        use r#type::Kind::{List, String};
        // One number: 64 MiB, and one more; 4,194,304 and one more.
        assert_eq!(told_of_lengths(&[0xff, 0x80, 0x80, 0x80, 0x20], String), Ok(64 << 20));
        assert_eq!(told_of_lengths(&[0xff, 0x81, 0x80, 0x80, 0x20], String), Err(too_large()));
        assert_eq!(told_of_lengths(&[0xff, 0x80, 0x80, 0x80, 0x02], List), Ok(4 << 20));
        assert_eq!(told_of_lengths(&[0xff, 0x81, 0x80, 0x80, 0x02], List), Err(too_many()));
        // Runs of 130 noughts.
        assert_eq!(told_of_lengths(&[0x7f, 0, 0].repeat(30_000), List), Ok(0));
        assert_eq!(told_of_lengths(&[0x7f, 0, 0].repeat(33_000), List), Err(too_many()));
        let broken = Err("the lengths of a column are cut off or broken".to_owned());
        assert_eq!(told_of_lengths(&[0x7f, 0], List), broken);
    }

    #[test]
    fn types_are_a_record_of_columns_neither_too_many_nor_too_deep() {
        let typed = |kind: r#type::Kind, subtypes: Vec<u32>| proto::Type {
            kind: Some(kind.into()),
            field_names: subtypes.iter().map(|at| format!("c{at}")).collect(),
            subtypes,
            ..proto::Type::default()
        };
        use r#type::Kind::{Int, List, Struct, Union};
        let told = |types: &[proto::Type]| columns(types, &["c1"]);
        assert_eq!(
            told(&[typed(Struct, vec![1, 2]), typed(Int, vec![]), typed(Int, vec![])]),
            Ok(vec![true, true, false])
        );
        let union = |at| {
            told(&[typed(Struct, vec![2, 1]), typed(if at == 1 { Union } else { Int }, vec![]), typed(Union, vec![])])
        };
        assert_eq!(union(2), Ok(vec![true, true, false]), "nobody wants it");
        assert!(union(1).unwrap_err().contains("is a union"));
        assert_eq!(told(&[typed(Int, vec![])]), Err("the rows of the file are no records".into()));
        let mut wide = vec![typed(Int, vec![]); 10_001];
        wide[0] = typed(Struct, (1..10_001).collect());
        assert_eq!(told(&wide[..10_000]), Err("the types of the file's columns are broken".into()));
        assert_eq!(told(&wide), Err("the file has more than 10000 columns".into()));
        let deep = |levels: u32| {
            let lists = (1..levels).map(|at| typed(List, vec![at + 1]));
            told(&std::iter::once(typed(Struct, vec![1])).chain(lists).chain([typed(Int, vec![])]).collect::<Vec<_>>())
        };
        assert!(deep(64).is_ok());
        assert_eq!(deep(65), Err("columns are nested more than 64 levels deep".into()));
    }
}
