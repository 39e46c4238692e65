//! `application/vnd.amazon.eventstream`: messages of headers and a payload, each with two checksums.

use bytes::{BufMut, Bytes, BytesMut};

/// Type tag of a string header.
const STRING: u8 = 7;

/// A message of AWS's event kind.
pub fn event(kind: &str, content_type: &str, payload: &[u8]) -> Bytes {
    message(&[(":message-type", "event"), (":event-type", kind), (":content-type", content_type)], payload)
}

/// Lengths, their checksum, headers, payload, the checksum of everything.
fn message(headers: &[(&str, &str)], payload: &[u8]) -> Bytes {
    let headers_bytes: usize = headers.iter().map(|(name, value)| 1 + name.len() + 1 + 2 + value.len()).sum();
    let total = 12 + headers_bytes + payload.len() + 4;
    let mut message = BytesMut::with_capacity(total);
    message.put_u32(u32::try_from(total).expect("a chunk is far below 4 GiB"));
    message.put_u32(u32::try_from(headers_bytes).expect("headers are short"));
    let prelude = crc32fast::hash(&message);
    message.put_u32(prelude);
    for (name, value) in headers {
        message.put_u8(u8::try_from(name.len()).expect("names are our own and short"));
        message.put_slice(name.as_bytes());
        message.put_u8(STRING);
        message.put_u16(u16::try_from(value.len()).expect("values are our own and short"));
        message.put_slice(value.as_bytes());
    }
    message.put_slice(payload);
    let all = crc32fast::hash(&message);
    message.put_u32(all);
    message.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message without headers and payload is a constant of AWS's own test vectors.
    #[test]
    fn the_empty_message_is_the_specification_s() {
        let expect: [u8; 16] = [0, 0, 0, 0x10, 0, 0, 0, 0, 0x05, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff];
        assert_eq!(message(&[], b"").as_ref(), expect);
    }

    #[test]
    fn lengths_add_up() {
        let bytes = event("PayloadChunk", "application/octet-stream", b"hello");
        let read = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four")) as usize;
        assert_eq!(read(0), bytes.len());
        let headers = read(4);
        assert_eq!(&bytes[12 + headers..bytes.len() - 4], b"hello");
    }
}
