//! The capture file: classic pcap with nanoseconds, written by a thread of its own.
//!
//! The link never waits for the disk: packets go through a queue bounded in number and bytes, beyond which they are missing in the
//! file and counted. Format: IETF draft-ietf-opsawg-pcap. With offload, TCP checksums of the env's packets are not complete in the file.

use crate::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Magic number of a file with nanosecond time stamps.
const MAGIC_NS: u32 = 0xa1b2_3c4d;
/// LINKTYPE_RAW: packets begin with their IPv4 or IPv6 header.
const LINKTYPE_RAW: u32 = 101;
/// More than the longest packet.
const SNAPLEN: u32 = 262_144;
/// Packets that may wait for the disk.
const BOUND_PACKETS: usize = 16_384;
/// Their bytes: half a second at 1 Gbit/s.
const BOUND_BYTES: usize = 64 << 20;
/// When traffic pauses for this long, the file is complete up to it, should danki be killed.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// How long the end of a run waits for the disk.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

struct Captured {
    epoch_ns: u64,
    bytes: Vec<u8>,
    skip: usize,
}

/// The link's end of a capture.
pub(crate) struct Capture {
    sender: Option<SyncSender<Captured>>,
    waiting: Arc<AtomicUsize>,
    closed: Receiver<std::io::Result<()>>,
    path: PathBuf,
    dropped: u64,
}

impl Capture {
    pub(crate) fn create(path: &Path) -> Result<Capture, Error> {
        let refuse = |source| Error::Pcap { path: path.to_owned(), source };
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path).map_err(refuse)?);
        write_header(&mut file).and_then(|()| file.flush()).map_err(refuse)?;
        let (sender, receiver) = sync_channel(BOUND_PACKETS);
        let (done, closed) = sync_channel(1);
        let waiting = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name("danki-pcap".to_owned())
            .spawn(move || {
                let _ = done.try_send(write_all(&mut file, &receiver, &counter));
            })
            .map_err(|source| Error::Os { what: "cannot start a thread", source })?;
        Ok(Capture { sender: Some(sender), waiting, closed, path: path.to_owned(), dropped: 0 })
    }

    /// Hands a packet over that begins after `skip` bytes, or counts it as missing.
    pub(crate) fn packet(&mut self, epoch_ns: u64, bytes: Vec<u8>, skip: usize) {
        let length = bytes.len();
        let taken = self.waiting.load(Ordering::Relaxed) + length <= BOUND_BYTES && {
            self.waiting.fetch_add(length, Ordering::Relaxed);
            let sent = self
                .sender
                .as_ref()
                .is_some_and(|to| to.try_send(Captured { epoch_ns, bytes, skip }).is_ok());
            if !sent {
                self.waiting.fetch_sub(length, Ordering::Relaxed);
            }
            sent
        };
        self.dropped += u64::from(!taken);
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Waits until all is written.
    pub(crate) fn close(mut self) -> Result<(), Error> {
        self.sender = None;
        let late = || std::io::Error::from(std::io::ErrorKind::TimedOut);
        let outcome = self.closed.recv_timeout(CLOSE_WITHIN).unwrap_or_else(|_| Err(late()));
        outcome.map_err(|source| Error::Pcap { path: self.path.clone(), source })
    }
}

fn write_all(file: &mut impl Write, from: &Receiver<Captured>, waiting: &AtomicUsize) -> std::io::Result<()> {
    loop {
        match from.recv_timeout(FLUSH_EVERY) {
            Ok(captured) => {
                write_packet(file, &captured)?;
                waiting.fetch_sub(captured.bytes.len(), Ordering::Relaxed);
            }
            Err(RecvTimeoutError::Timeout) => file.flush()?,
            Err(RecvTimeoutError::Disconnected) => return file.flush(),
        }
    }
}

fn write_header(file: &mut impl Write) -> std::io::Result<()> {
    file.write_all(&MAGIC_NS.to_le_bytes())?;
    file.write_all(&[2, 0, 4, 0])?; // version 2.4
    file.write_all(&[0; 8])?; // reserved
    file.write_all(&SNAPLEN.to_le_bytes())?;
    file.write_all(&LINKTYPE_RAW.to_le_bytes())
}

fn write_packet(file: &mut impl Write, packet: &Captured) -> std::io::Result<()> {
    let seconds = u32::try_from(packet.epoch_ns / 1_000_000_000).unwrap_or(u32::MAX);
    let nanoseconds = (packet.epoch_ns % 1_000_000_000) as u32;
    let bytes = packet.bytes.get(packet.skip..).unwrap_or_default();
    let length = u32::try_from(bytes.len()).unwrap_or(SNAPLEN);
    for field in [seconds, nanoseconds, length, length] {
        file.write_all(&field.to_le_bytes())?;
    }
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_header_and_records_and_counts_what_is_too_much() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wire.pcap");
        let mut capture = Capture::create(&path).unwrap();
        capture.packet(1_500_000_000_000_000_007, vec![0x45; 30], 10);
        capture.packet(0, vec![0; BOUND_BYTES + 1], 0);
        assert_eq!(capture.dropped(), 1);
        capture.close().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 24 + 16 + 20);
        assert_eq!(bytes[..4], [0x4d, 0x3c, 0xb2, 0xa1]);
        assert_eq!(bytes[24..40], [0x00, 0x2f, 0x68, 0x59, 7, 0, 0, 0, 20, 0, 0, 0, 20, 0, 0, 0]);
    }

    #[test]
    fn says_which_file_it_cannot_write() {
        let error = Capture::create(Path::new("/nowhere/wire.pcap")).map(|_| ()).unwrap_err();
        assert!(error.to_string().starts_with("cannot write capture /nowhere/wire.pcap: "), "{error}");
    }
}
