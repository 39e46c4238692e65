use super::*;
use crate::{durations, otlp, render, summary_table};

const ROOT: &str = "1-5759e988-bd862e3fe1be46a994272793";

/// Lines of `events.jsonl`: a cold invocation whose SDK sent a call to AWS and, first under way and then done, one inside it.
fn events() -> Vec<Event> {
    let epoch = |ms: f64| 1_700_000_000.0 + ms / 1e3;
    let document = |id: &str, parent: &str, name: &str, from: f64, to: Option<f64>| {
        let mut document = json!({ "id": id, "name": name, "trace_id": ROOT, "parent_id": parent, "type": "subsegment",
            "start_time": epoch(from), "namespace": "aws" });
        match to {
            Some(to) => document["end_time"] = json!(epoch(to)),
            None => document["in_progress"] = json!(true),
        }
        json!({ "type": "segment", "at_ns": 60_000_000, "env": 1, "document": document })
    };
    let span = |from: u64, to: u64| json!({ "from_ns": from * 1_000_000, "to_ns": to * 1_000_000 });
    let lines = [
        json!({ "type": "trace", "at_ns": 30_000_000, "env": 1, "request_id": "r",
            "header": format!("Root={ROOT};Parent=00000000000000aa;Sampled=1") }),
        document("00000000000000c1", "00000000000000bb", "inner", 41.0, None),
        document("00000000000000bb", "00000000000000aa", "secretsmanager", 40.0, Some(55.0)),
        document("00000000000000c1", "00000000000000bb", "inner", 41.0, Some(50.0)),
        json!({ "type": "connection", "conn": 1, "env": 1, "client": "10.0.0.2:4000", "server": "198.18.2.1:443",
            "syn_ns": 42_000_000, "established_ns": 43_000_000, "bytes_up": 1, "bytes_down": 1, "retransmits": 0, "idle": [] }),
        json!({ "type": "request", "service": "secretsmanager", "operation": "GetSecretValue", "client": "10.0.0.2:4000",
            "ordinal": 1, "tls": null, "received": span(45, 46), "service_time": span(46, 49), "status": 200, "fault": null }),
        json!({ "type": "request", "service": "secretsmanager", "operation": "GetSecretValue", "client": "10.0.0.2:4000",
            "ordinal": 2, "tls": null, "received": span(57, 58), "service_time": span(58, 59), "status": 200, "fault": null }),
        json!({ "type": "invocation", "request_id": "r", "variant": "v", "index": 0, "env": 1, "start": "cold",
            "intended_ns": 0, "dispatched_ns": 1_400_000, "env_wait": null, "init": span(10, 30), "thaw": null,
            "delivered_ns": 30_500_000, "responded_ns": 60_000_000, "finished_ns": 61_000_000, "status": "ok",
            "duration_ms": 30.5, "billed_ms": 51, "init_ms": 20.0, "max_memory_used_mb": 40, "cpu_us": 1,
            "throttled_us": 0, "throttled_periods": 0, "response_bytes": 2 }),
    ];
    lines.into_iter().map(|line| serde_json::from_value(line).expect("an event")).collect()
}

const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

fn trace() -> Trace {
    let events = events();
    let mut all = traces(&Run { events: &events, epoch_offset_ns: EPOCH_NS });
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn find<'a>(trace: &'a Trace, name: &str) -> &'a Entity {
    trace.entities.iter().find(|e| e.name == name).expect("there")
}

/// Anatomy of real traces (`docs/xray.md`): service in ms, Initialization before the function's segment, Overhead after Invocation.
#[test]
fn lambda_s_own_segments_are_as_on_aws() {
    let trace = trace();
    let by_origin =
        |origin: &str| trace.entities.iter().find(|e| e.origin.as_deref() == Some(origin)).expect("there");
    let (service, function) = (by_origin("AWS::Lambda"), by_origin("AWS::Lambda::Function"));
    assert_eq!((service.start_ns - EPOCH_NS, service.end_ns), (1_000_000, Some(EPOCH_NS + 61_000_000)));
    assert_eq!(function.parent.as_ref(), Some(&service.id));
    let (init, run, over) =
        (find(&trace, "Initialization"), find(&trace, "Invocation"), find(&trace, "Overhead"));
    assert!(init.end_ns <= Some(function.start_ns));
    assert_eq!((run.id.as_str(), run.parent.as_ref()), ("00000000000000aa", Some(&function.id)));
    assert_eq!((Some(over.start_ns), over.len_ns()), (run.end_ns, Some(1_000_000)));
}

