//! py-spy's profiles in speedscope's format: for each thread, stacks of frames and how long each was seen.
//!
//! Python names what its standard library does: a socket is made by `create_connection`, TLS is in `ssl.py`, modules are loaded by
//! `importlib`. The collector is C code and has no frame; what it takes counts for whoever ran.

use super::{ProfileVerdict, Work};
use serde::Deserialize;
use std::borrow::Cow;

#[derive(Deserialize)]
struct File<'t> {
    #[serde(borrow)]
    shared: Shared<'t>,
    profiles: Vec<Thread>,
}

#[derive(Deserialize)]
struct Shared<'t> {
    #[serde(borrow)]
    frames: Vec<Frame<'t>>,
}

#[derive(Deserialize)]
struct Frame<'t> {
    #[serde(borrow)]
    name: Cow<'t, str>,
    #[serde(borrow, default)]
    file: Option<Cow<'t, str>>,
}

#[derive(Deserialize)]
struct Thread {
    /// Frames by number, outermost first.
    #[serde(default)]
    samples: Vec<Vec<usize>>,
    /// Seconds.
    #[serde(default)]
    weights: Vec<f64>,
}

/// The verdict of one profile; `None` if it is none.
pub(super) fn verdict(request_id: &str, text: &str) -> Option<ProfileVerdict> {
    let file: File<'_> = serde_json::from_str(text).ok()?;
    let work: Vec<Work> = file.shared.frames.iter().map(of_frame).collect();
    let sockets: Vec<bool> = file.shared.frames.iter().map(makes_socket).collect();
    let mut verdict =
        ProfileVerdict { request_id: request_id.to_owned(), gc_ms: None, ..ProfileVerdict::default() };
    for thread in &file.profiles {
        for (stack, seconds) in thread.samples.iter().zip(&thread.weights) {
            let ms = seconds.max(0.0) * 1e3;
            let answers = stack.iter().rev().filter_map(|frame| work.get(*frame));
            match answers.copied().find(|work| *work != Work::Other) {
                Some(Work::Tls) => verdict.tls_ms += ms,
                Some(Work::Modules) => verdict.modules_ms += ms,
                _ => {}
            }
            verdict.busy_ms += ms;
            verdict.created_socket |= stack.iter().any(|frame| sockets.get(*frame).is_some_and(|is| *is));
        }
    }
    Some(verdict)
}

fn of_frame(frame: &Frame<'_>) -> Work {
    let file = frame.file.as_deref().unwrap_or_default();
    let tls = ["/ssl.py", "/urllib3/util/ssl_.py", "/ssl_match_hostname.py"];
    if file.starts_with("<frozen importlib") || file.contains("/importlib/") {
        Work::Modules
    // Its body is run when it is loaded: that is no TLS yet.
    } else if frame.name != "<module>" && tls.iter().any(|end| file.ends_with(end)) {
        Work::Tls
    } else {
        Work::Other
    }
}

/// What only a new connection runs: the standard library's, urllib3's, and a handshake.
fn makes_socket(frame: &Frame<'_>) -> bool {
    let name = frame.name.rsplit('.').next().unwrap_or_default();
    let file = frame.file.as_deref().unwrap_or_default();
    match name {
        "create_connection" => file.ends_with("/socket.py") || file.ends_with("/urllib3/util/connection.py"),
        "_new_conn" | "connect" => file.ends_with("/connection.py") || file.ends_with("/http/client.py"),
        "do_handshake" | "wrap_socket" => file.ends_with("/ssl.py"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn samples_count_for_the_innermost_question() {
        let frame = |name: &str, file: &str| json!({ "name": name, "file": file, "line": 1, "col": null });
        let frames = [
            frame("handler", "/var/task/app.py"),
            frame("HTTPSConnection.connect", "/opt/python/urllib3/connection.py"),
            frame("SSLSocket.do_handshake", "/var/lang/lib/python3.11/ssl.py"),
            frame("_find_and_load", "<frozen importlib._bootstrap>"),
            frame("<module>", "/var/lang/lib/python3.11/ssl.py"),
        ];
        let threads = [json!({ "type": "sampled", "name": "MainThread", "unit": "seconds",
                "samples": [[0], [0, 1, 2], [0, 1, 2], [0, 3, 4], [99]], "weights": [0.002, 0.002, 0.002, 0.002, 0.002] })];
        let text = json!({ "shared": { "frames": frames }, "profiles": threads }).to_string();
        let got = verdict("r", &text).expect("a profile");
        assert!(got.created_socket && got.gc_ms.is_none());
        let rounded = [got.tls_ms, got.modules_ms, got.busy_ms].map(|ms| (ms * 10.0).round() / 10.0);
        assert_eq!(rounded, [4.0, 2.0, 10.0]);
    }

    #[test]
    fn what_is_no_profile_has_no_verdict() {
        for text in ["", "{}", "[1]", "{\"shared\": {\"frames\": []}, \"profiles\": [{\"samples\": [[-1]]}]}"]
        {
            assert_eq!(verdict("r", text), None, "{text}");
        }
    }
}
