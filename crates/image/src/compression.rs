//! A layer's bytes as a plain tar. What they are is told by their beginning: manifests in the wild name the wrong type.

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::io::{self, BufRead, Chain, Cursor, Read};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Frames that are to be skipped begin with one of sixteen numbers (RFC 8878, 3.1.2).
const SKIPPED: u32 = 0x184d_2a50;

/// The tar in `layer`: gzip, zstd or plain.
pub(crate) fn plain<'r>(mut layer: impl BufRead + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let magic = layer.fill_buf()?;
    if magic.starts_with(GZIP) {
        Ok(Box::new(MultiGzDecoder::new(layer)))
    } else if magic.starts_with(&ZSTD) || is_skipped(magic) {
        Ok(Box::new(Frames { decoder: next_frame(layer)? }))
    } else {
        Ok(Box::new(layer))
    }
}

fn is_skipped(bytes: &[u8]) -> bool {
    let number = bytes.first_chunk::<4>().map(|four| u32::from_le_bytes(*four));
    number.is_some_and(|number| number & 0xffff_fff0 == SKIPPED)
}

/// All frames of a zstd stream: the decoder reads one.
struct Frames<R: Read> {
    decoder: Option<Decoder<R>>,
}

type Decoder<R> = StreamingDecoder<Chain<Cursor<[u8; 4]>, R>, FrameDecoder>;

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(decoder) = &mut self.decoder else { return Ok(0) };
            let n = decoder.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            let ended = self.decoder.take().expect("it has just been read from");
            self.decoder = next_frame(ended.into_inner().into_inner().1)?;
        }
    }
}

fn next_frame<R: Read>(mut source: R) -> io::Result<Option<Decoder<R>>> {
    loop {
        let mut magic = [0; 4];
        match source.read(&mut magic[..1])? {
            0 => return Ok(None),
            _ => source.read_exact(&mut magic[1..])?,
        }
        if !is_skipped(&magic) {
            let invalid = |e: ruzstd::decoding::errors::FrameDecoderError| {
                io::Error::new(io::ErrorKind::InvalidData, e.to_string())
            };
            return StreamingDecoder::new(Cursor::new(magic).chain(source)).map(Some).map_err(invalid);
        }
        let mut length = [0; 4];
        source.read_exact(&mut length)?;
        io::copy(&mut (&mut source).take(u32::from_le_bytes(length).into()), &mut io::sink())?;
    }
}
