use super::*;
use danki_record::{ClosedBy, Connection, Flight, Span};

const MS: u64 = 1_000_000;
const ENV: EnvId = EnvId(3);
const SYN_ACK: Flags = Flags(0x12);
const FIN_ACK: Flags = Flags(0x11);
const RST: Flags = Flags::RST;
const ACK: Flags = Flags::ACK;
const HELLO: u32 = u32::MAX; // as a length: a ClientHello of 300 bytes

/// A scripted link of 1 ms each way: (time, direction, flags, sequence, payload length) at the moment of entry.
struct Script {
    ledger: Ledger,
    out: Vec<Event>,
    inside: Vec<(u64, Segment, Option<ConnId>)>,
    hold_until_ns: u64,
}

fn segment(direction: Direction, flags: Flags, sequence: u32, payload: u32) -> Segment {
    Segment {
        direction,
        client: "10.0.0.3:40000".parse().unwrap(),
        server: "198.18.1.1:443".parse().unwrap(),
        sequence,
        flags,
        payload: if payload == HELLO { 300 } else { payload },
        client_hello: payload == HELLO,
    }
}

impl Script {
    fn new(bound: usize) -> Script {
        Script { ledger: Ledger::new(bound), out: Vec::new(), inside: Vec::new(), hold_until_ns: 0 }
    }

    fn enter(&mut self, at_ms: u64, segment: Segment) -> &mut Script {
        let at_ns = at_ms * MS;
        self.deliver_until(at_ns);
        let conn = self.ledger.observe(ENV, at_ns, Sight::Entered, &segment, None, &mut self.out);
        let mut leaves_ns = at_ns + MS;
        if segment.direction == Direction::Down {
            leaves_ns = leaves_ns.max(self.hold_until_ns);
        }
        self.inside.push((leaves_ns, segment, conn));
        self
    }

    fn up(&mut self, at_ms: u64, flags: Flags, sequence: u32, payload: u32) -> &mut Script {
        self.enter(at_ms, segment(Direction::Up, flags, sequence, payload))
    }

    fn down(&mut self, at_ms: u64, flags: Flags, sequence: u32, payload: u32) -> &mut Script {
        self.enter(at_ms, segment(Direction::Down, flags, sequence, payload))
    }

    /// SYN at 0, established at 3 ms, ACK at 3 ms.
    fn handshake(&mut self) -> &mut Script {
        self.up(0, Flags::SYN, 100, 0).down(2, SYN_ACK, 900, 0).up(3, ACK, 101, 0)
    }

    fn deliver_until(&mut self, now_ns: u64) {
        self.inside.sort_by_key(|(leaves_ns, ..)| *leaves_ns);
        while self.inside.first().is_some_and(|(leaves_ns, ..)| *leaves_ns <= now_ns) {
            let (leaves_ns, segment, conn) = self.inside.remove(0);
            self.ledger.observe(ENV, leaves_ns, Sight::Left, &segment, conn, &mut self.out);
        }
    }

    fn connections(&mut self, end_ms: u64) -> Vec<Connection> {
        self.deliver_until(end_ms * MS);
        self.ledger.end(end_ms * MS, &mut self.out);
        let connection =
            |event: &Event| if let Event::Connection(conn) = event { Some(conn.clone()) } else { None };
        self.out.iter().filter_map(connection).collect()
    }

    fn answering(&self) -> Vec<(u64, u64)> {
        let answering = |event: &Event| {
            if let Event::Flight(flight) = event { flight.answers.then_some(flight.span) } else { None }
        };
        self.out.iter().filter_map(answering).map(|span| (span.from_ns / MS, span.to_ns / MS)).collect()
    }

    fn flights(&self) -> Vec<(u64, u64)> {
        let flight =
            |event: &Event| if let Event::Flight(Flight { span, .. }) = event { Some(*span) } else { None };
        self.out.iter().filter_map(flight).map(|span| (span.from_ns / MS, span.to_ns / MS)).collect()
    }
}

fn only(mut connections: Vec<Connection>) -> Connection {
    assert_eq!(connections.len(), 1);
    connections.remove(0)
}

