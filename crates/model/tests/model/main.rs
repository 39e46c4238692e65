//! The state machines under arbitrary histories. One binary: linking each file by itself would take longer than running it.

mod concurrency;
mod fleet;
mod lifecycle;
mod shutdown;
