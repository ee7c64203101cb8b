//! Container files of Avro: a header with the schema, then blocks of records, each compressed for itself.

use std::io::{Read, Write};

use super::binary::Cursor;
use crate::formats::columnar::{Budget, too_large};

/// What a file begins with.
pub(super) const MAGIC: &[u8] = b"Obj\x01";
const SCHEMA: &str = "avro.schema";
const CODEC: &str = "avro.codec";
/// Ends each block.
pub(super) type Sync = [u8; 16];

/// How blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Null,
    Deflate,
    Snappy,
    Bzip2,
    Xz,
    Zstandard,
}

impl Codec {
    const ALL: [(&str, Self); 6] = [
        ("null", Self::Null),
        ("deflate", Self::Deflate),
        ("snappy", Self::Snappy),
        ("bzip2", Self::Bzip2),
        ("xz", Self::Xz),
        ("zstandard", Self::Zstandard),
    ];

    /// The one of this name.
    pub(super) fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, codec)| *codec)
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, codec)| *codec == self).map_or("null", |(name, _)| name)
    }

    /// A block as it was, of no more bytes than the budget has.
    pub(super) fn decompress(self, block: &[u8], budget: &mut Budget) -> Result<Vec<u8>, String> {
        let plain = match self {
            Self::Null => {
                budget.take(block.len())?;
                return Ok(block.to_vec());
            }
            Self::Snappy => unsnap(block, budget)?,
            Self::Deflate => bounded(flate2::read::DeflateDecoder::new(block), budget)?,
            Self::Bzip2 => bounded(bzip2::read::BzDecoder::new(block), budget)?,
            Self::Xz => bounded(liblzma::read::XzDecoder::new(block), budget)?,
            Self::Zstandard => bounded(zstd::Decoder::new(block).map_err(|error| broken(&error))?, budget)?,
        };
        budget.take(plain.len())?;
        Ok(plain)
    }

    fn compress(self, block: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Null => Ok(block.to_vec()),
            Self::Snappy => {
                let mut out = snap::raw::Encoder::new().compress_vec(block)?;
                out.extend_from_slice(&crc32fast::hash(block).to_be_bytes());
                Ok(out)
            }
            Self::Deflate => {
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(block)?;
                encoder.finish()
            }
            Self::Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
                encoder.write_all(block)?;
                encoder.finish()
            }
            Self::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
                encoder.write_all(block)?;
                encoder.finish()
            }
            Self::Zstandard => zstd::encode_all(block, 0),
        }
    }
}

fn broken(error: &std::io::Error) -> String {
    format!("a block cannot be decompressed: {error}")
}

fn bounded(from: impl Read, budget: &Budget) -> Result<Vec<u8>, String> {
    let mut plain = Vec::new();
    from.take(budget.left() as u64 + 1).read_to_end(&mut plain).map_err(|error| broken(&error))?;
    if plain.len() > budget.left() { Err(too_large()) } else { Ok(plain) }
}

fn unsnap(block: &[u8], budget: &Budget) -> Result<Vec<u8>, String> {
    let told = |error: snap::Error| format!("a block cannot be decompressed: {error}");
    let (block, sum) = block.split_last_chunk::<4>().ok_or("a block is cut off")?;
    if snap::raw::decompress_len(block).map_err(told)? > budget.left() {
        return Err(too_large());
    }
    let plain = snap::raw::Decoder::new().decompress_vec(block).map_err(told)?;
    if crc32fast::hash(&plain) != u32::from_be_bytes(*sum) {
        return Err("a block is broken: its checksum is another".into());
    }
    Ok(plain)
}

/// What a file says of itself.
#[derive(Debug)]
pub(super) struct Header<'a> {
    /// The schema, as JSON.
    pub(super) schema: &'a [u8],
    /// The name of the codec.
    codec: &'a [u8],
    /// Ends each block.
    pub(super) sync: Sync,
}

impl<'a> Header<'a> {
    /// Reads the header; `None` if there is none.
    pub(super) fn read(from: &mut Cursor<'a>) -> Option<Self> {
        if from.take(MAGIC.len()).ok()? != MAGIC {
            return None;
        }
        let (mut schema, mut codec) = (None, &b"null"[..]);
        loop {
            let count = from.long().ok()?;
            if count == 0 {
                break;
            }
            if count < 0 {
                from.long().ok()?;
            }
            // Each takes bytes, so a count that is a lie ends with them.
            for _ in 0..count.unsigned_abs() {
                let (key, value) = (from.bytes().ok()?, from.bytes().ok()?);
                if key == SCHEMA.as_bytes() {
                    schema = Some(value);
                } else if key == CODEC.as_bytes() {
                    codec = value;
                }
            }
        }
        let sync = from.take(16).ok()?.first_chunk().copied()?;
        Some(Self { schema: schema?, codec, sync })
    }

