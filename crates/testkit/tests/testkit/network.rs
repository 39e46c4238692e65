//! The full path from a function to DynamoDB with Python's own urllib and ssl: certificates, connections, waterfalls, stale sockets.

#![allow(clippy::unwrap_used, reason = "test code, but clippy knows only test functions")]

use danki_explain::{Part, by_variant};
use danki_lab::HostKeys;
use danki_record::{ClosedBy, Connection, Event, Request, Start, Status};
use danki_region::DynamoDb;
use danki_testkit::{Lab, Recorded, Settings, eventually, skipped};
use serde_json::json;
use std::time::Duration;

/// One table with one item; answers come after a constant 4 ms.
fn dynamodb(idle_cutoff_ms: u64) -> Settings {
    let dynamodb: DynamoDb = serde_json::from_value(json!({
        "tables": [{"name": "test", "hash_key": ["id", "N"], "items": [{"id": 1, "name": "one"}]}],
        "endpoint": {
            "idle_cutoff_ms": idle_cutoff_ms,
            "service_time": {"constant_ms": 4.0},
            "first_request_extra": {"constant_ms": 0.0},
        },
    }))
    .unwrap();
    Settings { dynamodb: Some(dynamodb), rtt_us: 2_000, ..Settings::default() }
}

fn stop(lab: Lab) -> Recorded {
    let recorded = lab.stop().unwrap();
    assert_eq!(recorded.left, Vec::<String>::new());
    recorded
}

fn connections(recorded: &Recorded) -> Vec<Connection> {
    let all = recorded.events.iter().filter_map(|event| match event {
        Event::Connection(connection) => Some(connection.clone()),
        _ => None,
    });
    all.collect()
}

fn requests(recorded: &Recorded) -> Vec<Request> {
    let all = recorded.events.iter().filter_map(|event| match event {
        Event::Request(request) => Some(request.clone()),
        _ => None,
    });
    all.collect()
}

/// A client as careful as urllib3 if asked to: before reuse it looks whether the other side has closed.
const CLIENT: &str = "
import http.client, json, os, select, ssl, time, urllib.request
HOST = 'dynamodb.%s.amazonaws.com' % os.environ['AWS_REGION']
HEADERS = {
    'Content-Type': 'application/x-amz-json-1.0', 'X-Amz-Target': 'DynamoDB_20120810.GetItem', 'X-Amz-Date': '20261120T000000Z',
    'Authorization': 'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20261120/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date;x-amz-target, Signature=' + 64 * '0',
}
BODY = json.dumps({'TableName': 'test', 'Key': {'id': {'N': '1'}}})
kept = None

def call(connection):
    connection.request('POST', '/', BODY, HEADERS)
    response = connection.getresponse()
    return response.status, json.loads(response.read())['Item']['name']['S']

def dropped(connection):
    return bool(select.select([connection.sock], [], [], 0)[0])

def handler(event, context):
    global kept
    what = event['do']
    if what == 'urllib':
        with urllib.request.urlopen(urllib.request.Request('https://' + HOST + '/', BODY.encode(), HEADERS)) as response:
            return response.status
    if what == 'untrusting':
        try:
            http.client.HTTPSConnection(HOST, context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)).connect()
        except ssl.SSLError as e:
            return e.reason
    if what == 'wrong name':
        try:
            http.client.HTTPSConnection('198.18.1.1').connect()
        except ssl.SSLError as e:
            return e.reason
    if what == 'spin':
        end = time.process_time() + event['cpu']
        while time.process_time() < end:
            pass
    if what == 'sleep':
        time.sleep(event['s'])
    seen = []
    for n in range(event.get('calls', 0)):
        if kept is not None and event.get('careful') and dropped(kept):
            seen.append('dropped')
            kept.close()
            kept = None
        if kept is None or what == 'recreate':
            kept = http.client.HTTPSConnection(HOST)
        try:
            status, name = call(kept)
            seen.append('%d %s' % (status, name))
        except (ConnectionError, http.client.HTTPException, ssl.SSLError) as e:
            seen.append(type(e).__name__)
            kept.close()
            kept = http.client.HTTPSConnection(HOST)
            seen.append('%d %s' % call(kept))
        if what == 'recreate':
            kept.close()
            kept = None
    return seen
";

