//! Recorded events → where every nanosecond of every invocation went → what to conclude from it.
//!
//! ```no_run
//! # let events: Vec<danki_record::Event> = Vec::new();
//! let facts = danki_explain::Facts::gather(&events);
//! let variants = danki_explain::by_variant(&facts);
//! let context = danki_explain::Context::default();
//! for finding in danki_explain::findings(&facts, &variants, &context) {
//!     assert!(!finding.text.is_empty());
//! }
//! ```
//! The rules and their limits are in `waterfall` and in `docs/waterfall.md`.

mod calls;
mod context;
mod cpu;
mod database;
mod edges;
mod facts;
mod findings;
mod part;
mod predict;
mod spans;
mod summary;
mod variant;
mod wait;
mod waterfall;

pub use calls::{Call, Setup};
pub use context::{Context, DatabaseSetting, Setting};
pub use database::summarise as summarise_database;
pub use edges::{Edge, edges};
pub use facts::{ConnFacts, EnvFacts, Facts};
pub use findings::{Cause, EXAMPLES, Finding, findings};
pub use part::{Part, PartTimes};
pub use predict::{Predicted, SIZES_MB, predict};
pub use summary::{part_key, quantiles, summarise};
pub use variant::{PartSummary, Variant, by_variant};
pub use waterfall::{Segment, Waterfall, waterfall};
