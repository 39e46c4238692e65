//! What the two engines differ in: their programs, and how these are called.

use crate::{Config, mariadb, postgres};
use danki_db_proxy::config::EngineFamily;
use std::path::PathBuf;

/// Data, socket and all that the server writes, inside.
pub(crate) const DATA: &str = "/var/db";
/// What danki gives the server to read, inside: `server.crt`, `server.key`, `seed.sql`, `user.sql`.
pub(crate) const GIVEN: &str = "/etc/danki";

/// An engine's commands, all of which run inside as the server's user.
pub(crate) struct Engine {
    /// Debian's package of it.
    pub package: &'static str,
    /// What it needs, with paths.
    pub programs: Vec<(&'static str, PathBuf)>,
    /// Makes an empty data directory.
    pub install: Vec<String>,
    /// Runs until it is ended.
    pub server: Vec<String>,
    /// It has said this when it can be connected to.
    pub ready: &'static str,
    /// Makes the account, the database and the generated rows.
    pub seed: String,
    /// Runs `seed.sql`.
    pub as_admin: Vec<String>,
    /// Runs `user.sql`.
    pub as_user: Vec<String>,
}

impl Engine {
    pub(crate) fn of(config: &Config) -> Engine {
        match config.engine {
            EngineFamily::Mysql => mariadb::engine(config),
            EngineFamily::Postgresql => postgres::engine(config),
        }
    }
}

pub(crate) fn words_of<const N: usize>(argv: [&str; N]) -> Vec<String> {
    argv.map(str::to_owned).to_vec()
}
