//! A run as text: what happened per invocation, per variant, where the time went, how it compares, what follows.
//!
//! Strings only; printing them is `cli`'s business. The CSV files of a run directory are `danki_record::csv`.

mod invocations;
mod service_map;
mod style;
mod table;
mod text;
mod variants;

pub use service_map::service_map;
pub use style::Style;
pub use table::{Align, Table, number, number_or_dash, percent};
pub use text::{expectations, text};
