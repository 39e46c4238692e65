//! CloudWatch Logs: what functions wrote, to read.

use crate::api::{Api, now_ms};
use crate::arn::ACCOUNT;
use crate::fault::{Fault, Kind};
use crate::logs::{Group, Line};
use crate::request::{Outcome, Reply, Request};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Events of one answer (CloudWatch's own maximum).
const EVENTS: usize = 10_000;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Input {
    log_group_name: Option<String>,
    log_group_identifier: Option<String>,
    log_group_name_prefix: Option<String>,
    log_stream_name: Option<String>,
    log_stream_name_prefix: Option<String>,
    log_stream_names: Option<Vec<String>>,
    filter_pattern: Option<String>,
    start_time: Option<u64>,
    end_time: Option<u64>,
    start_from_head: Option<bool>,
    order_by: Option<String>,
    descending: Option<bool>,
    limit: Option<usize>,
    next_token: Option<String>,
}

pub fn answer(api: &Arc<Api>, request: &Request) -> Outcome {
    let target = request.header("x-amz-target").unwrap_or_default();
    let operation = target.rsplit('.').next().unwrap_or_default();
    let input: Input = request.json()?;
    let view = match operation {
        "DescribeLogGroups" => groups(api, &input),
        "DescribeLogStreams" => streams(api, &input)?,
        "GetLogEvents" => events(api, &input)?,
        "FilterLogEvents" => filtered(api, &input)?,
        "CreateLogGroup" => {
            let name = name(&input)?;
            let mut groups = api.logs.groups();
            if groups.contains_key(name) {
                let message = "The specified log group already exists";
                return refused("ResourceAlreadyExistsException", message);
            }
            groups.insert(name.to_owned(), Group::new(now_ms()));
            Value::Null
        }
        "DeleteLogGroup" => {
            let name = name(&input)?;
            api.logs.groups().remove(name).ok_or_else(missing)?;
            Value::Null
        }
        other => {
            return Err(Fault::new(
                Kind::NotOffered,
                format!("danki does not offer {other} of CloudWatch Logs"),
            ));
        }
    };
    let reply = if view.is_null() { Reply::empty(200) } else { Reply::json(200, &view) };
    Ok(Reply { content_type: "application/x-amz-json-1.1", ..reply })
}

fn refused(kind: &str, message: &str) -> Outcome {
    let reply = Reply::json(400, &json!({ "__type": kind, "message": message }));
    Ok(Reply { content_type: "application/x-amz-json-1.1", ..reply })
}

fn missing() -> Fault {
    Fault::not_found("The specified log group does not exist.")
}

fn name(input: &Input) -> Result<&str, Fault> {
    let name = input.log_group_name.as_deref().or(input.log_group_identifier.as_deref());
    let name = name.ok_or_else(|| Fault::constraint("null", "logGroupName", "Member must not be null"))?;
    // An identifier may be an ARN, whose seventh part is the name.
    Ok(if name.starts_with("arn:") { name.split(':').nth(6).unwrap_or(name) } else { name })
}

fn groups(api: &Api, input: &Input) -> Value {
    let prefix = input.log_group_name_prefix.as_deref().unwrap_or_default();
    let groups = api.logs.groups();
    let found = groups.iter().filter(|(name, _)| name.starts_with(prefix)).take(input.limit.unwrap_or(50));
    let views: Vec<Value> = found
        .map(|(name, group)| {
            let arn = format!("arn:aws:logs:{}:{ACCOUNT}:log-group:{name}", api.region());
            let bytes: usize = group.lines.iter().map(|l| l.text.len()).sum();
            json!({
                "logGroupName": name, "creationTime": group.created_ms, "metricFilterCount": 0,
                "arn": format!("{arn}:*"), "logGroupArn": arn, "storedBytes": bytes, "logGroupClass": "STANDARD",
            })
        })
        .collect();
    json!({ "logGroups": views })
}

fn streams(api: &Api, input: &Input) -> Result<Value, Fault> {
    let (groups, group_name) = (api.logs.groups(), name(input)?);
    let group = groups.get(group_name).ok_or_else(missing)?;
    let prefix = input.log_stream_name_prefix.as_deref().unwrap_or_default();
    let mut found: Vec<_> = group.streams.iter().filter(|(name, _)| name.starts_with(prefix)).collect();
    if input.order_by.as_deref() == Some("LastEventTime") {
        found.sort_by_key(|(_, times)| times.1);
    }
    if input.descending == Some(true) {
        found.reverse();
    }
    let views = found.into_iter().take(input.limit.unwrap_or(50)).map(|(stream, (first, last))| {
        let arn =
            format!("arn:aws:logs:{}:{ACCOUNT}:log-group:{group_name}:log-stream:{stream}", api.region());
        json!({
            "logStreamName": stream, "creationTime": first, "firstEventTimestamp": first,
            "lastEventTimestamp": last, "lastIngestionTime": last, "arn": arn, "storedBytes": 0,
        })
    });
    Ok(json!({ "logStreams": views.collect::<Vec<_>>() }))
}

fn within(input: &Input, line: &Line) -> bool {
    input.start_time.is_none_or(|from| line.at_ms >= from) && input.end_time.is_none_or(|to| line.at_ms < to)
}

/// Tokens are ids of lines: `f/ID` continues after it, `b/ID` before it. As on AWS, a token that leads nowhere comes back.
fn events(api: &Api, input: &Input) -> Result<Value, Fault> {
    let groups = api.logs.groups();
    let group = groups.get(name(input)?).ok_or_else(missing)?;
    let stream = input.log_stream_name.as_deref().unwrap_or_default();
    if !group.streams.contains_key(stream) {
        return Err(Fault::not_found("The specified log stream does not exist."));
    }
    let limit = input.limit.unwrap_or(EVENTS).clamp(1, EVENTS);
    let token = input.next_token.as_deref().unwrap_or_default();
    let id = |prefix: &str| token.strip_prefix(prefix).and_then(|id| id.parse::<u64>().ok());
    let (after, before) = (id("f/"), id("b/"));
    let fits = |l: &&Line| {
        l.stream == stream
            && within(input, l)
            && after.is_none_or(|id| l.id > id)
            && before.is_none_or(|id| l.id < id)
    };
    let all: Vec<&Line> = group.lines.iter().filter(fits).collect();
    let from_head = input.start_from_head == Some(true) || after.is_some();
    let from = if from_head { 0 } else { all.len().saturating_sub(limit) };
    let page: Vec<&Line> = all.into_iter().skip(from).take(limit).collect();
    let views: Vec<Value> = page
        .iter()
        .map(|l| json!({ "timestamp": l.at_ms, "message": l.text, "ingestionTime": l.at_ms }))
        .collect();
    let known = after.or(before).unwrap_or(0);
    let (first, last) = (page.first().map_or(known, |l| l.id), page.last().map_or(known, |l| l.id));
    Ok(
        json!({ "events": views, "nextForwardToken": format!("f/{last}"), "nextBackwardToken": format!("b/{first}") }),
    )
}

/// A pattern's plain words must all occur; `?word` is one of several, `-word` must not. Other syntax is refused.
fn filtered(api: &Api, input: &Input) -> Result<Value, Fault> {
    let pattern = Pattern::read(input.filter_pattern.as_deref().unwrap_or_default())?;
    let groups = api.logs.groups();
    let group = groups.get(name(input)?).ok_or_else(missing)?;
    let limit = input.limit.unwrap_or(EVENTS).clamp(1, EVENTS);
    let after = input.next_token.as_deref().and_then(|id| id.parse::<u64>().ok()).unwrap_or(0);
    let prefix = input.log_stream_name_prefix.as_deref().unwrap_or_default();
    let chosen = |l: &Line| {
        input.log_stream_names.as_ref().is_none_or(|names| names.contains(&l.stream))
            && l.stream.starts_with(prefix)
    };
    let mut found =
        group.lines.iter().filter(|l| l.id > after && within(input, l) && chosen(l) && pattern.fits(&l.text));
    let page: Vec<&Line> = found.by_ref().take(limit).collect();
    let more = found.next().is_some();
    let views: Vec<Value> = page
        .iter()
        .map(|l| {
            json!({
                "logStreamName": l.stream, "timestamp": l.at_ms, "message": l.text,
                "ingestionTime": l.at_ms, "eventId": format!("{:056}", l.id),
            })
        })
        .collect();
    let mut view = json!({ "events": views, "searchedLogStreams": [] });
    if let Some(last) = page.last().filter(|_| more) {
        view["nextToken"] = last.id.to_string().into();
    }
    Ok(view)
}

/// The part of CloudWatch's filter syntax that is about words.
#[derive(Debug, Default, PartialEq, Eq)]
struct Pattern {
    all: Vec<String>,
    any: Vec<String>,
    none: Vec<String>,
}

impl Pattern {
    fn read(text: &str) -> Result<Pattern, Fault> {
        let mut pattern = Pattern::default();
        let text = text.trim();
        if text.starts_with(['{', '[', '%']) {
            return Err(Fault::invalid(format!(
                "filterPattern {text:?}: danki filters by words and \"phrases\" only"
            )));
        }
        let mut rest = text;
        while !rest.is_empty() {
            let (list, after) = match rest.as_bytes()[0] {
                b'?' => (&mut pattern.any, &rest[1..]),
                b'-' => (&mut pattern.none, &rest[1..]),
                _ => (&mut pattern.all, rest),
            };
            let (word, next) = match after.strip_prefix('"') {
                Some(phrase) => phrase.split_once('"').unwrap_or((phrase, "")),
                None => after.split_once(char::is_whitespace).unwrap_or((after, "")),
            };
            if !word.is_empty() {
                list.push(word.to_owned());
            }
            rest = next.trim_start();
        }
        Ok(pattern)
    }

    fn fits(&self, text: &str) -> bool {
        let has = |word: &String| text.contains(word.as_str());
        self.all.iter().all(has)
            && !self.none.iter().any(has)
            && (self.any.is_empty() || self.any.iter().any(has))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_filter() {
        let check = |pattern: &str, text: &str, expect: bool| {
            assert_eq!(Pattern::read(pattern).expect("words").fits(text), expect, "{pattern} on {text}");
        };
        check("", "anything", true);
        check("ERROR", "an ERROR here", true);
        check("ERROR", "fine", false);
        check("\"two words\" REPORT", "REPORT two words", true);
        check("?a ?b", "xbx", true);
        check("?a ?b", "c", false);
        check("x -y", "x", true);
        check("x -y", "xy", false);
        assert!(Pattern::read("{ $.level = \"ERROR\" }").is_err());
    }

    proptest! {
        #[test]
        fn any_pattern_is_read_or_refused(text in "\\PC{0,40}") {
            Pattern::read(&text).ok();
        }
    }
}
