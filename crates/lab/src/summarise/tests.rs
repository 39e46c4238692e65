//! A small run by hand: one variant that opens a connection, keeps it and is reset, one that never ran.

use super::*;
use crate::Options;
use danki_explain::Part;
use danki_model::ConnId;
use danki_record::{
    ClosedBy, Connection, ConnectionCounts, CpuSample, CpuSeries, Invocation, Request, Span, Start, Status,
    Tls,
};
use serde_json::json;
use std::path::Path;

const MS: u64 = 1_000_000;

fn experiment(dir: &Path) -> Experiment {
    std::fs::write(dir.join("index.js"), "").expect("written");
    let text = "name = 'x'\n[function]\ndir = '.'\nmemory_mb = 256\n[[variant]]\nname = 'on'\n[[variant]]\nname = 'idle'\n\
                [[expect]]\nname = 'reuse'\nmetric = 'on.connections.reused'\nwithin = { min = 1 }";
    Experiment::parse(text, "x.toml", dir, &Options::default()).expect("fine")
}

fn span(from_ms: u64, to_ms: u64) -> Span {
    Span { from_ns: from_ms * MS, to_ns: to_ms * MS }
}

fn invocation(index: u32, at_ms: u64, status: Status) -> Event {
    Event::Invocation(Invocation {
        request_id: RequestId::from_bits(index.into()),
        variant: "on".to_owned(),
        index,
        ping: false,
        env: EnvId(1),
        initialization: Default::default(),
        start: if index == 0 { Start::Cold } else { Start::Warm },
        intended_ns: (at_ms - 1) * MS,
        dispatched_ns: at_ms * MS,
        env_wait: None,
        init: (index == 0).then(|| span(at_ms, at_ms + 10)),
        thaw: None,
        delivered_ns: Some((at_ms + 10) * MS),
        responded_ns: (at_ms + 50) * MS,
        finished_ns: (at_ms + 50) * MS,
        status,
        duration_ms: 40.0,
        billed_ms: 40,
        init_ms: (index == 0).then_some(10.0),
        max_memory_used_mb: 70,
        cpu_us: 10_000,
        throttled_us: 20_000,
        throttled_periods: 1,
        response_bytes: 2,
    })
}

/// Ten ms of CPU in the middle of which the quota held it back for 20 ms.
fn cpu(at_ms: u64) -> Event {
    let sample = |ms: u64, usage: u64, throttled: u64| CpuSample {
        at_ns: (at_ms + ms) * MS,
        usage_ns: usage * MS,
        throttled_ns: throttled * MS,
    };
    Event::Cpu(CpuSeries {
        env: EnvId(1),
        samples: vec![sample(10, 0, 0), sample(15, 5, 0), sample(35, 5, 0), sample(40, 10, 20)],
    })
}

fn request(ordinal: u32, at_ms: u64) -> Event {
    let tls =
        Tls { span: span(at_ms - 2, at_ms), resumed: true, version: "TLSv1.3".to_owned(), server_name: None };
    Event::Request(Request {
        service: "dynamodb".to_owned(),
        operation: "GetItem".to_owned(),
        client: "10.0.0.2:4000".parse().expect("an address"),
        ordinal,
        tls: (ordinal == 1).then_some(tls),
        received: span(at_ms, at_ms),
        service_time: span(at_ms, at_ms + 3),
        status: 200,
        fault: None,
        attempt: None,
    })
}

fn connection() -> Event {
    Event::Connection(Connection {
        conn: ConnId(1),
        env: EnvId(1),
        client: "10.0.0.2:4000".parse().expect("an address"),
        server: "198.18.1.1:443".parse().expect("an address"),
        syn_ns: 116 * MS,
        established_ns: Some(117 * MS),
        acked_ns: None,
        first_byte_ns: None,
        last_byte_ns: None,
        client_hello_ns: Some(117 * MS),
        bytes_up: 1,
        bytes_down: 1,
        retransmits: 0,
        idle: Vec::new(),
        closed_by: Some(ClosedBy::ServerReset),
        closed_ns: Some(900 * MS),
        close_delivered_ns: None,
    })
}

#[test]
fn every_number_comes_from_a_fact() {
    let dir = tempfile::tempdir().expect("a directory");
    let experiment = experiment(dir.path());
    let events = [
        Event::Caveat { text: "twice".to_owned() },
        Event::Caveat { text: "twice".to_owned() },
        connection(),
        request(1, 120),
        request(2, 320),
        cpu(100),
        cpu(300),
        invocation(0, 100, Status::Ok),
        invocation(1, 300, Status::Timeout),
    ];
    let returned = |payload: Value, function_error: Option<&str>| Returned {
        variant: "on".to_owned(),
        request_id: RequestId::from_bits(0),
        function_error: function_error.map(str::to_owned),
        payload,
        status_code: None,
        raw: None,
    };
    let returned = [
        returned(json!({"ms": 12.5, "found": true, "hits": [1, 2, 9]}), None),
        returned(json!({"ms": 99}), Some("Unhandled")),
    ];
    let counts = CaptureCounts { tcp_handshakes: 1, tls_handshakes: 1 };
    let digest = summarise(Ingredients {
        experiment: &experiment,
        events: &events,
        returned: &returned,
        capture: ByClient::from([("10.0.0.2".parse().expect("an address"), counts)]),
        calibration: Calibration::default(),
        cpu_model: CpuModel::Host,
        link: Value::Null,
        caveats: Vec::new(),
        complete: true,
    });
    let [on, idle] = digest.summary.variants.as_slice() else { panic!("two variants") };
    assert_eq!((on.invocations, on.errors, on.timeouts, on.cold_starts), (2, 1, 1, 1));
    assert_eq!((on.duration_ms.p50, on.client_ms.max, on.late_ms.min), (Some(40.0), Some(50.0), Some(1.0)));
    assert_eq!((on.warm_duration_ms.n, &on.init_ms), (1, &vec![10.0]));
    assert_eq!((on.calls["dynamodb"].n, on.returned["ms"].n, on.returned.len()), (2, 1, 2));
    assert_eq!((on.returned["hits"].n, on.returned["hits"].p50), (3, Some(2.0)), "a list is pooled");
    let expect = ConnectionCounts { opened: 1, reused: 1, tls_handshakes: 1, tls_resumed: 1, reset: 1 };
    assert_eq!((on.connections, on.capture, on.handshakes_per_invocation), (expect, counts, 0.5));
    assert_eq!((on.throttled_ratio, on.cpu_share), (0.5, 0.25));
    assert_eq!(on.waterfall_ms["init"].max, Some(10.0));
    assert_eq!(on.waterfall_ms.len(), Part::ALL.len());
    assert_eq!((idle.invocations, idle.duration_ms.p50, idle.capture), (0, None, CaptureCounts::default()));
    assert!(digest.summary.expect[0].within);
    assert_eq!(digest.summary.caveats, ["twice"]);
    assert_eq!(
        digest.rows.iter().map(|r| (r.idle_ns, r.calls[0].new_connection)).collect::<Vec<_>>(),
        [(None, true), (Some(150 * MS), false)]
    );
}
