//! A frame: two zero bytes, the length of the whole frame as a little-endian u32, one [`CmqProto`].

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;

use super::CmqProto;

/// Bytes before the message.
pub const HEADER: usize = 6;
/// The longest frame that is taken. Sixteen messages of 1 MiB, the most that any page of the documentation allows, and
/// what is around them; no limit of the TCP side is documented.
pub const LONGEST: usize = (16 << 20) + (64 << 10);

/// What is no frame. Nothing after it on the connection can be read either.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// It does not begin with two zero bytes.
    #[error("it begins with {0:#06x}, not with two zero bytes")]
    Magic(u16),
    /// Shorter than its own header, or longer than [`LONGEST`].
    #[error("its length is {0}, not {HEADER} to {LONGEST}")]
    Length(u32),
    /// Not the protobuf message.
    #[error("its message is unreadable")]
    Message(#[from] prost::DecodeError),
}

/// The frame of a message.
pub fn encode(message: &CmqProto) -> Bytes {
    let length = HEADER + message.encoded_len();
    let mut frame = BytesMut::with_capacity(length);
    frame.put_u16(0);
    // Bodies are bounded long before 4 GiB.
    frame.put_u32_le(u32::try_from(length).unwrap_or(u32::MAX));
    // Fails only on a buffer that is too small, and this one grows.
    let _ = message.encode(&mut frame);
    frame.freeze()
}

/// Takes the first frame from what was received; `None`: it is not complete yet. Bodies share the received buffer.
///
/// # Errors
/// On what is no frame; the connection is to be closed then.
pub fn decode(received: &mut BytesMut) -> Result<Option<CmqProto>, FrameError> {
    let Some((header, _)) = received.split_first_chunk::<HEADER>() else { return Ok(None) };
    let [first, second, length @ ..] = *header;
    if (first, second) != (0, 0) {
        return Err(FrameError::Magic(u16::from_be_bytes([first, second])));
    }
    let told = u32::from_le_bytes(length);
    let length = usize::try_from(told).unwrap_or(usize::MAX);
    if !(HEADER..=LONGEST).contains(&length) {
        return Err(FrameError::Length(told));
    }
    if received.len() < length {
        received.reserve(length - received.len());
        return Ok(None);
    }
    let mut frame = received.split_to(length).freeze();
    frame.advance(HEADER);
    Ok(Some(CmqProto::decode(frame)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::cmq::wire::Command;

    fn heartbeat() -> Bytes {
        encode(&CmqProto { seqno: 14, cmd: Command::Heartbeat.number(), ..CmqProto::default() })
    }

    #[test]
    fn a_frame_is_read_however_it_comes_in_and_what_follows_it_stays() {
        let frame = heartbeat();
        let mut received = BytesMut::new();
        for byte in frame.iter() {
            assert_eq!(decode(&mut received).expect("so far so good"), None);
            received.put_u8(*byte);
        }
        received.extend_from_slice(&frame[..7]);
        assert_eq!(decode(&mut received).expect("a frame").expect("complete").seqno, 14);
        assert_eq!(received, frame[..7]);
    }

    #[test]
    fn what_is_no_frame_is_refused_before_anything_is_kept_for_it() {
        let refused = |bytes: &[u8]| decode(&mut BytesMut::from(bytes)).expect_err("no frame").to_string();
        assert_eq!(refused(b"HTTP/1.1"), "it begins with 0x4854, not with two zero bytes");
        assert_eq!(refused(&[0, 0, 5, 0, 0, 0]), "its length is 5, not 6 to 16842752");
        assert_eq!(refused(&[0, 0, 255, 255, 255, 255]), "its length is 4294967295, not 6 to 16842752");
        assert_eq!(refused(&[0, 0, 7, 0, 0, 0, 255]), "its message is unreadable");
    }
}