#[test]
fn handshake_request_response_and_close_by_the_env() {
    let mut script = Script::new(8);
    script.handshake();
    script.up(4, ACK, 101, HELLO).down(6, ACK, 901, 1000).up(7, ACK, 401, 50).down(9, ACK, 1901, 10);
    script.up(20, FIN_ACK, 451, 0).down(22, FIN_ACK, 1911, 0).up(23, ACK, 452, 0);
    script.deliver_until(30 * MS);
    assert!(script.ledger.open.is_empty() && script.ledger.by_tuple.is_empty(), "recorded at its end");
    let conn = only(script.connections(99));
    let expect = Connection {
        conn: ConnId(1),
        env: ENV,
        client: "10.0.0.3:40000".parse().unwrap(),
        server: "198.18.1.1:443".parse().unwrap(),
        syn_ns: 0,
        established_ns: Some(3 * MS),
        acked_ns: Some(3 * MS),
        first_byte_ns: Some(4 * MS),
        last_byte_ns: Some(10 * MS),
        client_hello_ns: Some(4 * MS),
        bytes_up: 350,
        bytes_down: 1010,
        retransmits: 0,
        idle: vec![],
        closed_by: Some(ClosedBy::Client),
        closed_ns: Some(20 * MS),
        close_delivered_ns: None,
    };
    assert_eq!(conn, expect);
    assert_eq!(script.flights(), [(0, 1), (2, 3), (4, 5), (6, 7), (7, 8), (9, 10), (20, 21), (22, 23)]);
    assert_eq!(script.answering(), [(6, 7), (9, 10)], "neither SYN nor FIN brings anything");
}

#[test]
fn reuse_after_a_pause_is_idle_waiting_for_the_endpoint_is_not() {
    let mut script = Script::new(8);
    script.handshake();
    script.up(4, ACK, 101, 10).down(50, ACK, 901, 10).up(200, ACK, 111, 10).down(202, ACK, 911, 10);
    let conn = only(script.connections(300));
    assert_eq!(conn.idle, [Span { from_ns: 51 * MS, to_ns: 200 * MS }]);
    assert_eq!((conn.bytes_up, conn.bytes_down, conn.closed_by), (20, 20, None));
}

#[test]
fn a_fin_from_the_endpoint_reaches_a_held_env_late() {
    let mut script = Script::new(8);
    script.handshake();
    script.up(4, ACK, 101, 10).down(6, ACK, 901, 10);
    script.deliver_until(8 * MS);
    script.hold_until_ns = 500 * MS;
    script.down(100, FIN_ACK, 911, 0).down(300, FIN_ACK, 911, 0);
    script.up(501, ACK, 111, 10).down(503, RST, 912, 0);
    let conn = only(script.connections(600));
    assert_eq!(conn.closed_by, Some(ClosedBy::Server));
    assert_eq!((conn.closed_ns, conn.close_delivered_ns), (Some(100 * MS), Some(500 * MS)));
    assert_eq!(conn.idle, [Span { from_ns: 7 * MS, to_ns: 501 * MS }]);
    assert_eq!(script.flights().last_chunk(), Some(&[(100, 500), (501, 502), (503, 504)]));
}

#[test]
fn resets_before_a_fin() {
    let check = |act: fn(&mut Script), by, delivered| {
        let mut script = Script::new(8);
        script.handshake();
        act(&mut script);
        script.deliver_until(20 * MS);
        assert!(script.ledger.open.is_empty());
        let conn = only(script.connections(30));
        assert_eq!((conn.closed_by, conn.close_delivered_ns), (Some(by), delivered));
    };
    check(|script| _ = script.up(10, RST, 101, 0), ClosedBy::ClientReset, None);
    check(|script| _ = script.down(10, RST, 901, 0), ClosedBy::ServerReset, Some(11 * MS));
    let mut refused = Script::new(8);
    refused.up(0, Flags::SYN, 100, 0).down(2, RST | ACK, 0, 0);
    let conn = only(refused.connections(30));
    assert_eq!((conn.established_ns, conn.closed_by), (None, Some(ClosedBy::ServerReset)));
}

#[test]
fn a_port_used_again_is_a_new_connection_and_a_repeated_syn_is_not() {
    let mut script = Script::new(8);
    script.up(0, Flags::SYN, 100, 0).up(1000, Flags::SYN, 100, 0).down(1002, SYN_ACK, 900, 0);
    script.up(2000, Flags::SYN, 7000, 0).down(2002, SYN_ACK, 50, 0).up(2003, ACK, 7001, 5);
    let conns = script.connections(3000);
    assert_eq!(conns.iter().map(|conn| conn.syn_ns / MS).collect::<Vec<_>>(), [0, 2000]);
    assert_eq!(conns.iter().map(|conn| conn.bytes_up).collect::<Vec<_>>(), [0, 5]);
    assert_eq!(conns[0].established_ns, Some(1003 * MS));
}

