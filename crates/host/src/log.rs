//! The log of an env: its own lines, the platform's lines, and the last 4 KB for `LogType=Tail`.
//!
//! A function that floods its output is read as fast as it writes, but only so many lines per invocation are recorded; how many were not
//! is said in a line of its own. Reading never stops: a full pipe would block the function where Lambda does not.

use danki_model::EnvId;
use danki_record::{Event, LogLine, Recorder};
use danki_sys::clock;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};

/// Lines recorded per invocation.
const LINES_MAX: usize = 10_000;
/// Longest line; the rest becomes the next line (CloudWatch's limit of an event was 256 KB).
const LINE_BYTES_MAX: usize = 256 * 1024;
/// `LogType=Tail` returns the last 4 KB.
const TAIL_BYTES: usize = 4 * 1024;

/// Writes lines of one env.
#[derive(Clone)]
pub struct Log {
    env: EnvId,
    recorder: Recorder,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    tail: VecDeque<String>,
    tail_bytes: usize,
    lines: usize,
    unrecorded_lines: usize,
    unrecorded_bytes: usize,
}

impl Log {
    /// A log without lines.
    pub fn new(env: EnvId, recorder: Recorder) -> Log {
        Log { env, recorder, state: Arc::default() }
    }

    /// A line of the platform, e.g. START.
    pub fn platform(&self, line: &str) {
        self.keep(&mut self.lock(), "platform", line.trim_end_matches('\n'));
    }

    /// Begins a new invocation's share of the log.
    pub fn begin(&self) {
        *self.lock() = State::default();
    }

    /// Ends an invocation's share of the function's own lines: says what was not recorded.
    pub fn end(&self) {
        let mut state = self.lock();
        if state.unrecorded_lines > 0 {
            let (lines, bytes) = (state.unrecorded_lines, state.unrecorded_bytes);
            self.keep(
                &mut state,
                "platform",
                &format!("[danki] {lines} more lines ({bytes} bytes) were not recorded"),
            );
        }
    }

    /// The last 4 KB of the current invocation's share.
    pub fn tail(&self) -> Vec<String> {
        self.lock().tail.iter().cloned().collect()
    }

    fn function_line(&self, source: &str, line: &str) {
        let mut state = self.lock();
        if state.lines >= LINES_MAX {
            state.unrecorded_lines += 1;
            state.unrecorded_bytes += line.len();
            return;
        }
        state.lines += 1;
        self.keep(&mut state, source, line);
    }

    fn keep(&self, state: &mut State, source: &str, line: &str) {
        state.tail_bytes += line.len();
        state.tail.push_back(line.to_owned());
        while state.tail_bytes > TAIL_BYTES && state.tail.len() > 1 {
            state.tail_bytes -= state.tail.pop_front().map_or(0, |l| l.len());
        }
        self.recorder.record(Event::Log(LogLine {
            at_ns: clock::monotonic_ns(),
            env: self.env,
            source: source.to_owned(),
            line: line.to_owned(),
        }));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads stdout and stderr of one runtime process until both end.
pub struct Capture {
    flush: mpsc::Sender<oneshot::Sender<()>>,
}

impl Capture {
    /// Starts reading.
    pub fn start(log: Log, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Capture> {
        let out = Stream::new("stdout", stdout)?;
        let err = Stream::new("stderr", stderr)?;
        let (flush, requests) = mpsc::channel(1);
        tokio::spawn(run(log, out, err, requests));
        Ok(Capture { flush })
    }

    /// Returns when all that was written so far has been read.
    pub async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        if self.flush.send(done).await.is_ok() {
            wait.await.ok();
        }
    }
}

async fn run(log: Log, mut out: Stream, mut err: Stream, mut requests: mpsc::Receiver<oneshot::Sender<()>>) {
    let mut wanted = true;
    while wanted || !(out.ended && err.ended) {
        tokio::select! {
            biased;
            request = requests.recv(), if wanted => {
                out.drain_now(&log);
                err.drain_now(&log);
                match request {
                    Some(done) => done.send(()).unwrap_or_default(),
                    None => wanted = false,
                }
            }
            _ = out.pipe.readable(), if !out.ended => out.drain(&log),
            _ = err.pipe.readable(), if !err.ended => err.drain(&log),
        }
    }
}

struct Stream {
    source: &'static str,
    pipe: pipe::Receiver,
    buffer: Vec<u8>,
    partial: Vec<u8>,
    ended: bool,
}

impl Stream {
    fn new(source: &'static str, fd: OwnedFd) -> io::Result<Stream> {
        let pipe = pipe::Receiver::from_owned_fd(fd)?;
        Ok(Stream { source, pipe, buffer: vec![0; 64 * 1024], partial: Vec::new(), ended: false })
    }

    /// Reads what is there, at most 16 buffers so that nobody else waits for a flood.
    fn drain(&mut self, log: &Log) {
        for _ in 0..16 {
            match self.pipe.try_read(&mut self.buffer) {
                Ok(0) => return self.end(log),
                Ok(n) => self.take(n, log),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.end(log),
            }
        }
    }

    /// Reads what is there now. Tokio may not know of it yet, so the pipe itself is asked.
    fn drain_now(&mut self, log: &Log) {
        while !self.ended {
            match rustix::io::read(&self.pipe, self.buffer.as_mut_slice()) {
                Ok(0) => self.end(log),
                Ok(n) => self.take(n, log),
                Err(_) => return,
            }
        }
    }

    fn take(&mut self, n: usize, log: &Log) {
        for piece in self.buffer[..n].split_inclusive(|b| *b == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.partial.len() >= LINE_BYTES_MAX {
                let line = String::from_utf8_lossy(self.partial.trim_ascii_end());
                log.function_line(self.source, &line);
                self.partial.clear();
            }
        }
    }

    fn end(&mut self, log: &Log) {
        if !self.partial.is_empty() {
            log.function_line(self.source, &String::from_utf8_lossy(&self.partial));
            self.partial.clear();
        }
        self.ended = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[tokio::test(flavor = "multi_thread")]
    async fn lines_are_kept_in_order_and_a_flood_is_counted() {
        let (recorder, recording) = Recorder::bounded(LINES_MAX * 2);
        let log = Log::new(EnvId(1), recorder);
        let (read, write) = io::pipe().expect("a pipe");
        let (read_err, write_err) = io::pipe().expect("a pipe");
        drop(write_err);
        let capture = Capture::start(log.clone(), read.into(), read_err.into()).expect("readable");
        let writer = std::thread::spawn(move || {
            let mut write = write;
            for n in 0..LINES_MAX + 7 {
                writeln!(write, "line {n}").expect("written");
            }
        });
        while !writer.is_finished() {
            tokio::task::yield_now().await;
        }
        capture.flush().await;
        log.end();
        drop(capture);
        let tail = log.tail();
        assert_eq!(
            tail.last().map(String::as_str),
            Some("[danki] 7 more lines (70 bytes) were not recorded")
        );
        assert!(tail.iter().map(String::len).sum::<usize>() <= TAIL_BYTES);
        drop(log);
        assert_eq!(recording.count(), LINES_MAX + 1);
    }
}