    /// How blocks are compressed.
    pub(super) fn codec(&self) -> Result<Codec, String> {
        let name = String::from_utf8_lossy(self.codec);
        Codec::find(&name).ok_or_else(|| {
            let known: Vec<_> = Codec::ALL.iter().map(|(name, _)| *name).collect();
            format!("the codec of the file is none of {}", known.join(", "))
        })
    }
}

/// Writes one file.
#[derive(Debug)]
pub(super) struct Blocks {
    codec: Codec,
    sync: Sync,
    /// Records that are in no block yet.
    records: u64,
    pub(super) bytes: Vec<u8>,
}

impl Blocks {
    /// Begins a file with its header.
    pub(super) fn begin(schema: &str, codec: Codec, out: &mut Vec<u8>) -> Self {
        let sync = fastrand::u128(..).to_le_bytes();
        out.extend_from_slice(MAGIC);
        write_long(2, out);
        for (key, value) in [(SCHEMA, schema), (CODEC, codec.name())] {
            write_bytes(key.as_bytes(), out);
            write_bytes(value.as_bytes(), out);
        }
        write_long(0, out);
        out.extend_from_slice(&sync);
        Self { codec, sync, records: 0, bytes: Vec::new() }
    }

    /// A record has been added to `bytes`.
    pub(super) fn added(&mut self) {
        self.records += 1;
    }

    /// Makes a block of what there is.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        if self.records == 0 {
            return Ok(());
        }
        let block =
            self.codec.compress(&self.bytes).map_err(|error| format!("a block cannot be compressed: {error}"))?;
        write_long(i64::try_from(self.records).map_err(|_| "too many records")?, out);
        write_bytes(&block, out);
        out.extend_from_slice(&self.sync);
        self.records = 0;
        self.bytes.clear();
        Ok(())
    }
}

/// A number, in as few bytes as it needs.
pub(super) fn write_long(value: i64, out: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Bytes after their length.
pub(super) fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    // No buffer is longer.
    write_long(bytes.len() as i64, out);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_without_end_is_read_to_one_byte_more_than_there_is_room_for() {
        let mut budget = Budget::new();
        budget.take(budget.left() - 10_000).unwrap();
        assert_eq!(bounded(std::io::repeat(0), &budget), Err(too_large()));
        assert_eq!(bounded(std::io::repeat(0).take(10_000), &budget), Ok(vec![0; 10_000]));
    }

    #[test]
    fn a_block_of_snappy_is_of_the_size_and_the_checksum_that_it_says() {
        let plain = vec![7; 1000];
        let block = Codec::Snappy.compress(&plain).unwrap();
        let told = |block: &[u8]| Codec::Snappy.decompress(block, &mut Budget::new());
        assert_eq!(told(&block), Ok(plain));
        let mut other = block.clone();
        *other.last_mut().unwrap() ^= 1;
        assert_eq!(told(&other), Err("a block is broken: its checksum is another".into()));
        assert_eq!(told(&block[..3]), Err("a block is cut off".into()));
        // 100 MiB of nothing.
        assert_eq!(told(&[0x80, 0x80, 0x80, 0x32, 0, 0, 0, 0, 0]), Err(too_large()));
    }

    #[test]
    fn a_header_has_its_magic_and_a_schema_and_may_say_how_long_it_is() {
        let parts = |count: i64, keys: &[&str]| {
            let mut header = MAGIC.to_vec();
            write_long(count, &mut header);
            if count < 0 {
                write_long(99, &mut header);
            }
            for key in keys {
                write_bytes(key.as_bytes(), &mut header);
                write_bytes(b"bzip2", &mut header);
            }
            write_long(0, &mut header);
            [&header[..], &[7; 16]].concat()
        };
        let read = |header: &[u8]| {
            let header = Header::read(&mut Cursor::new(header))?;
            Some((header.schema.to_vec(), header.codec(), header.sync))
        };
        let whole = Some((b"bzip2".to_vec(), Ok(Codec::Bzip2), [7; 16]));
        assert_eq!(read(&parts(2, &[SCHEMA, CODEC])), whole);
        assert_eq!(read(&parts(-2, &[SCHEMA, CODEC])), whole);
        assert_eq!(read(&parts(1, &[CODEC])), None);
        let mut other = parts(2, &[SCHEMA, CODEC]);
        assert_eq!(read(&other[..other.len() - 1]), None);
        other[3] = 2;
        assert_eq!(read(&other), None);
    }
}
