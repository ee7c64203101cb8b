//! Pages in the codecs that the library unpacks to the end before it compares the size with the one that the page's header
//! says: they are unpacked into nothing first, within that size.

use std::io::{self, Read};

use parquet::basic::Compression;

/// A Brotli stream that begins with these seven bits has a window of up to a gibibyte, which the decompressor makes room
/// for; RFC 7932 does not know it.
const BROTLI_LARGE_WINDOW: u8 = 0x11;
const BROTLI_BUFFER: usize = 4096;

/// Refuses compressed bytes that are not of the size that is claimed for them.
pub(super) fn check(codec: Compression, packed: &[u8], claimed: usize) -> Result<(), String> {
    // The library unpacks nothing then.
    if claimed == 0 {
        return Ok(());
    }
    match codec {
        Compression::GZIP(_) => exactly(flate2::read::MultiGzDecoder::new(packed), claimed),
        Compression::BROTLI(_) => {
            if packed.first().is_some_and(|first| first & 0x7f == BROTLI_LARGE_WINDOW) {
                return Err("a page is compressed with a window that Brotli does not have".into());
            }
            exactly(brotli::Decompressor::new(packed, BROTLI_BUFFER), claimed)
        }
        // Hadoop's framing, whose sizes the library believes no more than they are, or else that of LZ4.
        Compression::LZ4 => match count(lz4_flex::frame::FrameDecoder::new(packed), claimed) {
            (unpacked, _) if unpacked > claimed as u64 => Err(other_size()),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn exactly(from: impl Read, claimed: usize) -> Result<(), String> {
    match count(from, claimed) {
        (_, Err(error)) => Err(format!("a page cannot be decompressed: {error}")),
        (unpacked, Ok(())) if unpacked != claimed as u64 => Err(other_size()),
        _ => Ok(()),
    }
}

fn other_size() -> String {
    "a page is of another size, once decompressed, than its header says".into()
}

/// How many bytes there are, counted to one more than `claimed`.
fn count(from: impl Read, claimed: usize) -> (u64, io::Result<()>) {
    let mut from = from.take(claimed as u64 + 1);
    let (mut counted, mut buffer) = (0, [0; 4096]);
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return (counted, Ok(())),
            Ok(read) => counted += read as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (counted, Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use parquet::basic::{BrotliLevel, GzipLevel};

    use super::*;

    #[test]
    fn a_page_that_unpacks_to_another_size_than_claimed_is_refused_in_every_codec_without_a_bound() {
        let plain = vec![0; 1 << 20];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&plain).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut packed = Vec::new();
        brotli::CompressorWriter::new(&mut packed, 4096, 1, 22).write_all(&plain).unwrap();
        let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
        lz4.write_all(&plain).unwrap();
        let lz4 = lz4.finish().unwrap();
        let codecs = [
            (Compression::GZIP(GzipLevel::default()), gzip, true),
            (Compression::BROTLI(BrotliLevel::default()), packed, true),
            (Compression::LZ4, lz4, false),
        ];
        for (codec, packed, both_ways) in codecs {
            assert_eq!(check(codec, &packed, plain.len()), Ok(()), "{codec}");
            assert!(check(codec, &packed, plain.len() - 1).unwrap_err().contains("another size"), "{codec}");
            assert_eq!(check(codec, &packed, plain.len() + 1).is_err(), both_ways, "{codec}");
        }
        let large = check(Compression::BROTLI(BrotliLevel::default()), &[0x11, 0x1e, 0, 0], 4);
        assert!(large.unwrap_err().contains("window"));
    }

    #[test]
    fn what_is_not_compressed_at_all_is_refused_unless_nothing_is_claimed_for_it() {
        for codec in [Compression::GZIP(GzipLevel::default()), Compression::BROTLI(BrotliLevel::default())] {
            assert!(check(codec, b"\xff\xff", 9).unwrap_err().contains("cannot be decompressed"), "{codec}");
            assert_eq!(check(codec, &[], 0), Ok(()), "{codec}");
        }
    }

    #[test]
    fn what_does_not_end_is_counted_to_one_more_than_was_claimed() {
        let (counted, ended) = count(io::repeat(0), 10_000);
        assert_eq!((counted, ended.is_ok()), (10_001, true));
    }
}
