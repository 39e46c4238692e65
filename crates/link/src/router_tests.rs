use super::*;
use crate::config::Path;
use crate::packet::{Flags, parse_packet};
use crate::testing::tcp_packet;
use proptest::prelude::*;

const NEAR: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(198, 19, 255, 255);
const ENV: EnvId = EnvId(1);

fn address(env: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0000 + env)
}

/// 1 ms to everything, 10 ms to `FAR`.
fn config() -> Config {
    let far = Path { rtt_us: 10_000, ..Path::default() };
    Config { paths: vec![(FAR, far)], hold_bound_packets: 4, bound_packets: 8, ..Config::default() }
}

fn router() -> (Router<u32>, PortId) {
    let mut router = Router::new(&config());
    let port = router.attach(ENV, address(1)).unwrap();
    (router, port)
}

/// What is due at a time, in order.
fn due(router: &mut Router<u32>, now_ns: u64) -> Vec<u32> {
    std::iter::from_fn(|| router.pop(now_ns)).map(|due| due.parcel).collect()
}

#[test]
fn a_far_destination_does_not_delay_a_near_one() {
    let (mut router, port) = router();
    router.enter(0, port, Direction::Up, FAR, 100, 1).unwrap();
    router.enter(1, port, Direction::Up, NEAR, 100, 2).unwrap();
    assert_eq!(router.next_ns(), Some(500_001));
    assert!(due(&mut router, 500_000).is_empty());
    assert_eq!(due(&mut router, 500_001), [2]);
    assert_eq!(due(&mut router, 5_000_000), [1]);
    assert_eq!(router.next_ns(), None);
}

#[test]
fn a_hold_closes_the_edge_and_keeps_the_order() {
    let (mut router, port) = router();
    router.enter(0, port, Direction::Down, FAR, 100, 1).unwrap();
    router.enter(0, port, Direction::Up, NEAR, 100, 2).unwrap();
    router.hold(port);
    router.enter(1, port, Direction::Down, NEAR, 100, 3).unwrap();
    assert_eq!(due(&mut router, 9_000_000), [2], "what has left the env travels on");
    router.enter(8_000_000, port, Direction::Down, FAR, 100, 4).unwrap();
    router.release(port, 9_000_000);
    assert_eq!(due(&mut router, 9_000_000), [3, 1], "in the order of their due times");
    let last = router.pop(13_000_000).unwrap();
    assert_eq!((last.parcel, last.was_held), (4, false), "its time came after the release");
}

#[test]
fn what_waited_may_come_later_than_the_opening() {
    let (mut router, port) = router();
    router.hold(port);
    router.enter(0, port, Direction::Down, NEAR, 100, 1).unwrap();
    router.enter(0, port, Direction::Down, NEAR, 100, 2).unwrap();
    router.release_at(port, 9_000_000, 20_000_000);
    router.enter(9_000_000, port, Direction::Down, NEAR, 100, 3).unwrap();
    router.enter(9_000_000, port, Direction::Up, NEAR, 100, 4).unwrap();
    assert_eq!(due(&mut router, 19_999_999), [4], "what it sends goes at once");
    assert_eq!(due(&mut router, 20_000_000), [1, 2, 3], "in order");
}

#[test]
fn a_hold_is_bounded_and_so_is_a_queue() {
    let (mut router, port) = router();
    let fill = |router: &mut Router<u32>, direction| {
        (0..10).map(|n| router.enter(0, port, direction, NEAR, 100, n)).find_map(Result::err)
    };
    assert_eq!(fill(&mut router, Direction::Up), Some(Refusal::Full));
    router.hold(port);
    assert_eq!(fill(&mut router, Direction::Down), Some(Refusal::HeldFull));
    assert_eq!(due(&mut router, u64::MAX).len(), 8);
    router.release(port, 1);
    assert_eq!(due(&mut router, u64::MAX), [0, 1, 2, 3]);
    let huge = router.enter(0, port, Direction::Up, NEAR, BOUND_BYTES + 1, 0);
    assert_eq!(huge, Err(Refusal::Full));
}

#[test]
fn a_detached_env_gets_nothing_but_its_last_words_travel() {
    let (mut router, port) = router();
    router.enter(0, port, Direction::Down, NEAR, 100, 1).unwrap();
    router.enter(0, port, Direction::Up, NEAR, 100, 2).unwrap();
    assert_eq!(router.detach(ENV), Some((port, 1)));
    assert_eq!(router.detach(ENV), None);
    let again = router.attach(ENV, address(1)).unwrap();
    assert_ne!(again, port);
    assert_eq!(due(&mut router, u64::MAX), [2]);
    assert_eq!(router.env(port), None);
    assert_eq!(router.enter(0, port, Direction::Up, NEAR, 1, 3), Err(Refusal::Gone));
}

#[test]
fn a_packet_put_back_stays_first() {
    let (mut router, port) = router();
    router.enter(0, port, Direction::Down, NEAR, 100, 1).unwrap();
    router.enter(0, port, Direction::Down, NEAR, 100, 2).unwrap();
    let first = router.pop(500_000).unwrap();
    assert!(router.put_back(first, 700_000));
    assert!(due(&mut router, 699_999).is_empty());
    let first = router.pop(700_000).unwrap();
    assert_eq!((first.parcel, first.tries, first.due_ns), (1, 1, 500_000));
    assert!(router.put_back(first, 700_000));
    assert_eq!(due(&mut router, 700_000), [1, 2]);
}

