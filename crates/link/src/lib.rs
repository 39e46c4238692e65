//! The link: a router in user space between the TUNs of the envs and the one of the region.
//!
//! Each packet is stamped when it comes in, held for half the round trip of its path, and written to the other side, by one thread
//! that does nothing else. From what passes an env's edge it keeps a ledger of TCP connections ([`danki_record::Connection`]), notes
//! when packets were under way ([`danki_record::Flight`]) and, if asked, captures all of it. A frozen env is *held*: nothing passes
//! its edge that a process could notice (bare acknowledgments do, see `held`), as if its whole virtual machine were paused. There is no other way out: what is not for the region is dropped and counted.
//!
//! Parts: [`parse_packet`] reads headers; [`Router`] decides where and when (pure); [`Ledger`] keeps the books (pure); the rest moves
//! bytes. `netem` is not needed. Round-trip times are exact to the thread's lateness, which [`Stats`] reports.

mod awake;
mod commands;
mod config;
mod connection;
mod error;
mod handle;
mod held;
mod lane;
mod ledger;
mod margin;
mod packet;
mod pcap;
mod poller;
mod router;
mod seen;
mod stats;
#[cfg(test)]
mod testing;
mod traffic;
mod worker;

pub use config::{BANDWIDTH_QUEUE_NS, BOUND_BYTES, Config, Path};
pub use error::Error;
pub use handle::{Link, LinkHandle};
pub use ledger::{Ledger, MAX_CONNECTIONS, Sight};
pub use packet::{Direction, Flags, Malformed, Packet, Segment, Tcp, parse_packet};
pub use router::{Due, PortId, Refusal, Router, is_region};
pub use stats::{Lateness, Stats};
