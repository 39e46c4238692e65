//! What CPU profiles of invocations say, folded into one answer each: did it open a socket, do TLS, load modules, collect garbage?
//!
//! A `.cpuprofile` is V8's tree of call frames with samples. A sample counts for the innermost of the frames on its stack that belongs to
//! one of the questions. Function names and files are Node's own (v18 to v24). Python's profiles: `speedscope`.

mod speedscope;

use crate::error::{Error, file};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// A larger file is left alone: a minute of samples takes a tenth of it.
const PROFILE_MAX: u64 = 64 * 1024 * 1024;

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
    /// Garbage collection; unknown where the profiler does not see it.
    pub gc_ms: Option<f64>,
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

/// What a profiler writes: the directory below the run's profiles, the ending, and the reader.
type Kind = (&'static str, &'static str, fn(&str, &str) -> Option<ProfileVerdict>);
const KINDS: [Kind; 2] = [("", ".cpuprofile", verdict), ("python", ".speedscope.json", speedscope::verdict)];

/// Folds the profiles in a directory that envs wrote to into a file that is out of their reach.
pub fn fold(dir: &Path, verdicts_at: &Path) -> Result<Vec<ProfileVerdict>, Error> {
    let mut verdicts = Vec::new();
    for (below, ending, read) in KINDS {
        let dir = dir.join(below);
        if below.is_empty() || dir.is_dir() {
            fold_one(&dir, ending, read, &mut verdicts)?;
        }
    }
    verdicts.sort_by(|a, b| a.request_id.cmp(&b.request_id));
    let lines: Vec<String> = verdicts.iter().filter_map(|v| serde_json::to_string(v).ok()).collect();
    fs::write(verdicts_at, lines.join("\n") + "\n").map_err(file("write", verdicts_at))?;
    Ok(verdicts)
}

fn fold_one(
    dir: &Path,
    ending: &str,
    read: fn(&str, &str) -> Option<ProfileVerdict>,
    verdicts: &mut Vec<ProfileVerdict>,
) -> Result<(), Error> {
    let entries = fs::read_dir(dir).map_err(file("read", dir))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let Some(name) = path.file_name().and_then(|n| n.to_str()?.strip_suffix(ending)) else {
            continue;
        };
        // The function's user could write anything here, links to other places too.
        let is = fs::symlink_metadata(&path).map_err(file("read", &path))?;
        if !is.is_file() || is.len() > PROFILE_MAX {
            continue;
        }
        let text = String::from_utf8_lossy(&fs::read(&path).map_err(file("read", &path))?).into_owned();
        // A process that was killed while it wrote leaves half a file: no verdict of this one.
        verdicts.extend(read(name, &text));
    }
    Ok(())
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
    let work = of_stacks(&profile.nodes, &parent);
    let mut verdict = ProfileVerdict { request_id: request_id.to_owned(), ..ProfileVerdict::default() };
    let mut gc_ms = 0.0;
    verdict.created_socket = profile.nodes.iter().any(|node| makes_socket(&node.frame));
    for (id, delta_us) in profile.samples.iter().zip(&profile.deltas) {
        let Some(node) = at.get(id) else { continue };
        let ms = (*delta_us).max(0) as f64 / 1e3;
        match work[*node] {
            Work::Idle => continue,
            Work::Gc => gc_ms += ms,
            Work::Tls => verdict.tls_ms += ms,
            Work::Modules => verdict.modules_ms += ms,
            Work::Other => {}
        }
        verdict.busy_ms += ms;
    }
    verdict.gc_ms = Some(gc_ms);
    Some(verdict)
}

/// What each node's stack is busy with: its innermost frame that answers a question. Each node is looked at once, whatever the tree is
/// like: the file is the function's to write.
fn of_stacks(nodes: &[Node], parent: &[Option<usize>]) -> Vec<Work> {
    let mut known: Vec<Option<Work>> = nodes
        .iter()
        .zip(parent)
        .map(|(node, parent)| {
            let own = of_frame(&node.frame);
            (own != Work::Other || parent.is_none()).then_some(own)
        })
        .collect();
    let mut seen = vec![false; nodes.len()];
    for start in 0..nodes.len() {
        let mut path = Vec::new();
        let mut at = start;
        while known[at].is_none() && !std::mem::replace(&mut seen[at], true) {
            path.push(at);
            at = parent[at].unwrap_or(at);
        }
        // A ring leads back to where nothing is known.
        let work = known[at].unwrap_or(Work::Other);
        path.into_iter().for_each(|n| known[n] = Some(work));
    }
    known.into_iter().map(|work| work.unwrap_or(Work::Other)).collect()
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
            gc_ms: Some(0.4),
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

    #[test]
    fn only_plain_files_are_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let profiles = dir.path().join("profiles");
        fs::create_dir(&profiles).expect("made");
        std::os::unix::fs::symlink("/dev/zero", profiles.join("endless.cpuprofile")).expect("linked");
        fs::write(profiles.join("r.cpuprofile"), json!({"nodes": []}).to_string()).expect("written");
        fs::write(profiles.join("half.cpuprofile"), "{\"nodes\": [").expect("written");
        let verdicts = fold(&profiles, &dir.path().join("profiles.jsonl")).expect("folded");
        let ids: Vec<&str> = verdicts.iter().map(|v| v.request_id.as_str()).collect();
        assert_eq!(ids, ["r"]);
    }

    #[test]
    fn a_deep_stack_takes_no_longer_than_its_length() {
        let depth: u32 = 50_000;
        let mut nodes: Vec<_> = (1..depth).map(|id| node(id, "f", "", &[id + 1])).collect();
        nodes.push(node(depth, "Module._load", "node:internal/modules/cjs/loader", &[]));
        let samples: Vec<u32> = (1..=depth).collect();
        let text = json!({"nodes": nodes, "samples": samples, "timeDeltas": vec![1; depth as usize]});
        let got = verdict("r", &text.to_string()).expect("a profile");
        assert_eq!(got.modules_ms, 0.001);
    }
}
