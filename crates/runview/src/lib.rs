//! A finished run, read back from its directory and shown: as one HTML file, and as traces for other viewers.
//!
//! Reads `manifest.json`, `summary.json` and `events.jsonl` only, so that a run of another machine can be shown too. Numbers are not
//! computed again: what the page says is what `summary.json` says.

mod again;
mod page;
mod perfetto;
mod read;
mod speedscope;
mod text;

pub use again::context;
pub use page::{
    Calls, Columns, Connections, Cost, DETAILS, Database, EnvLife, Invocations, Page, Spans, assemble, build,
    html, write_html,
};
pub use perfetto::perfetto;
pub use read::{Error, Run, events};
pub use speedscope::speedscope;
pub use text::draw;
