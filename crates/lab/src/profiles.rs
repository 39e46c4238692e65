//! What CPU profiles of invocations say, folded into one answer each: did it open a socket, do TLS, load modules, collect garbage?
//!
//! A `.cpuprofile` is V8's tree of call frames with samples. A sample counts for the innermost of the frames on its stack that belongs to
//! one of the questions. Function names and files are Node's own (v18 to v24).

use crate::error::{Error, file};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// The answer for one invocation. Times are CPU-profile samples summed, ms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileVerdict {
    /// The invocation's request id, or `init-…`.
    pub request_id: String,
    /// An agent made a socket for TLS. A profile is a sample: what takes less than its interval may be missed.
    pub created_socket: bool,
    /// In Node's TLS: contexts, handshakes, records.
    pub tls_ms: f64,
    /// Loading and compiling modules.
    pub modules_ms: f64,
    /// Garbage collection.
    pub gc_ms: f64,
    /// All samples but the idle ones.
    pub busy_ms: f64,
}

#[derive(Deserialize)]
struct Profile {
    nodes: Vec<Node>,
    #[serde(default)]
    samples: Vec<u32>,
    /// µs since the sample before.
    #[serde(rename = "timeDeltas", default)]
    deltas: Vec<i64>,
}

#[derive(Deserialize)]
struct Node {
    id: u32,
    #[serde(rename = "callFrame")]
    frame: Frame,
    #[serde(default)]
    children: Vec<u32>,
}

#[derive(Deserialize)]
struct Frame {
    #[serde(rename = "functionName")]
    function: String,
    url: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Idle,
    Gc,
    Tls,
    Modules,
    Other,
}

/// Folds the profiles of a run, which `host` had written, into `verdicts.jsonl` beside them.
pub fn fold(dir: &Path) -> Result<Vec<ProfileVerdict>, Error> {
    let mut verdicts = Vec::new();
    let entries = fs::read_dir(dir).map_err(file("read", dir))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let Some(name) = path.file_name().and_then(|n| n.to_str()?.strip_suffix(".cpuprofile")) else {
            continue;
        };
        let text = fs::read_to_string(&path).map_err(file("read", &path))?;
        // A process that was killed while it wrote leaves half a file: no verdict of this one.
        verdicts.extend(verdict(name, &text));
    }
    verdicts.sort_by(|a, b| a.request_id.cmp(&b.request_id));
    let lines: Vec<String> = verdicts.iter().filter_map(|v| serde_json::to_string(v).ok()).collect();
    let path = dir.join("verdicts.jsonl");
    fs::write(&path, lines.join("\n") + "\n").map_err(file("write", &path))?;
    Ok(verdicts)
}

/// The verdict of one profile; `None` if it is none.
pub fn verdict(request_id: &str, text: &str) -> Option<ProfileVerdict> {
    let profile: Profile = serde_json::from_str(text).ok()?;
    let at: HashMap<u32, usize> = profile.nodes.iter().enumerate().map(|(n, node)| (node.id, n)).collect();
    let mut parent: Vec<Option<usize>> = vec![None; profile.nodes.len()];
    for (n, node) in profile.nodes.iter().enumerate() {
        for child in node.children.iter().filter_map(|id| at.get(id)) {
            parent[*child] = Some(n);
        }
    }
    let work = |sample: usize| {
        // As many steps as there are nodes at most: a malformed tree may have a ring.
        let stack = std::iter::successors(Some(sample), |n| parent[*n]).take(profile.nodes.len());
        stack
            .map(|n| of_frame(&profile.nodes[n].frame))
            .find(|work| *work != Work::Other)
            .unwrap_or(Work::Other)
    };
    let mut verdict = ProfileVerdict { request_id: request_id.to_owned(), ..ProfileVerdict::default() };
    verdict.created_socket = profile.nodes.iter().any(|node| makes_socket(&node.frame));
    for (id, delta_us) in profile.samples.iter().zip(&profile.deltas) {
        let Some(node) = at.get(id) else { continue };
        let ms = (*delta_us).max(0) as f64 / 1e3;
        match work(*node) {
            Work::Idle => continue,
            Work::Gc => verdict.gc_ms += ms,
            Work::Tls => verdict.tls_ms += ms,
            Work::Modules => verdict.modules_ms += ms,
            Work::Other => {}
        }
        verdict.busy_ms += ms;
    }
    Some(verdict)
}

/// A profile is a sample: any of the functions that only a new socket runs will do.
fn makes_socket(frame: &Frame) -> bool {
    matches!(
        (frame.function.as_str(), frame.url.as_str()),
        ("createSocket" | "createConnection", "node:_http_agent" | "node:https")
            | (
                "TLSSocket" | "TLSSocket._init" | "TLSSocket._wrapHandle" | "onConnectSecure",
                "node:_tls_wrap"
            )
    )
}

fn of_frame(frame: &Frame) -> Work {
    match (frame.function.as_str(), frame.url.as_str()) {
        ("(idle)" | "(program)", _) => Work::Idle,
        ("(garbage collector)", _) => Work::Gc,
        (_, "node:_tls_wrap" | "node:_tls_common" | "node:tls" | "node:internal/tls/secure-context") => {
            Work::Tls
        }
        (_, url) if url.starts_with("node:internal/modules/") => Work::Modules,
        ("compileFunction" | "compileFunctionForCJSLoader" | "wrapSafe", _) => Work::Modules,
        _ => Work::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(id: u32, function: &str, url: &str, children: &[u32]) -> serde_json::Value {
        json!({"id": id, "callFrame": {"functionName": function, "url": url}, "children": children})
    }

    #[test]
    fn samples_count_for_the_innermost_question() {
        let nodes = [
            node(1, "(root)", "", &[2, 3, 6, 8]),
            node(2, "(idle)", "", &[]),
            node(3, "request", "node:https", &[4]),
            node(4, "createSocket", "node:_http_agent", &[5]),
            node(5, "connect", "node:_tls_wrap", &[]),
            node(6, "Module._load", "node:internal/modules/cjs/loader", &[7]),
            node(7, "", "file:///var/task/index.js", &[]),
            node(8, "(garbage collector)", "", &[]),
        ];
        let text = json!({"nodes": nodes, "samples": [2, 5, 5, 7, 8, 3], "timeDeltas": [9_000, 200, 300, 1_000, 400, 100]});
        let got = verdict("r", &text.to_string()).expect("a profile");
        let expect = ProfileVerdict {
            request_id: "r".to_owned(),
            created_socket: true,
            tls_ms: 0.5,
            modules_ms: 1.0,
            gc_ms: 0.4,
            busy_ms: 2.0,
        };
        assert_eq!(got, expect);
    }

    #[test]
    fn what_is_no_profile_has_no_verdict_and_a_ring_ends() {
        assert_eq!(verdict("r", "{\"nodes\": [{\"id\""), None);
        let ring = json!({"nodes": [node(1, "a", "", &[2]), node(2, "b", "", &[1])], "samples": [2, 9], "timeDeltas": [100, 5]});
        let got = verdict("r", &ring.to_string()).expect("a profile of sorts");
        assert!(!got.created_socket && got.busy_ms == 0.1);
    }
}
