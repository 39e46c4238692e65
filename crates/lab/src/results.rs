//! A finished run, as reports read it.

use crate::profiles::ProfileVerdict;
use crate::summarise::Returned;
use danki_record::{ClosedBy, Invocation, Manifest, Summary};
use std::path::PathBuf;

/// A run: its directory, set-up, numbers, and one row per invocation.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The run directory.
    pub dir: PathBuf,
    /// `manifest.json`.
    pub manifest: Manifest,
    /// `summary.json`.
    pub summary: Summary,
    /// What the experiment asks.
    pub description: String,
    /// Invocations in order of dispatch.
    pub rows: Vec<Row>,
    /// What the functions returned, in order of their ends.
    pub returned: Vec<Returned>,
    /// What CPU profiles say, where they were asked for.
    pub profiles: Vec<ProfileVerdict>,
}

/// One invocation with what it did on the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The invocation.
    pub invocation: Invocation,
    /// Its requests to the region, in order.
    pub calls: Vec<RowCall>,
    /// Time between the end of the variant's previous invocation on the same env and this one's start, ns.
    pub idle_ns: Option<u64>,
}

/// One request of an invocation.
#[derive(Clone, Debug, PartialEq)]
pub struct RowCall {
    /// `dynamodb`…
    pub service: String,
    /// With the connection set-up it needed, ms.
    pub ms: f64,
    /// The env's port.
    pub port: u16,
    /// The connection was opened for it.
    pub new_connection: bool,
    /// When its connection was opened, if that was recorded.
    pub opened: Option<Opened>,
    /// The env's connection to the same endpoint before, if this one is new.
    pub predecessor: Option<Predecessor>,
}

/// When a connection was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// In init.
    Init,
    /// In the invocation with this index.
    Invocation(u32),
}

/// A connection that was of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// The env's port.
    pub port: u16,
    /// When it was opened.
    pub opened: Opened,
    /// Who ended it; absent if nobody did.
    pub closed_by: Option<ClosedBy>,
    /// Time between its last response and its end, ns.
    pub idle_ns: Option<u64>,
}

impl Results {
    /// All published figures were met.
    pub fn all_within(&self) -> bool {
        self.summary.expect.iter().all(|e| e.within)
    }
}
