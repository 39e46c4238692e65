//! A run made by hand: two variants, one call per invocation, on a connection of its own or on a kept one.

use danki_explain::{Facts, by_variant};
use danki_model::{ConnId, EnvId, InitializationType, RequestId};
use danki_record::{
    Calibration, CaptureCounts, ClosedBy, Connection, ConnectionCounts, CpuSample, CpuSeries, EnvEvent,
    EnvWhat, Event, Flight, Invocation, Machine, Manifest, Quantiles, Request, SCHEMA, Span, Start, Status,
    Summary, Tls, VariantSummary,
};
use danki_runview::{Run, context};
use danki_stats::{Method, Sample};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;

const MS: u64 = 1_000_000;

/// Numbers that look drawn, the same each time.
fn draw(n: u64, below: u64) -> u64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (z ^ (z >> 31)) % below
}

fn span(from_ns: u64, to_ns: u64) -> Span {
    Span { from_ns, to_ns }
}

fn invocation(n: u64, from: u64, length: u64) -> Invocation {
    let kept = n % 2 == 1;
    let cold = n < 2;
    let to = from + length;
    let id = u128::from(draw(n, u64::MAX)) << 64 | u128::from(draw(n + 7, u64::MAX));
    Invocation {
        request_id: RequestId::from_bits(id),
        variant: if kept { "on" } else { "off" }.to_owned(),
        index: (n / 2) as u32,
        ping: false,
        env: EnvId(1 + (n % 2) as u32),
        initialization: InitializationType::default(),
        start: if cold { Start::Cold } else { Start::Warm },
        intended_ns: from,
        dispatched_ns: from,
        env_wait: cold.then(|| span(from, from + MS / 2)),
        init: cold.then(|| span(from + MS / 2, from + 5 * MS)),
        thaw: (!cold).then(|| span(from, from + 90_000)),
        delivered_ns: Some(from + if cold { 5 * MS } else { 100_000 }),
        responded_ns: to,
        finished_ns: to + 60_000 + draw(n, 90_000),
        status: if n % 97 == 96 { Status::Error { error_type: "Error".to_owned() } } else { Status::Ok },
        duration_ms: length as f64 / 1e6,
        billed_ms: length.div_ceil(MS),
        init_ms: cold.then_some(4.5),
        max_memory_used_mb: 60 + draw(n, 20) as u32,
        cpu_us: 1_400 + draw(n, 4_000),
        throttled_us: if kept { 0 } else { 12_000 },
        throttled_periods: u64::from(!kept),
        response_bytes: 40,
    }
}

fn events_of(n: u64, i: &Invocation) -> Vec<Event> {
    let kept = n % 2 == 1 && n > 1;
    let conn = ConnId(if n % 2 == 1 { 1 } else { n + 2 });
    let port = if n % 2 == 1 { 40_000 } else { 41_000 + (n % 20_000) as u16 };
    let client = SocketAddr::from(([10, 0, 0, 1 + (n % 2) as u8], port));
    let begin = i.delivered_ns.expect("delivered") + 300_000 + draw(n, 200_000);
    let sent = begin + if kept { 0 } else { 3 * MS + draw(n + 3, MS) };
    let (read, answered) = (sent + 510_000, sent + 2 * MS + draw(n + 5, MS));
    let tls = || Tls {
        span: span(begin + MS, sent),
        resumed: false,
        version: "TLSv1.3".to_owned(),
        server_name: Some("dynamodb.ap-northeast-1.amazonaws.com".to_owned()),
    };
    let mut events = vec![
        Event::Flight(Flight { conn, env: i.env, span: span(sent, read - 10_000), answers: false }),
        Event::Flight(Flight {
            conn,
            env: i.env,
            span: span(answered + 10_000, answered + 510_000),
            answers: true,
        }),
        Event::Request(Request {
            service: "dynamodb".to_owned(),
            operation: "GetItem".to_owned(),
            client,
            ordinal: if kept { (n / 2) as u32 + 1 } else { 1 },
            tls: (!kept).then(tls),
            received: span(read, read + 8_000),
            service_time: span(read + 8_000, answered),
            status: 200,
            fault: None,
            attempt: None,
        }),
    ];
    if !kept {
        events.push(Event::Connection(connection(n, conn, i.env, client, begin, answered)));
    }
    let sample = |at_ns, usage_ns, throttled_ns| CpuSample { at_ns, usage_ns, throttled_ns };
    let first = sample(i.delivered_ns.expect("delivered"), 0, 0);
    let last = sample(i.responded_ns, i.cpu_us * 1_000, i.throttled_us * 1_000);
    events.push(Event::Cpu(CpuSeries { env: i.env, samples: vec![first, last] }));
    events
}

