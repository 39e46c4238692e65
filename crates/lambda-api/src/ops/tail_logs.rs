//! What `danki logs` reads: the lines of a function after an id, one JSON object each. With `wait`, the answer comes when there is one.

use crate::api::Api;
use crate::arn;
use crate::request::{Outcome, Reply, Request};
use serde_json::json;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for a line; then the answer is empty and the reader asks again.
const WAIT: Duration = Duration::from_secs(20);
/// Lines of one answer.
const LINES: usize = 1_000;

pub async fn tail_logs(api: Arc<Api>, request: Request) -> Outcome {
    let name = arn::function_name(request.parameter("FunctionName"))?.name;
    let group = {
        let account = api.account();
        let logging = &account.function(api.region(), &name)?.latest.configuration.logging;
        logging.log_group.clone().unwrap_or_else(|| danki_model::log::group_name(&name))
    };
    let after = request.query("after").and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut text = lines(&api, &group, after);
    if text.is_empty() && request.query("wait").is_some() {
        let mut newest = api.logs.after();
        let deadline = tokio::time::Instant::now() + WAIT;
        while text.is_empty() {
            let changed = tokio::time::timeout_at(deadline, newest.changed()).await;
            if !matches!(changed, Ok(Ok(()))) {
                break;
            }
            text = lines(&api, &group, after);
        }
    }
    Ok(Reply { content_type: "application/x-ndjson", ..Reply::bytes(200, text.into()) })
}

fn lines(api: &Api, group: &str, after: u64) -> String {
    let groups = api.logs.groups();
    let newer =
        groups.get(group).into_iter().flat_map(|g| &g.lines).filter(|line| line.id > after).take(LINES);
    newer.fold(String::new(), |mut text, line| {
        let view = json!({ "id": line.id, "at_ms": line.at_ms, "stream": line.stream, "text": line.text });
        // Writing to a string cannot fail.
        writeln!(text, "{view}").ok();
        text
    })
}
