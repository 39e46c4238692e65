//! What can go wrong, for people.

use danki_model::EnvId;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use thiserror::Error;

/// Why the link refused.
#[derive(Debug, Error)]
pub enum Error {
    /// A path's setting is outside its range.
    #[error("{setting} = {value} of a path; allowed: {allowed}")]
    Path {
        /// Which setting.
        setting: &'static str,
        /// Its value.
        value: String,
        /// The range.
        allowed: &'static str,
    },
    /// Loss or bandwidth would act on super-packets of up to 64 KiB instead of segments.
    #[error(
        "loss and bandwidth need single segments, but offload is on; hint: create the tuns without offload"
    )]
    Offload,
    /// Envs live in 10.0.0.0/8.
    #[error("env address {0}; allowed: 10.0.0.0/8")]
    Address(Ipv4Addr),
    /// The env or its address is attached already.
    #[error("{0} or its address {1} is attached already")]
    Attached(EnvId, Ipv4Addr),
    /// The kernel refused.
    #[error("{what}: {source}")]
    Os {
        /// What was asked for.
        what: &'static str,
        /// Its answer.
        source: std::io::Error,
    },
    /// The capture file cannot be written.
    #[error("cannot write capture {}: {source}", path.display())]
    Pcap {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The link's thread has ended.
    #[error("the link is stopped")]
    Stopped,
    /// The link's thread did not answer in time.
    #[error("the link did not answer within {0} ms")]
    NoAnswer(u128),
}