#[test]
fn certificates_are_verified_by_the_systems_bundle() {
    if skipped("TLS") {
        return;
    }
    let lab = Lab::start("tls", dynamodb(62_500)).unwrap();
    let mut spec = lab.write("lambda_function.py", CLIENT).unwrap();
    spec.memory = 1_769.try_into().unwrap();
    let client = lab.deploy(spec).unwrap();
    for (what, expect) in [
        ("urllib", json!(200)),
        ("untrusting", json!("CERTIFICATE_VERIFY_FAILED")),
        ("wrong name", json!("CERTIFICATE_VERIFY_FAILED")),
    ] {
        let reply = client.invoke(&json!({ "do": what })).unwrap();
        assert_eq!(reply.json(), expect, "{what}: {}", reply.text());
    }
    stop(lab);
}

#[test]
fn the_ledger_counts_connections_and_handshakes() {
    if skipped("ledger") {
        return;
    }
    let lab = Lab::start("ledger", dynamodb(62_500)).unwrap();
    let mut spec = lab.write("lambda_function.py", CLIENT).unwrap();
    spec.memory = 1_769.try_into().unwrap();
    for (what, name) in [("keep", "kept"), ("recreate", "recreated")] {
        spec.name = name.to_owned();
        let client = lab.deploy(spec.clone()).unwrap();
        for _ in 0..2 {
            let reply = client.invoke(&json!({"do": what, "calls": 3})).unwrap();
            assert_eq!(reply.json(), json!(["200 one", "200 one", "200 one"]), "{what}");
            // A pause that the ledger must see; it counts those of 1 ms and more.
            assert!(!eventually(Duration::from_millis(50), || false));
        }
    }
    let recorded = stop(lab);
    let (all, requests) = (connections(&recorded), requests(&recorded));
    let (first, second): (Vec<_>, Vec<_>) = all.iter().partition(|c| c.env.0 == 1);
    assert_eq!(
        (first.len(), second.len(), requests.len()),
        (1, 6, 12),
        "connections kept and recreated, requests"
    );
    let ordinals = |c: &Connection| -> Vec<u32> {
        requests.iter().filter(|r| r.client == c.client).map(|r| r.ordinal).collect()
    };
    assert_eq!(ordinals(first[0]), [1, 2, 3, 4, 5, 6]);
    assert!(second.iter().all(|c| ordinals(c) == [1]));
    assert_eq!(requests.iter().filter(|r| r.tls.is_some()).count(), 7, "a handshake for each connection");
    assert!(requests.iter().all(|r| r.tls.is_some() == (r.ordinal == 1)));
    for c in &all {
        let connect_us = (c.established_ns.unwrap() - c.syn_ns) / 1_000;
        assert!((2_000..50_000).contains(&connect_us), "{connect_us} µs for a round trip of 2,000");
        assert!(c.client_hello_ns.is_some() && c.bytes_up > 500 && c.bytes_down > 1_000, "{c:?}");
    }
    assert!(second.iter().all(|c| c.closed_by == Some(ClosedBy::Client)), "the client closes what it made");
    let pauses = first[0].idle.iter().filter(|idle| idle.len_ns() > 40_000_000).count();
    assert_eq!(pauses, 1, "the connection idles while the env is frozen: {:?}", first[0].idle);
    let facts = recorded.facts();
    assert!(facts.orphans.is_empty(), "every request has its connection");
}