#[test]
fn payload_seen_before_is_a_retransmission() {
    let mut script = Script::new(8);
    script.handshake();
    script.up(10, ACK, 101, 100).up(210, ACK, 101, 100).down(212, ACK, 901, 50).down(412, ACK, 901, 50);
    let conn = only(script.connections(500));
    assert_eq!((conn.retransmits, conn.bytes_up, conn.bytes_down), (2, 100, 50));
    assert_eq!((conn.last_byte_ns, conn.idle.len()), (Some(213 * MS), 0));
}

#[test]
fn a_lost_packet_counts_when_it_comes_again() {
    let mut script = Script::new(8);
    script.handshake();
    let lost = segment(Direction::Down, ACK, 901, 50);
    let conn = script.ledger.observe(ENV, 10 * MS, Sight::Entered, &lost, None, &mut script.out);
    script.ledger.observe(ENV, 10 * MS, Sight::Dropped, &lost, conn, &mut script.out);
    script.down(11, ACK, 951, 50).down(30, ACK, 901, 50);
    let conn = only(script.connections(40));
    assert_eq!((conn.bytes_down, conn.retransmits, conn.last_byte_ns), (100, 1, Some(31 * MS)));
    assert_eq!(script.flights(), [(0, 1), (2, 3), (11, 12), (30, 31)], "a loss takes no time in the link");
}

#[test]
fn at_the_bound_half_closed_connections_go_first() {
    let mut script = Script::new(2);
    let client = |port| SocketAddr::from(([10, 0, 0, 3], port));
    let mut enter = |at_ns, port: u16, flags| {
        let mut segment = segment(Direction::Up, flags, u32::from(port), 0);
        segment.client.set_port(port);
        script.ledger.observe(ENV, at_ns, Sight::Entered, &segment, None, &mut script.out);
    };
    enter(1, 1, Flags::SYN);
    enter(2, 2, Flags::SYN);
    enter(3, 2, Flags::FIN);
    enter(4, 3, Flags::SYN);
    enter(5, 4, Flags::SYN);
    assert_eq!((script.ledger.evicted(), script.ledger.opened()), (2, 4));
    let order: Vec<_> = script.connections(1).iter().map(|conn| conn.client).collect();
    assert_eq!(order, [client(2), client(1), client(3), client(4)]);
}

#[test]
fn an_env_that_goes_takes_only_its_own() {
    let mut script = Script::new(8);
    script.up(0, Flags::SYN, 1, 0);
    let mut other = segment(Direction::Up, Flags::SYN, 1, 0);
    other.client.set_port(9);
    script.ledger.observe(EnvId(4), 0, Sight::Entered, &other, None, &mut script.out);
    script.ledger.end_env(ENV, MS / 2, &mut script.out);
    assert_eq!(script.ledger.open.values().map(Conn::env).collect::<Vec<_>>(), [EnvId(4)]);
    let ended = script.out.iter().filter(|event| matches!(event, Event::Connection(_))).count();
    assert_eq!((ended, script.flights()), (1, vec![(0, 0)]));
}

#[test]
fn strangers_are_ignored() {
    let mut script = Script::new(8);
    script.up(0, ACK, 1, 100).down(1, FIN_ACK, 1, 0).down(2, Flags::SYN, 1, 0).up(3, SYN_ACK, 1, 0);
    assert_eq!(script.connections(10), []);
}

proptest::proptest! {
    /// Whatever comes in whatever order: no panic, and no fact without its connection.
    #[test]
    fn arbitrary_segments_never_panic(
        segments in proptest::collection::vec((0..2u8, 0..64u8, 0..40u32, 0..20u32, 0..4u16, 0..3u8), 0..60),
    ) {
        let (mut ledger, mut out) = (Ledger::new(3), Vec::new());
        for (at_ns, (up, flags, sequence, payload, port, sight)) in (0u64..).zip(segments) {
            let direction = if up == 1 { Direction::Up } else { Direction::Down };
            let mut segment = segment(direction, Flags(flags), sequence, payload);
            segment.client.set_port(port);
            let conn = ledger.observe(ENV, at_ns, Sight::Entered, &segment, None, &mut out);
            match sight {
                0 => _ = ledger.observe(ENV, at_ns + 1, Sight::Left, &segment, conn, &mut out),
                1 => _ = ledger.observe(ENV, at_ns, Sight::Dropped, &segment, conn, &mut out),
                _ => {}
            }
        }
        ledger.end(1000, &mut out);
        let recorded = out.iter().filter(|event| matches!(event, Event::Connection(_))).count();
        proptest::prop_assert_eq!(recorded as u64, ledger.opened());
        proptest::prop_assert!(ledger.open.is_empty() && ledger.by_tuple.is_empty());
    }
}