#[test]
fn only_own_addresses_and_the_region() {
    let (mut router, port) = router();
    let other = router.attach(EnvId(2), address(2)).unwrap();
    let check = |from: &str, to: &str, up, down| {
        let bytes = tcp_packet(&format!("{from}:1"), &format!("{to}:2"), Flags::SYN, 0, b"");
        let packet = parse_packet(&bytes).unwrap();
        assert_eq!(router.may_leave(port, &packet), up, "{from} to {to}");
        assert_eq!(router.destination(&packet), down, "{from} to {to}");
    };
    check("10.0.0.1", "198.18.0.1", true, None);
    check("10.0.0.1", "198.20.0.1", false, None);
    check("10.0.0.1", "8.8.8.8", false, None);
    check("10.0.0.1", "127.0.0.1", false, None);
    check("10.0.0.2", "198.18.0.1", false, None);
    check("10.0.0.1", "10.0.0.2", false, None);
    check("198.19.0.1", "10.0.0.2", false, Some(other));
    check("198.19.0.1", "10.0.0.3", false, None);
}

#[test]
fn an_address_or_env_is_attached_once_and_in_its_range() {
    let (mut router, _) = router();
    let mut check = |env, address: &str, expect: &str| {
        let refused = router.attach(EnvId(env), address.parse().unwrap()).unwrap_err();
        assert_eq!(refused.to_string(), expect);
    };
    check(1, "10.0.0.9", "env-1 or its address 10.0.0.9 is attached already");
    check(9, "10.0.0.1", "env-9 or its address 10.0.0.1 is attached already");
    check(9, "192.168.0.1", "env address 192.168.0.1; allowed: 10.0.0.0/8");
}

#[derive(Clone, Debug)]
enum Step {
    Enter { env: usize, direction: Direction, far: bool, bytes: usize },
    Hold(usize),
    Release(usize),
    Advance(u64),
    PutBack,
}

fn step() -> impl Strategy<Value = Step> {
    let env = 0..3usize;
    let direction = prop_oneof![Just(Direction::Up), Just(Direction::Down)];
    prop_oneof![
        4 => (env.clone(), direction, any::<bool>(), 40..1500usize)
            .prop_map(|(env, direction, far, bytes)| Step::Enter { env, direction, far, bytes }),
        1 => env.clone().prop_map(Step::Hold),
        1 => env.prop_map(Step::Release),
        3 => (0..3_000_000u64).prop_map(Step::Advance),
        1 => Just(Step::PutBack),
    ]
}

/// What a packet is known by in the property below.
#[derive(Clone, Copy, Debug)]
struct Mark {
    number: usize,
    entered_ns: u64,
    env: usize,
    far: bool,
}

proptest! {
    /// Never reordered within a path and direction, never lost unless asked, never early, never through a closed edge.
    #[test]
    fn packets_keep_order_time_and_number(
        steps in prop::collection::vec(step(), 1..200),
        jitter_us in 0..3000u64,
        bandwidth in prop::option::of(1.0..100.0f64),
    ) {
        let near = Path { rtt_us: 1000, jitter_us, bandwidth_mbps: bandwidth, ..Path::default() };
        let config = Config {
            default_path: near.clone(),
            paths: vec![(FAR, Path { rtt_us: 10_000, ..near })],
            ..Config::default()
        };
        let mut router = Router::new(&config);
        let ports: Vec<PortId> = (0..3).map(|env| router.attach(EnvId(env), address(env)).unwrap()).collect();
        let (mut now_ns, mut held, mut entered, mut left) = (1u64, [false; 3], 0usize, Vec::new());
        let mut last = HashMap::new();
        let finish = [Step::Release(0), Step::Release(1), Step::Release(2), Step::Advance(100_000_000_000)];
        for step in steps.into_iter().chain(finish) {
            match step {
                Step::Enter { env, direction, far, bytes } => {
                    let mark = Mark { number: entered, entered_ns: now_ns, env, far };
                    let remote = if far { FAR } else { NEAR };
                    match router.enter(now_ns, ports[env], direction, remote, bytes, mark) {
                        Ok(()) => entered += 1,
                        Err(refusal) => prop_assert!(refusal == Refusal::Full && bandwidth.is_some()),
                    }
                }
                Step::Hold(env) => {
                    router.hold(ports[env]);
                    held[env] = true;
                }
                Step::Release(env) => {
                    router.release(ports[env], now_ns);
                    held[env] = false;
                }
                Step::Advance(by_ns) => now_ns += by_ns,
                Step::PutBack => {
                    if let Some(due) = router.pop(now_ns) {
                        prop_assert!(router.put_back(due, now_ns + 1000));
                    }
                }
            }
            while let Some(due) = router.pop(now_ns) {
                let Mark { number, entered_ns, env, far } = due.parcel;
                let half_ns = if far { 5_000_000 } else { 500_000 };
                prop_assert!(due.due_ns >= entered_ns + half_ns && due.due_ns <= now_ns);
                prop_assert!(!(held[env] && due.direction == Direction::Down));
                let before = last.insert((env, due.direction, far), number);
                prop_assert!(before.is_none_or(|before| before < number));
                left.push(number);
            }
            prop_assert!(router.next_ns().is_none_or(|next_ns| next_ns > now_ns));
        }
        left.sort_unstable();
        prop_assert_eq!(left, (0..entered).collect::<Vec<_>>());
    }
}
