//! The log of an env: its own lines, the platform's lines, and the last 4 KB for `LogType=Tail`.
//!
//! A function that floods its output is read as fast as it writes, but only so many lines per invocation are recorded; how many were not
//! is said in a line of its own. Reading never stops: a full pipe would block the function where Lambda does not.

use crate::logs::{LogHub, LogKind, LogRecord};
use crate::telemetry::{Kind, Telemetry};
use danki_model::telemetry::Platform;
use danki_model::{EnvId, LogFormat, Logging, RequestId};
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
/// Source of lines that an extension wrote.
const EXTENSION: &str = "extension";
/// `LogType=Tail` returns the last 4 KB.
const TAIL_BYTES: usize = 4 * 1024;

/// Whose log it is.
#[derive(Clone, Debug)]
pub struct Site {
    /// Function name.
    pub function: String,
    /// Function version.
    pub version: String,
    /// Log group.
    pub group: String,
    /// Log stream.
    pub stream: String,
    /// Format and levels.
    pub logging: Logging,
}

/// Writes lines of one env.
#[derive(Clone)]
pub struct Log {
    env: EnvId,
    site: Arc<Site>,
    recorder: Recorder,
    readers: LogHub,
    telemetry: Telemetry,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    request: Option<RequestId>,
    tail: VecDeque<String>,
    tail_bytes: usize,
    lines: usize,
    unrecorded_lines: usize,
    unrecorded_bytes: usize,
}

impl Log {
    /// A log without lines.
    pub fn new(env: EnvId, site: Site, recorder: Recorder, readers: LogHub) -> Log {
        let telemetry = Telemetry::default();
        Log { env, site: Arc::new(site), recorder, readers, telemetry, state: Arc::default() }
    }

    /// Who of the env's extensions reads along.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// Whose log it is.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// Something that the platform says: a line in the log's format, and telemetry.
    pub fn event(&self, event: &Platform) {
        let epoch_ms = clock::epoch_ns() / 1_000_000;
        self.telemetry.platform(event, epoch_ms);
        if let Some(line) = event.line(&self.site.logging, epoch_ms) {
            self.keep(&mut self.lock(), "platform", &line);
        }
    }

    /// A line of the platform that only the text format has, e.g. END.
    pub fn platform(&self, line: &str) {
        if self.site.logging.format == LogFormat::Text {
            self.keep(&mut self.lock(), "platform", line.trim_end_matches('\n'));
        }
    }

    /// Begins a new share of the log: an invocation's, or that of an init that none waits for.
    pub fn begin(&self, request: Option<RequestId>) {
        *self.lock() = State { request, ..State::default() };
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

    /// A line of a process of the env.
    fn process_line(&self, source: &str, line: &str) {
        let kind = if source == EXTENSION { Kind::Extension } else { Kind::Function };
        let json = self.site.logging.format == LogFormat::Json;
        if self.telemetry.is_active() {
            self.telemetry.line(kind, line, json, clock::epoch_ns() / 1_000_000);
        }
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
        self.readers.publish(|| LogRecord {
            at_epoch_ms: clock::epoch_ns() / 1_000_000,
            function: self.site.function.clone(),
            version: self.site.version.clone(),
            group: self.site.group.clone(),
            stream: self.site.stream.clone(),
            request_id: state.request.clone(),
            kind: match source {
                "platform" => LogKind::Platform,
                EXTENSION => LogKind::Extension,
                _ => LogKind::Function,
            },
            text: line.to_owned(),
        });
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

/// Reads stdout and stderr of one process until both end.
pub struct Capture {
    flush: mpsc::Sender<oneshot::Sender<()>>,
}

impl Capture {
    /// Starts reading a runtime.
    pub fn start(log: Log, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Capture> {
        Capture::of(log, ["stdout", "stderr"], stdout, stderr)
    }

    /// Starts reading an extension.
    pub fn start_extension(log: Log, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Capture> {
        Capture::of(log, [EXTENSION; 2], stdout, stderr)
    }

    fn of(
        log: Log,
        [of_out, of_err]: [&'static str; 2],
        stdout: OwnedFd,
        stderr: OwnedFd,
    ) -> io::Result<Capture> {
        let out = Stream::new(of_out, stdout)?;
        let err = Stream::new(of_err, stderr)?;
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
                log.process_line(self.source, &line);
                self.partial.clear();
            }
        }
    }

    fn end(&mut self, log: &Log) {
        if !self.partial.is_empty() {
            log.process_line(self.source, &String::from_utf8_lossy(&self.partial));
            self.partial.clear();
        }
        self.ended = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::LogNews;
    use std::io::Write;

    fn site(format: LogFormat) -> Site {
        Site {
            function: "f".to_owned(),
            version: "$LATEST".to_owned(),
            group: "/aws/lambda/f".to_owned(),
            stream: "s".to_owned(),
            logging: Logging { format, ..Logging::default() },
        }
    }

    #[tokio::test]
    async fn lines_reach_those_who_subscribed_in_the_log_s_format() {
        let (recorder, _recording) = Recorder::bounded(16);
        let hub = LogHub::new();
        let mut news = hub.subscribe();
        let log = Log::new(EnvId(1), site(LogFormat::Json), recorder, hub);
        let request = RequestId("id".to_owned());
        log.begin(Some(request.clone()));
        log.event(&Platform::Start {
            request: request.clone(),
            version: "$LATEST".to_owned(),
            trace_id: None,
        });
        log.platform("END RequestId: id");
        log.process_line("stdout", "hello");
        log.process_line(EXTENSION, "beside");
        let mut check = |kind: LogKind, begin: &str| match news.try_next() {
            Some(LogNews::Line(line)) => {
                assert_eq!((line.kind, line.request_id.as_ref()), (kind, Some(&request)));
                assert!(line.text.starts_with(begin), "{}", line.text);
            }
            other => panic!("{other:?}"),
        };
        check(LogKind::Platform, "{\"time\":\"");
        check(LogKind::Function, "hello");
        check(LogKind::Extension, "beside");
        assert_eq!(news.try_next(), None, "END is a line of the text format");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn lines_are_kept_in_order_and_a_flood_is_counted() {
        let (recorder, recording) = Recorder::bounded(LINES_MAX * 2);
        let log = Log::new(EnvId(1), site(LogFormat::Text), recorder, LogHub::new());
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