#[test]
fn waterfalls_sum_to_the_span() {
    if skipped("waterfalls") {
        return;
    }
    let lab = Lab::start("waterfall", dynamodb(62_500)).unwrap();
    let mut spec = lab.write("lambda_function.py", CLIENT).unwrap();
    (spec.name, spec.timeout_ms) = ("small".to_owned(), 20_000);
    let small = lab.deploy(spec.clone()).unwrap();
    for event in [
        json!({"do": "keep", "calls": 1}),
        json!({"do": "keep", "calls": 2}),
        json!({"do": "recreate", "calls": 1}),
        json!({"do": "spin", "cpu": 0.02}),
        json!({"do": "sleep", "s": 0.1}),
    ] {
        assert_eq!(small.invoke(&event).unwrap().function_error, None, "{event}");
    }
    (spec.name, spec.timeout_ms) = ("late".to_owned(), 1_000);
    let late = lab.deploy(spec).unwrap();
    for _ in 0..2 {
        let reply = late.invoke(&json!({"do": "sleep", "s": 30})).unwrap();
        assert_eq!(reply.invocation.status, Status::Timeout);
    }
    let recorded = stop(lab);
    let facts = recorded.facts();
    let variants = by_variant(&facts);
    let mut seen = 0;
    for (invocation, waterfall) in variants.iter().flat_map(|v| &v.invocations) {
        seen += 1;
        let span_ns = invocation.responded_ns - invocation.dispatched_ns;
        assert_eq!(waterfall.total(), span_ns, "{}: {:?}", invocation.index, waterfall.parts);
        assert_eq!(waterfall.span.len_ns(), span_ns);
        let mut at_ns = invocation.dispatched_ns;
        for segment in &waterfall.segments {
            assert_eq!(segment.span.from_ns, at_ns, "no gap and no overlap");
            at_ns = segment.span.to_ns;
        }
        assert_eq!(at_ns, invocation.responded_ns);
        let has = |part: Part| waterfall.parts[part] > 0;
        // An init inside the invocation may begin at once, and the event is delivered with its end.
        assert!(has(Part::EnvWait) || invocation.start == Start::Suppressed);
        assert_eq!(has(Part::Init), invocation.start != Start::Warm);
        assert!(has(Part::Thaw) || invocation.start != Start::Warm);
    }
    assert_eq!(seen, 7);
    let small = &variants.iter().find(|v| v.name == "small").unwrap().invocations;
    let part = |index: usize, part: Part| small[index].1.parts[part] as f64 / 1e6;
    // On a small env most of the network's time is also CPU time or throttled, which come first; `inclusive` has all of it.
    let all = |index: usize, part: Part| small[index].1.inclusive[part] as f64 / 1e6;
    for index in [0, 2] {
        let parts = &small[index].1.inclusive;
        assert!(all(index, Part::TcpConnect) >= 2.0 && all(index, Part::ServiceTime) >= 4.0, "{parts:?}");
        assert!(all(index, Part::Tls) >= 2.0 && all(index, Part::Dns) > 0.0, "{parts:?}");
    }
    assert_eq!(
        (all(1, Part::TcpConnect), all(1, Part::Tls)),
        (0.0, 0.0),
        "a kept connection needs no set-up"
    );
    assert!(all(1, Part::ServiceTime) >= 8.0, "two answers of 4 ms: {:?}", small[1].1.inclusive);
    // 20 ms of CPU at a share of 1/14 take some 280 ms.
    assert!(part(3, Part::CpuThrottled) > 100.0, "{:?}", small[3].1.parts);
    assert!(part(4, Part::Unattributed) > 50.0, "a sleep is nobody's: {:?}", small[4].1.parts);
}

/// The endpoint closes after 0.3 s; the env is frozen for longer.
fn after_the_cutoff(name: &str, event_first: f64, careful: bool) -> Option<(Vec<String>, Recorded)> {
    if skipped(name) {
        return None;
    }
    let host = HostKeys { event_first: Some(event_first), ..HostKeys::default() };
    let lab = Lab::start(name, Settings { host, ..dynamodb(300) }).unwrap();
    let mut spec = lab.write("lambda_function.py", CLIENT).unwrap();
    (spec.memory, spec.timeout_ms) = (1_769.try_into().unwrap(), 10_000);
    let client = lab.deploy(spec).unwrap();
    let event = json!({"do": "keep", "calls": 1, "careful": careful});
    assert_eq!(client.invoke(&event).unwrap().json(), json!(["200 one"]));
    assert!(!eventually(Duration::from_millis(800), || false));
    let seen = serde_json::from_value(client.invoke(&event).unwrap().json()).unwrap();
    Some((seen, stop(lab)))
}

#[test]
fn a_careful_client_reconnects_when_the_network_comes_first() {
    let Some((seen, recorded)) = after_the_cutoff("network-first", 0.0, true) else { return };
    assert_eq!(seen, ["dropped", "200 one"], "the FIN was there before the event");
    let all = connections(&recorded);
    assert_eq!(all.len(), 2);
    assert_eq!(all.iter().filter(|c| c.closed_by == Some(ClosedBy::Server)).count(), 1, "{all:?}");
    let closed = all.iter().find(|c| c.closed_by == Some(ClosedBy::Server)).unwrap();
    let late_ms = (closed.close_delivered_ns.unwrap() - closed.closed_ns.unwrap()) / 1_000_000;
    assert!(late_ms > 200, "held while the env was frozen: {late_ms} ms");
}

