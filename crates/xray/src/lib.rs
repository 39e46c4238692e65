//! X-Ray, without the network: the daemon's datagrams, tracing headers, sampling documents, and the traces of a run.
//!
//! A function's SDK sends segment documents ([`parse_datagram`]); `region` records them as they are. What Lambda itself would have sent
//! is derived from danki's own facts when traces are read ([`traces`]), so that the two always agree. Sources: X-Ray's "segment documents"
//! page and PutTraceSegments; the SDKs' emitters; the anatomy of real traces in `docs/xray.md`.

mod datagram;
mod distribution;
mod document;
mod filter;
mod header;
mod lambda;
mod otlp;
mod sampling;
mod table;
mod text;
mod trace;

pub use datagram::{BadDatagram, MAX_DOCUMENT_BYTES, parse_datagram};
pub use distribution::distribution;
pub use document::{Entity, Outcome};
pub use filter::{BadFilter, Compare, Field, Filter, Flag, Quantity};
pub use header::TraceHeader;
pub use otlp::otlp;
pub use sampling::answer as sampling_answer;
pub use table::{Named, durations, summary_table};
pub use text::render;
pub use trace::{Run, Trace, traces};
