//! Values for this crate's own tests.

use crate::{ClosedBy, Connection, Invocation, Span, Start, Status};
use danki_model::{ConnId, EnvId, RequestId};

pub fn invocation() -> Invocation {
    Invocation {
        request_id: RequestId::from_bits(1),
        variant: "on".to_owned(),
        index: 0,
        ping: false,
        env: EnvId(1),
        initialization: Default::default(),
        start: Start::Warm,
        intended_ns: 1_000_000,
        dispatched_ns: 1_200_000,
        env_wait: None,
        init: None,
        thaw: Some(Span { from_ns: 1_200_000, to_ns: 1_300_000 }),
        delivered_ns: Some(1_400_000),
        responded_ns: 21_400_000,
        finished_ns: 21_500_000,
        status: Status::Ok,
        duration_ms: 20.0,
        billed_ms: 20,
        init_ms: None,
        max_memory_used_mb: 70,
        cpu_us: 3_000,
        throttled_us: 1_000,
        throttled_periods: 1,
        response_bytes: 12,
    }
}

pub fn connection() -> Connection {
    Connection {
        conn: ConnId(1),
        env: EnvId(1),
        client: "10.0.0.1:40000".parse().expect("an address"),
        server: "198.18.1.1:443".parse().expect("an address"),
        syn_ns: 2_000_000,
        established_ns: Some(3_000_000),
        acked_ns: Some(3_010_000),
        first_byte_ns: Some(3_020_000),
        last_byte_ns: Some(9_000_000),
        client_hello_ns: Some(3_020_000),
        bytes_up: 900,
        bytes_down: 4_000,
        retransmits: 0,
        idle: vec![Span { from_ns: 5_000_000, to_ns: 8_000_000 }],
        closed_by: Some(ClosedBy::Server),
        closed_ns: Some(10_000_000),
        close_delivered_ns: None,
    }
}
