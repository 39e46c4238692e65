//! The parts of `danki-secrets`, a drop-in for the AWS Parameters and Secrets Lambda Extension. One thread owns the listener, the cache
//! and all decisions, so that a hit is a read, a look-up and a write; what must wait (upstream calls, the Extensions API) waits in
//! threads of its own and reports back. There is no async runtime: with two kinds of waiting it would cost more than it explains.
//!
//! From bytes to bytes: [`request`] reads a head, [`route`] says what is asked, [`desk`] decides (hit, wait, fetch), [`upstream`]
//! fetches, [`shape`] gives the answer AWS's form, [`page`] the HTTP around it. [`server`] moves the bytes.

pub mod cache;
pub mod clock;
pub mod date;
pub mod desk;
mod error;
pub mod extension;
pub mod json;
pub mod log;
pub mod metrics;
pub mod page;
mod pool;
pub mod request;
pub mod route;
mod run;
mod server;
pub mod settings;
pub mod shape;
pub mod upstream;
pub mod wanted;

pub use error::Error;
pub use run::run;
