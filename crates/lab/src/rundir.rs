//! The run directory: events are written as they come, by a thread of its own; the rest when the run is over.
//!
//! An interrupted run leaves `events.jsonl` and a manifest that says `complete: false`.

use crate::error::{Error, file};
use crate::summarise::{Digest, Returned};
use danki_explain::{Part, part_key};
use danki_record::{Event, Manifest, Received, Recording, csv};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Events kept in memory for the summary; later ones are only in the file. Some 400 bytes each.
const EVENTS_MAX: usize = 2_000_000;
/// How long the file may lag behind.
const FLUSH: Duration = Duration::from_millis(200);

/// A run directory under way.
pub struct RunDir {
    path: PathBuf,
    writer: Option<JoinHandle<io::Result<Written>>>,
    ending: Arc<AtomicBool>,
}

/// What the writer thread kept.
#[derive(Debug, Default)]
pub struct Written {
    /// Events in order of arrival.
    pub events: Vec<Event>,
    /// Those that the recorder had no room for.
    pub dropped: u64,
    /// Those that are in the file but not here.
    pub only_in_file: u64,
}

impl RunDir {
    /// Makes the directory; its parents too.
    pub fn create(path: &Path) -> Result<PathBuf, Error> {
        fs::create_dir_all(path).map_err(file("create", path))?;
        path.canonicalize().map_err(file("open", path))
    }

    /// Begins to write events into the directory.
    pub fn start(path: &Path, recording: Recording) -> Result<RunDir, Error> {
        let events = path.join("events.jsonl");
        let out = File::create(&events).map_err(file("create", &events))?;
        let ending = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ending);
        let work = move || write_events(&recording, BufWriter::new(out), &told);
        let writer = thread::Builder::new().name("danki-writer".to_owned()).spawn(work);
        let writer = writer.map_err(file("start the writer of", &events))?;
        Ok(RunDir { path: path.to_path_buf(), writer: Some(writer), ending })
    }

    /// Waits until everything recorded is on disk. All recorders should be gone by now; one that is not cannot hold the
    /// run up.
    pub fn finish(mut self) -> Result<Written, Error> {
        self.ending.store(true, Ordering::Release);
        let writer = self.writer.take().expect("taken only here");
        let events = self.path.join("events.jsonl");
        let joined = writer.join().map_err(|_| Error::Broken("the writer of events.jsonl has panicked"))?;
        joined.map_err(file("write", &events))
    }
}

fn write_events(recording: &Recording, mut out: impl Write, ending: &AtomicBool) -> io::Result<Written> {
    let mut written = Written::default();
    loop {
        match recording.receive(FLUSH) {
            Received::Event(event) => {
                serde_json::to_writer(&mut out, &event)?;
                out.write_all(b"\n")?;
                if written.events.len() < EVENTS_MAX {
                    written.events.push(*event);
                } else {
                    written.only_in_file += 1;
                }
            }
            Received::Nothing if ending.load(Ordering::Acquire) => break,
            Received::Nothing => out.flush()?,
            Received::Ended => break,
        }
    }
    out.flush()?;
    written.dropped = recording.dropped();
    Ok(written)
}

/// `manifest.json`.
pub fn write_manifest(dir: &Path, manifest: &Manifest) -> Result<(), Error> {
    write_json(&dir.join("manifest.json"), manifest)
}

/// Everything that is made of the events: `summary.json`, the CSV files, `waterfalls.jsonl`, `responses.jsonl`.
pub fn write_digest(
    dir: &Path,
    digest: &Digest,
    events: &[Event],
    returned: &[Returned],
    zero_ns: u64,
) -> Result<(), Error> {
    write_json(&dir.join("summary.json"), &digest.summary)?;
    write_lines(&dir.join("invocations.csv"), invocation_lines(digest, zero_ns))?;
    write_lines(&dir.join("connections.csv"), connection_lines(events, zero_ns))?;
    let waterfalls = digest.explained.iter().flat_map(|e| e.waterfalls());
    write_lines(&dir.join("waterfalls.jsonl"), waterfalls.map(json_line))?;
    write_lines(&dir.join("responses.jsonl"), returned.iter().map(json_line))
}

/// `trace.otlp.json`: every invocation as OpenTelemetry has it.
pub fn write_traces(dir: &Path, manifest: &Manifest, events: &[Event]) -> Result<(), Error> {
    let run = danki_xray::Run { events, epoch_offset_ns: manifest.epoch_offset_ns };
    let request = danki_xray::otlp(&danki_xray::traces(&run), &manifest.name, &manifest.danki);
    let path = dir.join("trace.otlp.json");
    fs::write(&path, json_line(&request)).map_err(file("write", &path))
}

fn invocation_lines(digest: &Digest, zero_ns: u64) -> impl Iterator<Item = String> {
    let parts = Part::ALL.map(|part| format!("{}_ms", part_key(part)));
    let header = csv::line(csv::INVOCATION_COLUMNS.iter().map(|c| (*c).to_owned()).chain(parts));
    let mut all: Vec<_> = digest.explained.iter().flat_map(|e| &e.invocations).collect();
    all.sort_by_key(|(invocation, _)| invocation.dispatched_ns);
    let lines = all.into_iter().map(move |(invocation, waterfall)| {
        let parts = waterfall.iter().map(|(_, ns)| csv::ms(ns));
        csv::line(csv::invocation_fields(invocation, zero_ns).into_iter().chain(parts))
    });
    std::iter::once(header).chain(lines)
}

fn connection_lines(events: &[Event], zero_ns: u64) -> impl Iterator<Item = String> {
    let connections = events.iter().filter_map(move |event| match event {
        Event::Connection(connection) => Some(csv::line(csv::connection_fields(connection, zero_ns))),
        _ => None,
    });
    std::iter::once(csv::line(csv::CONNECTION_COLUMNS)).chain(connections)
}

fn json_line<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plain data with string keys") + "\n"
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value).expect("plain data with string keys") + "\n";
    fs::write(path, text).map_err(file("write", path))
}

fn write_lines(path: &Path, lines: impl Iterator<Item = String>) -> Result<(), Error> {
    let write = || -> io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        lines.into_iter().try_for_each(|line| out.write_all(line.as_bytes()))?;
        out.flush()
    };
    write().map_err(file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use danki_record::Recorder;

    #[test]
    fn what_is_recorded_is_on_disk() {
        let dir = tempfile::tempdir().expect("a directory");
        let (recorder, recording) = Recorder::bounded(10);
        let run = RunDir::start(dir.path(), recording).expect("started");
        recorder.record(Event::Caveat { text: "one".to_owned() });
        let leaked = recorder.clone();
        drop(recorder);
        let written = run.finish().expect("written although a recorder is still alive");
        drop(leaked);
        assert_eq!((written.events.len(), written.dropped), (1, 0));
        let text = fs::read_to_string(dir.path().join("events.jsonl")).expect("there");
        assert_eq!(
            text.lines().map(serde_json::from_str::<Event>).filter_map(Result::ok).collect::<Vec<_>>(),
            written.events
        );
    }
}
