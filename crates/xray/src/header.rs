//! `Root=1-…;Parent=…;Sampled=1`: which trace an invocation belongs to, and whether it is kept.

use crate::datagram::{is_hex, is_trace_id};
use std::fmt;

/// A tracing header. Fields of its own (`Lineage`, `Self`) are dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceHeader {
    /// The trace, `1-8 digits-24 digits`.
    pub root: String,
    /// The segment that asks, 16 digits.
    pub parent: Option<String>,
    /// Whether it is kept; absent: whoever comes next decides.
    pub sampled: Option<bool>,
}

impl TraceHeader {
    /// Reads a header; none if it names no valid trace.
    pub fn parse(text: &str) -> Option<TraceHeader> {
        let (mut root, mut parent, mut sampled) = (None, None, None);
        for (key, value) in text.split(';').take(16).filter_map(|part| part.split_once('=')) {
            match key.trim() {
                "Root" if is_trace_id(value) => root = Some(value.to_owned()),
                "Parent" if is_hex(value, 16) => parent = Some(value.to_owned()),
                "Sampled" => sampled = ["0", "1"].iter().position(|digit| *digit == value).map(|at| at == 1),
                _ => {}
            }
        }
        Some(TraceHeader { root: root?, parent, sampled })
    }

    /// A header from bits that the caller drew.
    pub fn new(epoch_s: u64, trace: u128, parent: u64, sampled: bool) -> TraceHeader {
        TraceHeader {
            root: format!("1-{:08x}-{:024x}", epoch_s & 0xffff_ffff, trace >> 32),
            parent: Some(format!("{parent:016x}")),
            sampled: Some(sampled),
        }
    }
}

impl fmt::Display for TraceHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Root={}", self.root)?;
        if let Some(parent) = &self.parent {
            write!(f, ";Parent={parent}")?;
        }
        self.sampled.map_or(Ok(()), |sampled| write!(f, ";Sampled={}", u8::from(sampled)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers() {
        let full = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=a:0";
        let read = TraceHeader::parse(full).expect("valid");
        assert_eq!(read.sampled, Some(true));
        assert_eq!(read.to_string(), full.split(";Lineage").next().unwrap_or_default());
        let bare = TraceHeader::parse("Root=1-5759e988-bd862e3fe1be46a994272793").expect("valid");
        assert_eq!((bare.parent, bare.sampled), (None, None));
        for none in ["", "Root=1-2-3", "Sampled=1", "Root"] {
            assert_eq!(TraceHeader::parse(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(epoch_s: u64, trace: u128, parent: u64, sampled: bool) {
            let header = TraceHeader::new(epoch_s, trace, parent, sampled);
            prop_assert_eq!(TraceHeader::parse(&header.to_string()), Some(header));
        }

        #[test]
        fn any_text_is_read_or_not(text in "[A-Za-z0-9=;-]{0,80}") {
            let _either = TraceHeader::parse(&text);
        }
    }
}
