//! Real envs, end to end. One binary: linking each file by itself would take longer than running it.

mod chaos;
mod concurrency;
mod database;
mod environment;
mod extensions;
mod isolation;
mod lifecycle;
mod network;
mod secrets;
mod streaming;
mod xray;
