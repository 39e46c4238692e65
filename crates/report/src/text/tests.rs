use super::*;
use danki_lab::{Row, RowCall};
use danki_model::{EnvId, RequestId};
use danki_record::{
    Calibration, ConnectionCounts, Finding, Invocation, Machine, Manifest, Quantiles, SCHEMA, Start, Status,
    VariantSummary,
};
use std::collections::BTreeMap;

fn quantiles(n: u64, p50: f64) -> Quantiles {
    let at = |factor: f64| (n > 0).then_some(p50 * factor);
    Quantiles {
        n,
        min: at(0.9),
        p50: at(1.0),
        p90: at(1.3),
        p95: at(1.5),
        p99: at(2.0),
        max: at(2.5),
        mean: at(1.1),
        method: "nearest-rank".to_owned(),
        p50_interval: None,
    }
}

fn variant(name: &str, p50: f64, handshakes: u64) -> VariantSummary {
    VariantSummary {
        name: name.to_owned(),
        memory_mb: 256,
        invocations: 3,
        errors: 0,
        timeouts: 0,
        cold_starts: 1,
        duration_ms: quantiles(3, p50),
        warm_duration_ms: quantiles(2, p50),
        client_ms: quantiles(3, p50 + 1.0),
        late_ms: quantiles(3, 0.1),
        init_ms: vec![312.5],
        calls: [("dynamodb".to_owned(), quantiles(3, p50 / 2.0))].into(),
        durations: BTreeMap::new(),
        throttles: 0,
        requests: None,
        database: None,
        returned: [("ms".to_owned(), quantiles(3, p50 / 1.5))].into(),
        connections: ConnectionCounts {
            opened: handshakes,
            reused: 3 - handshakes,
            tls_handshakes: handshakes,
            ..Default::default()
        },
        capture: danki_record::CaptureCounts::default(),
        connections_per_invocation: handshakes as f64 / 3.0,
        handshakes_per_invocation: handshakes as f64 / 3.0,
        throttled_ratio: 0.42,
        cpu_share: 0.13,
        unattributed_ratio: 0.01,
        waterfall_ms: BTreeMap::from([
            ("cpu_on".to_owned(), quantiles(3, p50 / 4.0)),
            ("cpu_throttled".to_owned(), quantiles(3, p50 / 2.0)),
            ("tls".to_owned(), quantiles(3, 0.0)),
        ]),
    }
}

fn row(variant: &str, index: u32, start: Start, port: u16, new_connection: bool) -> Row {
    let at = u64::from(index) * 20_000_000_000;
    Row {
        invocation: Invocation {
            request_id: RequestId::from_bits(1),
            variant: variant.to_owned(),
            index,
            ping: false,
            env: EnvId(1),
            initialization: Default::default(),
            start,
            intended_ns: at,
            dispatched_ns: at,
            env_wait: None,
            init: None,
            thaw: None,
            delivered_ns: None,
            responded_ns: at + 50_000_000,
            finished_ns: at + 50_000_000,
            status: if index == 2 { Status::Timeout } else { Status::Ok },
            duration_ms: 50.0,
            billed_ms: 50,
            init_ms: None,
            max_memory_used_mb: 70,
            cpu_us: 1,
            throttled_us: 1,
            throttled_periods: 1,
            response_bytes: 1,
        },
        calls: vec![RowCall {
            service: "dynamodb".to_owned(),
            ms: 20.5,
            port,
            new_connection,
            opened: None,
            predecessor: None,
        }],
        idle_ns: (index > 0).then_some(19_950_000_000),
    }
}

fn results() -> Results {
    let expect = vec![
        Expectation {
            name: "p50 off / on".to_owned(),
            metric: "off.duration_ms.p50 / on.duration_ms.p50".to_owned(),
            published: Some(8.4),
            measured: Some(6.2),
            ratio: Some(0.738),
            within: true,
            allowed: "×/÷ 2".to_owned(),
            source: "S1".to_owned(),
            reason: "another machine".to_owned(),
        },
        Expectation {
            name: "connections".to_owned(),
            metric: "on.connections.opened".to_owned(),
            published: None,
            measured: None,
            ratio: None,
            within: false,
            allowed: "≤ 1".to_owned(),
            source: "S1".to_owned(),
            reason: String::new(),
        },
    ];
    let finding = Finding {
        variant: Some("off".to_owned()),
        kind: "keep_alive_off".to_owned(),
        level: danki_record::Level::Problem,
        text: "off opens a connection in every invocation.".to_owned(),
        evidence: Vec::new(),
        examples: Vec::new(),
        connections: Vec::new(),
        share: Some(0.4),
        confidence: danki_record::Confidence::High,
        remedy: Some(danki_record::Remedy {
            text: "Switch keep-alive on.".to_owned(),
            saves_ms: Some(35.5),
            saves_usd_per_million: Some(0.07),
            change: None,
        }),
    };
    let summary = Summary {
        schema: SCHEMA,
        name: "keepalive".to_owned(),
        complete: true,
        seed: 1,
        time_scale: 10.0,
        repetitions: 2,
        variants: vec![variant("off", 62.0, 3), variant("on", 10.0, 1)],
        expect,
        findings: vec![finding],
        calibration: Calibration { cpu_factor: Some(1.214), measurements: Vec::new() },
        link: serde_json::Value::Null,
        caveats: vec!["Gaps, idle cut-offs and idle lifetimes were divided by 10; round trips, CPU and service times were not.".to_owned()],
    };
    let manifest = Manifest {
        schema: SCHEMA,
        danki: "0.1.0".to_owned(),
        name: "keepalive".to_owned(),
        experiment: serde_json::Value::Null,
        started_epoch_ms: 0,
        started_ns: 0,
        epoch_offset_ns: 1_700_000_000_000_000_000,
        seed: 1,
        time_scale: 10.0,
        quick: false,
        machine: Machine { kernel: "6.1".to_owned(), cpus: 2, cpu_model: "some".to_owned() },
        capabilities: serde_json::Value::Null,
        calibration: Calibration::default(),
        complete: true,
    };
    let rows = vec![
        row("off", 0, Start::Cold, 40_000, true),
        row("on", 0, Start::Cold, 41_000, true),
        row("off", 1, Start::Warm, 40_001, true),
        row("on", 1, Start::Warm, 41_000, false),
        row("off", 2, Start::Warm, 40_002, true),
    ];
    Results {
        dir: "/runs/x".into(),
        manifest,
        summary,
        description: "What does keep-alive buy?".to_owned(),
        rows,
        returned: Vec::new(),
        profiles: Vec::new(),
    }
}

#[test]
fn a_run_as_text() {
    insta::assert_snapshot!(text(&results(), &Style { color: false, width: 110 }));
}

#[test]
fn a_narrow_terminal() {
    insta::assert_snapshot!(text(&results(), &Style { color: false, width: 60 }));
}

#[test]
fn colours_change_nothing_but_colours() {
    let plain = text(&results(), &Style { color: false, width: 100 });
    let colored = text(&results(), &Style { color: true, width: 100 });
    let mut stripped = colored.clone();
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m"] {
        stripped = stripped.replace(code, "");
    }
    assert_ne!(plain, colored);
    assert_eq!(plain, stripped);
}

#[test]
fn a_long_run_shows_its_ends() {
    let mut results = results();
    results.rows = (0..100).map(|n| row("off", n, Start::Warm, 40_000, false)).collect();
    let text = text(&results, &Style::default());
    assert!(text.contains("94 more in invocations.csv"), "{text}");
}
