//! Bodies that a client compressed before it sent them.

use std::io::{self, Read};

use bytes::Bytes;

const METHOD: i32 = 0x7 << 8;
const LZ4: i32 = 1 << 8;
const ZSTD: i32 = 2 << 8;
const ZLIB: i32 = 3 << 8;
/// Largest body taken out of a compressed one, in bytes: a broker takes 4 MiB (compressed) unless told otherwise, and
/// a frame has 16 MiB at most. A bomb ends here.
const LARGEST: u64 = 64 << 20;

/// The body as it was. The error says why it cannot be had.
pub(super) fn decompress(body: &Bytes, flags: i32) -> Result<Bytes, String> {
    let (name, plain) = match flags & METHOD {
        // Clients before 5.0 say nothing and mean zlib.
        0 | ZLIB => ("zlib", read(flate2::read::ZlibDecoder::new(&body[..]))),
        LZ4 => ("lz4", read(lz4_flex::frame::FrameDecoder::new(&body[..]))),
        ZSTD => ("zstd", zstd::stream::read::Decoder::new(&body[..]).and_then(read)),
        other => return Err(format!("the body is compressed by a method that is not known (number {})", other >> 8)),
    };
    plain.map_err(|error| format!("the body is said to be compressed by {name}, but: {error}"))
}

fn read(decoder: impl Read) -> io::Result<Bytes> {
    let mut plain = Vec::new();
    let size = decoder.take(LARGEST + 1).read_to_end(&mut plain)?;
    if size as u64 > LARGEST {
        return Err(io::Error::other(format!("it is larger than {} MiB", LARGEST >> 20)));
    }
    Ok(plain.into())
}
