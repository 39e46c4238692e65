//! The wire protocols of MySQL and PostgreSQL as a proxy needs them, and what a statement does to a session. Pure: bytes in, facts out.
//!
//! A proxy looks at the head of each message and passes the rest on, so nothing here decodes rows or copies payloads. Every reader is
//! total: outside bytes give `None` or an [`Error`], never a panic, and never an allocation larger than what was received.

mod cursor;
pub mod mysql;
pub mod postgres;
pub mod sql;

pub use cursor::Cursor;

/// Why bytes were not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A message ends before what it announces.
    #[error("{0} is cut short")]
    Short(&'static str),
    /// A message has a form that the protocol does not know.
    #[error("{0} is malformed")]
    Malformed(&'static str),
    /// A message is longer than what this phase of the protocol allows.
    #[error("{0} is too long")]
    TooLong(&'static str),
}
