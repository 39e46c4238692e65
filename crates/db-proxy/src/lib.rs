//! The pooler: clients on one side, a database on the other, fewer connections there than here.
//!
//! [`start`] binds, and gives a [`Running`] whose thread serves until it is told to stop. Each proxy has one listener, one database,
//! one thread. Mode `rds` ties sessions to connections when RDS Proxy does, mode `smart` when it must.

mod auth;
mod conduit;
pub mod config;
mod engine;
mod error;
mod event;
mod http;
mod metrics;
mod mysql;
mod postgres;
mod protocol;
mod running;
mod slab;
mod tls;
mod turn;

pub use error::Error;
pub use event::{Event, Sink};
pub use metrics::{Latency, Metrics};
pub use running::{Resolve, Running, start, start_with};

use config::Config;
use danki_db_pool::Limits;

/// After so long without use a connection counts as idle (RDS Proxy's guide, on MaxIdleConnectionsPercent).
const IDLE_AFTER_NS: u64 = 5 * 60 * 1_000_000_000;
/// RDS Proxy closes unused connections some time after 24 hours.
const MAX_AGE_NS: u64 = 24 * 3600 * 1_000_000_000;

/// The pool's bounds under a configuration, when the database allows so many connections.
fn pool_limits(config: &Config, database_max: u32) -> Limits {
    let share = |percent: u32| (u64::from(database_max) * u64::from(percent) / 100) as u32;
    Limits {
        max: share(config.pool.max_connections_percent).max(1),
        max_idle: share(config.pool.max_idle_percent()),
        idle_after_ns: IDLE_AFTER_NS,
        max_age_ns: MAX_AGE_NS,
        borrow_timeout_ns: (config.pool.connection_borrow_timeout * 1e9) as u64,
        max_waiters: config.pool.max_waiters,
    }
}
