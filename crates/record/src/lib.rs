//! The run directory's words: the one contract between those who produce facts and those who read them.
//!
//! Layer 0: schema and encoding only. Files are written by `lab`; producers hold a [`Recorder`].
//!
//! All `*_ns` fields are nanoseconds of the host's `CLOCK_MONOTONIC`, which is the one clock of a run; the manifest's
//! `epoch_offset_ns` turns them into wall-clock time.

pub mod csv;
mod event;
#[cfg(test)]
mod example;
mod finding;
mod manifest;
mod recorder;
mod summary;

pub use event::{
    ClosedBy, Connection, CpuSample, CpuSeries, CpuWaitCounted, CpuWaitSample, CpuWaitSeries, DatabaseEvent,
    DatabaseWhat, DnsQuery, EnvEvent, EnvWhat, Event, Flight, Idle, Invocation, LogLine, Refused, Request,
    SegmentDocument, Span, Start, Status, Tls, TraceHeader,
};
pub use finding::{Change, Confidence, Evidence, Finding, Level, Remedy};
pub use manifest::{Calibration, Machine, Manifest, Measurement, SCHEMA};
pub use recorder::{Received, Recorder, Recording};
pub use summary::{
    CaptureCounts, ConnectionCounts, DatabaseCounts, Expectation, Quantiles, RequestCounts, Summary,
    VariantSummary,
};