fn connection(
    n: u64,
    conn: ConnId,
    env: EnvId,
    client: SocketAddr,
    syn_ns: u64,
    answered: u64,
) -> Connection {
    let ends = n.is_multiple_of(2);
    Connection {
        conn,
        env,
        client,
        server: SocketAddr::from(([198, 18, 1, 1], 443)),
        syn_ns,
        established_ns: Some(syn_ns + MS),
        acked_ns: Some(syn_ns + MS + 20_000),
        first_byte_ns: Some(syn_ns + MS + 50_000),
        last_byte_ns: Some(answered + 510_000),
        client_hello_ns: Some(syn_ns + MS + 50_000),
        bytes_up: 2_000 + draw(n, 50),
        bytes_down: 5_000 + draw(n, 50),
        retransmits: 0,
        idle: Vec::new(),
        closed_by: ends.then_some(ClosedBy::Server),
        closed_ns: ends.then_some(answered + 600_000),
        close_delivered_ns: None,
    }
}

fn quantiles(values: impl Iterator<Item = f64>) -> Quantiles {
    let s = Sample::new(values).expect("values").summary(Method::NearestRank);
    Quantiles {
        n: s.n as u64,
        min: Some(s.min),
        p50: Some(s.p50),
        p90: Some(s.p90),
        p95: Some(s.p95),
        p99: Some(s.p99),
        max: Some(s.max),
        mean: Some(s.mean),
        method: "nearest rank".to_owned(),
        p50_interval: Some([s.p50 * 0.98, s.p50 * 1.03]),
    }
}

fn env_events(env: u32, variant: &str) -> [Event; 2] {
    let event =
        |at_ns, what| Event::Env(EnvEvent { at_ns, env: EnvId(env), variant: variant.to_owned(), what });
    let done = EnvWhat::InitDone {
        span: span(2 * MS, 6 * MS),
        phase: "init".to_owned(),
        status: "success".to_owned(),
    };
    [event(MS, EnvWhat::Creating { initialization: InitializationType::OnDemand }), event(6 * MS, done)]
}

/// A run of `n` invocations.
pub fn run(n: u64) -> Run {
    let mut events: Vec<Event> = env_events(1, "off").into_iter().chain(env_events(2, "on")).collect();
    let mut from = 10 * MS;
    for k in 0..n {
        let length = if k % 2 == 1 { 9 * MS + draw(k, 3 * MS) } else { 38 * MS + draw(k, 25 * MS) };
        let length = length + if k < 2 { 10 * MS } else { 0 };
        let i = invocation(k, from, length);
        events.extend(events_of(k, &i));
        from = i.finished_ns + 2 * MS;
        events.push(Event::Invocation(i));
    }
    let facts = Facts::gather(&events);
    let variants = by_variant(&facts);
    let manifest = manifest();
    let found = danki_explain::findings(&facts, &variants, &context(&manifest, &[]));
    let summary = Summary {
        schema: SCHEMA,
        name: manifest.name.clone(),
        complete: true,
        seed: 1,
        time_scale: 1.0,
        repetitions: 1,
        variants: variants.iter().map(summary_of).collect(),
        expect: Vec::new(),
        findings: found.into_iter().map(danki_record::Finding::from).collect(),
        calibration: manifest.calibration.clone(),
        link: json!({}),
        caveats: vec!["made by hand for tests".to_owned()],
    };
    Run { dir: PathBuf::new(), manifest, summary, events }
}

fn summary_of(v: &danki_explain::Variant) -> VariantSummary {
    let all = || v.invocations.iter().map(|(i, _)| i);
    let durations = || quantiles(all().map(|i| i.duration_ms));
    let per_invocation = if v.name == "off" { 1.0 } else { 0.01 };
    VariantSummary {
        name: v.name.clone(),
        memory_mb: 128,
        invocations: v.invocations.len() as u64,
        errors: all().filter(|i| i.status != Status::Ok).count() as u64,
        timeouts: 0,
        cold_starts: 1,
        duration_ms: durations(),
        warm_duration_ms: durations(),
        client_ms: durations(),
        late_ms: quantiles(all().map(|_| 0.1)),
        init_ms: vec![4.5],
        calls: Default::default(),
        durations: Default::default(),
        throttles: 0,
        requests: None,
        database: None,
        returned: Default::default(),
        connections: ConnectionCounts::default(),
        capture: CaptureCounts::default(),
        connections_per_invocation: per_invocation,
        handshakes_per_invocation: per_invocation,
        throttled_ratio: v.share(danki_explain::Part::CpuThrottled),
        cpu_share: v.share(danki_explain::Part::CpuOn),
        unattributed_ratio: v.unattributed(),
        waterfall_ms: Default::default(),
    }
}

fn manifest() -> Manifest {
    let function = json!({"memory": 128, "runtime": "nodejs20.x", "environment": {}});
    let variant = |name| json!({"name": name, "function": function});
    Manifest {
        schema: SCHEMA,
        danki: "0.1.0".to_owned(),
        name: "made-by-hand".to_owned(),
        experiment: json!({"description": "Two variants made by hand", "variants": [variant("off"), variant("on")]}),
        started_epoch_ms: 1_790_000_000_000,
        started_ns: 0,
        epoch_offset_ns: 0,
        seed: 1,
        time_scale: 1.0,
        quick: false,
        machine: Machine { kernel: "6.18".to_owned(), cpus: 2, cpu_model: "a CPU".to_owned() },
        capabilities: json!({"cgroup": "v1", "tun": true}),
        calibration: Calibration { cpu_factor: Some(1.2), measurements: Vec::new() },
        complete: true,
    }
}
