//! Facts in few words. Times are µs in, ns out.

use danki_model::{ConnId, EnvId, RequestId};
use danki_record::{
    ClosedBy, Connection, CpuSample, CpuSeries, DnsQuery, Event, Flight, Invocation, Request, Span, Start,
    Status, Tls,
};
use std::net::SocketAddr;

pub const ENV: EnvId = EnvId(1);
const NAME: &str = "dynamodb.ap-northeast-1.amazonaws.com";

pub fn us(from: u64, to: u64) -> Span {
    Span { from_ns: from * 1_000, to_ns: to * 1_000 }
}

pub fn client(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], port))
}

/// A warm invocation, delivered 100 µs after dispatch.
pub fn invocation(variant: &str, index: u32, from: u64, to: u64) -> Invocation {
    Invocation {
        request_id: RequestId(format!("{variant}-{index}")),
        variant: variant.to_owned(),
        index,
        ping: false,
        env: ENV,
        initialization: Default::default(),
        start: Start::Warm,
        intended_ns: from * 1_000,
        dispatched_ns: from * 1_000,
        env_wait: None,
        init: None,
        thaw: Some(us(from, from + 100)),
        delivered_ns: Some((from + 100) * 1_000),
        responded_ns: to * 1_000,
        finished_ns: (to + 50) * 1_000,
        status: Status::Ok,
        duration_ms: (to - from) as f64 / 1e3,
        billed_ms: (to - from).div_ceil(1_000),
        init_ms: None,
        max_memory_used_mb: 60,
        cpu_us: 0,
        throttled_us: 0,
        throttled_periods: 0,
        response_bytes: 2,
    }
}

pub fn dns(from: u64, to: u64) -> Event {
    Event::Dns(DnsQuery {
        env: ENV,
        name: format!("{NAME}."),
        qtype: "A".to_owned(),
        span: us(from, to),
        rcode: "NOERROR".to_owned(),
    })
}

pub fn connection(conn: u64, port: u16, syn: u64, established: u64) -> Connection {
    Connection {
        conn: ConnId(conn),
        env: ENV,
        client: client(port),
        server: SocketAddr::from(([198, 18, 1, 1], 443)),
        syn_ns: syn * 1_000,
        established_ns: Some(established * 1_000),
        acked_ns: Some((established + 20) * 1_000),
        first_byte_ns: Some((established + 50) * 1_000),
        last_byte_ns: None,
        client_hello_ns: Some((established + 50) * 1_000),
        bytes_up: 1,
        bytes_down: 1,
        retransmits: 0,
        idle: Vec::new(),
        closed_by: None,
        closed_ns: None,
        close_delivered_ns: None,
    }
}

pub fn closed(mut c: Connection, last_byte: u64, at: u64, by: ClosedBy) -> Connection {
    c.last_byte_ns = Some(last_byte * 1_000);
    c.closed_ns = Some(at * 1_000);
    c.closed_by = Some(by);
    c
}

pub fn flight(conn: u64, from: u64, to: u64) -> Event {
    Event::Flight(Flight { conn: ConnId(conn), env: ENV, span: us(from, to), answers: false })
}

/// A flight that begins with bytes from the endpoint.
pub fn answer(conn: u64, from: u64, to: u64) -> Event {
    Event::Flight(Flight { conn: ConnId(conn), env: ENV, span: us(from, to), answers: true })
}

/// A request read at `from`, answered at `to`; `tls` is its connection's handshake as the endpoint saw it.
pub fn request(port: u16, ordinal: u32, from: u64, to: u64, tls: Option<Span>) -> Event {
    Event::Request(Request {
        service: "dynamodb".to_owned(),
        operation: "GetItem".to_owned(),
        client: client(port),
        ordinal,
        tls: tls.map(|span| Tls {
            span,
            resumed: false,
            version: "TLSv1.3".to_owned(),
            server_name: Some(NAME.to_owned()),
        }),
        received: us(from, from + 10),
        service_time: us(from + 10, to),
        status: 200,
        fault: None,
        attempt: None,
    })
}

/// Samples as (at, usage, throttled), all µs.
pub fn cpu(samples: &[(u64, u64, u64)]) -> Event {
    let sample = |&(at, usage, throttled): &(u64, u64, u64)| CpuSample {
        at_ns: at * 1_000,
        usage_ns: usage * 1_000,
        throttled_ns: throttled * 1_000,
    };
    Event::Cpu(CpuSeries { env: ENV, samples: samples.iter().map(sample).collect() })
}