#[test]
fn a_careful_client_is_fooled_when_the_event_comes_first() {
    let Some((seen, recorded)) = after_the_cutoff("event-first", 1.0, true) else { return };
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_ne!(seen[0], "dropped", "the request was on its way before the FIN came");
    assert_eq!((seen[1].as_str(), connections(&recorded).len()), ("200 one", 2));
}

#[test]
fn a_careless_client_sees_an_error_whatever_comes_first() {
    for event_first in [0.0, 1.0] {
        let Some((seen, recorded)) = after_the_cutoff("careless", event_first, false) else { return };
        assert!(seen.len() == 2 && seen[0] != "200 one" && seen[1] == "200 one", "{seen:?}");
        assert_eq!(connections(&recorded).len(), 2);
    }
}

/// A Python function only to start them: each brings a TLS of its own, and none is told of danki's CA.
const CLIENTS: &str = r#"
import os, shutil, subprocess
URL = 'https://dynamodb.%s.amazonaws.com/' % os.environ['AWS_REGION']
COMMANDS = {
    'curl': ['curl', '-sS', URL],
    'openssl': ['openssl', 's_client', '-connect', URL[8:-1] + ':443', '-verify_return_error', '-brief'],
    'php': ['php', '-r', 'echo file_get_contents("%s");' % URL],
    'wget': ['wget', '-qO-', URL],
}
def handler(event, context):
    said = {}
    for name, command in COMMANDS.items():
        if shutil.which(name):
            run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            said[name] = [run.returncode, run.stdout + run.stderr]
    return said
"#;

#[test]
fn programs_trust_the_region_unasked() {
    if skipped("trust") {
        return;
    }
    let lab = Lab::start("trust", dynamodb(60_000)).unwrap();
    let mut spec = lab.write("lambda_function.py", CLIENTS).unwrap();
    spec.memory = 1_769.try_into().unwrap();
    spec.timeout_ms = 30_000;
    let said = lab.deploy(spec).unwrap().invoke(&json!({})).unwrap().json();
    let programs = said.as_object().unwrap();
    println!("{programs:?}");
    assert!(!programs.is_empty());
    for (name, said) in programs {
        assert_eq!(said[0], 0, "{name}: {said}");
        let fetches = name != "openssl";
        assert!(!fetches || said[1].as_str().unwrap().starts_with("healthy: "), "{name}: {said}");
    }
    stop(lab);
}

/// Agents that do not keep connections, made in the ways that clients make them.
const UNKEPT: &str = "
const https = require('node:https');
class Own extends https.Agent {}
const agents = [new https.Agent({ keepAlive: false }), https.Agent({ keepAlive: false }), new Own({ keepAlive: false })];
const get = (agent) => new Promise((resolve, reject) => {
  const host = `dynamodb.${process.env.AWS_REGION}.amazonaws.com`;
  https.get({ host, path: '/', agent }, (response) => response.resume().on('end', () => resolve(response.statusCode))).on('error', reject);
});
exports.handler = async () => { for (const agent of agents) await get(agent); return agents.length; };
";

#[test]
fn a_preloaded_file_keeps_what_agents_do_not() {
    if skipped("keep-alive by preload") {
        return;
    }
    let lab = Lab::start("preload", dynamodb(62_500)).unwrap();
    let mut spec = lab.write("index.js", UNKEPT).unwrap();
    spec.memory = 1_769.try_into().unwrap();
    for (name, options) in [("unkept", None), ("kept", Some("--require /var/runtime/keepalive.cjs"))] {
        spec.name = name.to_owned();
        spec.environment.extend(options.map(|options| ("NODE_OPTIONS".to_owned(), options.to_owned())));
        let client = lab.deploy(spec.clone()).unwrap();
        for _ in 0..2 {
            let reply = client.invoke(&json!({})).unwrap();
            assert_eq!(reply.json(), json!(3), "{}", reply.text());
        }
    }
    let all = connections(&stop(lab));
    let of_first = all.iter().filter(|c| c.env.0 == 1).count();
    assert_eq!((of_first, all.len() - of_first), (6, 3), "one per call, and one per agent");
}
