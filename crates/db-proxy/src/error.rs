//! What can go wrong before a proxy serves.

use std::io;

/// Why a proxy cannot start, or not take a configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is wrong.
    #[error("{0}")]
    Config(String),
    /// An address cannot be used.
    #[error("cannot use the address {address}: {error}")]
    Address {
        /// As it was given.
        address: String,
        /// Why.
        error: io::Error,
    },
    /// A certificate, key or CA cannot be used.
    #[error("cannot use {path}: {why}")]
    Tls {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// The kernel refuses a thing that every proxy needs.
    #[error("{what}: {error}")]
    System {
        /// What was asked for.
        what: &'static str,
        /// Why it was refused.
        error: io::Error,
    },
}
