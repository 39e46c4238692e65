//! A database of the region: a private MariaDB or PostgreSQL under an RDS-like host name, and proxies before it.
//!
//! The server's processes live in the sandbox whose network is the region's, so the keeper ends them whatever becomes of danki, and its
//! files are on that sandbox's disk. The proxies are threads of danki that have entered that network. Functions reach both through the link
//! and pay for the way; a proxy and its database are beside each other, as in one availability zone.

mod config;
mod engine;
mod error;
mod mariadb;
mod postgres;
mod proxies;
mod server;

pub use config::{Class, Config, Proxy};
pub use danki_db_proxy::config::EngineFamily;
pub use error::Error;
pub use server::{Certificate, Database, Files, root};
