//! The parts of an invocation.

use serde::Serialize;
use std::fmt;
use std::ops::{Index, IndexMut};

/// What an instant between dispatch and response was spent on. Each instant belongs to exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// No env had the event yet: none was free, one was being created, or it was being handed over.
    EnvWait,
    /// The env initialised on the caller's path.
    Init,
    /// The env was thawed.
    Thaw,
    /// A process of the env ran.
    CpuOn,
    /// The env was denied CPU by its quota.
    CpuThrottled,
    /// A DNS query was open.
    Dns,
    /// A TCP connection was being opened.
    TcpConnect,
    /// A TLS handshake was going on.
    Tls,
    /// A request or its response was on its way.
    RequestOnWire,
    /// An endpoint worked on a request.
    ServiceTime,
    /// The runtime was ready to run and had no CPU, though its quota was not used up: this machine woke a CPU or was busy with others.
    CpuWait,
    /// None of these: sleeping, waiting for something unrecorded.
    Unattributed,
}

impl Part {
    /// All parts, in the order in which they are shown.
    pub const ALL: [Part; 12] = [
        Part::EnvWait,
        Part::Init,
        Part::Thaw,
        Part::CpuOn,
        Part::CpuThrottled,
        Part::Dns,
        Part::TcpConnect,
        Part::Tls,
        Part::RequestOnWire,
        Part::ServiceTime,
        Part::CpuWait,
        Part::Unattributed,
    ];

    /// As in tables: `cpu throttled`.
    pub fn name(self) -> &'static str {
        match self {
            Part::EnvWait => "env wait",
            Part::Init => "init",
            Part::Thaw => "thaw",
            Part::CpuOn => "cpu on",
            Part::CpuThrottled => "cpu throttled",
            Part::Dns => "dns",
            Part::TcpConnect => "tcp connect",
            Part::Tls => "tls",
            Part::RequestOnWire => "request on the wire",
            Part::ServiceTime => "service time",
            Part::CpuWait => "cpu wait",
            Part::Unattributed => "unattributed",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Nanoseconds per part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartTimes([u64; Part::ALL.len()]);

impl PartTimes {
    /// Parts in order, with their ns.
    pub fn iter(&self) -> impl Iterator<Item = (Part, u64)> {
        Part::ALL.into_iter().zip(self.0)
    }

    /// Sum of all parts, ns.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Index<Part> for PartTimes {
    type Output = u64;
    fn index(&self, part: Part) -> &u64 {
        &self.0[part as usize]
    }
}

impl IndexMut<Part> for PartTimes {
    fn index_mut(&mut self, part: Part) -> &mut u64 {
        &mut self.0[part as usize]
    }
}

impl Serialize for PartTimes {
    /// As a map from part to ns.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}