#[test]
fn what_sdks_sent_is_joined_and_the_wire_lies_inside_their_calls() {
    let trace = trace();
    assert!(trace.sampled);
    assert_eq!(find(&trace, "secretsmanager").parent.as_deref(), Some("00000000000000aa"));
    let inner = find(&trace, "inner");
    assert_eq!(inner.len_ns().map(|ns| (ns + 500_000) / 1_000_000), Some(9), "the finished one counts");
    assert_eq!(find(&trace, "tcp connect").parent.as_deref(), Some("00000000000000c1"));
    let calls = trace.entities.iter().filter(|e| e.name == "secretsmanager GetSecretValue");
    let parents: Vec<_> = calls.map(|e| e.parent.clone().unwrap_or_default()).collect();
    assert_eq!(
        parents,
        ["00000000000000c1", "00000000000000aa"],
        "the second one lies in no call of the SDK"
    );
}

#[test]
fn x_ray_s_json() {
    let json = trace().to_json();
    assert_eq!(json["Id"], ROOT);
    let documents: Vec<Value> = json["Segments"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|s| serde_json::from_str(s["Document"].as_str().expect("text")).expect("json"))
        .collect();
    assert_eq!(documents.len(), 2, "service and function; everything else lies inside");
    let function = &documents[1];
    assert_eq!((&function["trace_id"], &function["origin"]), (&json!(ROOT), &json!("AWS::Lambda::Function")));
    let names: Vec<_> =
        function["subsegments"].as_array().expect("a list").iter().map(|s| s["name"].clone()).collect();
    assert_eq!(names, ["Initialization", "Invocation", "Overhead"]);
    let call = &function["subsegments"][1]["subsegments"][0];
    assert_eq!((&call["name"], &call["subsegments"][0]["name"]), (&json!("secretsmanager"), &json!("inner")));
    assert!(!json.to_string().contains("tcp connect"));
}

#[test]
fn otlp_s_json_mapping() {
    let request = otlp(&[trace()], "run", "1.0");
    assert!(!request.to_string().contains("spans_left_out"));
    let spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("a list").clone();
    assert_eq!(spans.len(), trace().entities.len());
    for span in &spans {
        assert_eq!(span["traceId"], "5759e988bd862e3fe1be46a994272793");
        assert_eq!(span["spanId"].as_str().map(str::len), Some(16));
        let ns = |key: &str| {
            span[key].as_str().and_then(|text| text.parse::<u64>().ok()).expect("a number in text")
        };
        assert!(ns("startTimeUnixNano") <= ns("endTimeUnixNano"));
    }
    let kinds: Vec<_> =
        spans.iter().map(|s| (s["name"].as_str().unwrap_or_default(), s["kind"].clone())).collect();
    assert!(kinds.contains(&("v", json!(2))) && kinds.contains(&("secretsmanager", json!(3))), "{kinds:?}");
    let wire = spans.iter().find(|s| s["name"] == "secretsmanager GetSecretValue").expect("there");
    let expect = json!({ "key": "http.status", "value": { "intValue": "200" } });
    assert!(wire["attributes"].as_array().is_some_and(|all| all.contains(&expect)), "{wire}");
}

#[test]
fn a_call_on_top_of_another_of_its_name_is_one() {
    let mut one = trace();
    for e in &mut one.entities {
        if e.name == "inner" {
            e.name = "secretsmanager".to_owned();
        }
    }
    let named = durations(&[&one]);
    let calls = named.iter().find(|n| n.name == "secretsmanager").expect("there");
    assert_eq!((calls.function.as_str(), calls.took_ms.len()), ("v", 1));
    assert!((calls.took_ms[0] - 15.0).abs() < 0.01, "{named:?}");
    let text = summary_table(&[&trace()]);
    assert!(text.contains("secretsmanager GetSecretValue (wire)") && text.contains(ROOT), "{text}");
}

#[test]
fn the_tree_for_the_terminal() {
    let text = render(&trace());
    let line = |name: &str| text.lines().find(|line| line.contains(name)).expect("there").to_owned();
    assert!(text.starts_with(&format!("trace {ROOT}  sampled  request r\n")));
    assert_eq!(line("inner"), "    40.000      9.000          inner  aws");
    assert!(line("tcp connect").contains("on the wire"));
    let mut circle = trace();
    for e in &mut circle.entities {
        e.parent = Some(e.id.clone());
    }
    render(&circle);
}
