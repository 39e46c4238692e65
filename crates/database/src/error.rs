//! What can go wrong around a database.

use std::io;
use std::path::PathBuf;

/// Why there is no database, or none any more.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is outside of what is allowed.
    #[error("region.database: {key} = {value} is not allowed: {allowed}")]
    Setting {
        /// The setting, as a path.
        key: String,
        /// The value given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// This machine has no server.
    #[error("region.database: {program} is not on this machine")]
    Missing {
        /// Its name.
        program: &'static str,
        /// Where Debian has it.
        package: &'static str,
    },
    /// A program of the server failed; its last words.
    #[error("region.database: {what}: {said}")]
    Failed {
        /// What was tried.
        what: &'static str,
        /// What the program said last.
        said: String,
    },
    /// A file for the server cannot be written.
    #[error("region.database: cannot write {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel or the keeper refused.
    #[error("region.database: {0}")]
    Sys(#[from] danki_sys::Error),
    /// A proxy cannot start.
    #[error("region.database: proxy: {0}")]
    Proxy(#[from] danki_db_proxy::Error),
    /// The region's network cannot be entered.
    #[error("region.database: cannot enter the region's network: {0}")]
    Network(io::Error),
}

impl Error {
    /// The user's input is wrong.
    pub fn is_input(&self) -> bool {
        matches!(self, Error::Setting { .. } | Error::Proxy(danki_db_proxy::Error::Config(_)))
    }

    /// The next step, if one is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Missing { package, .. } => {
                Some(format!("install it: apt-get install {package} (no service has to run)"))
            }
            Error::Network(_) => Some("proxies in the region need root".to_owned()),
            _ => None,
        }
    }
}
