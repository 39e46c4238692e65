//! The whole link with datagram socket pairs in place of TUNs: needs no privileges.

use super::*;
use crate::config::Path;
use crate::packet::{Flags, parse_packet};
use crate::testing::tcp_packet;
use danki_record::{Connection, Event, Recording};
use danki_sys::clock::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

const ENV: EnvId = EnvId(1);
const ENV_ADDRESS: &str = "10.0.0.1:1000";
const REGION_ADDRESS: &str = "198.18.1.1:443";

/// A link with one env, and the far ends of its "TUNs".
struct Rig {
    link: Link,
    env: OwnedFd,
    region: OwnedFd,
    recording: Recording,
}

fn tun() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).unwrap()
}

impl Rig {
    fn new(config: Config) -> Rig {
        let (region_tun, region) = tun();
        let (env_tun, env) = tun();
        let (recorder, recording) = Recorder::bounded(10_000);
        let link = Link::start(config, region_tun, recorder).unwrap();
        link.handle().attach(ENV, "10.0.0.1".parse().unwrap(), env_tun).unwrap();
        Rig { link, env, region, recording }
    }

    fn up(&self, number: u32) {
        let packet = tcp_packet(ENV_ADDRESS, REGION_ADDRESS, Flags::ACK, number, b"up");
        rustix::io::write(&self.env, &packet).unwrap();
    }

    fn down(&self, number: u32) {
        let packet = tcp_packet(REGION_ADDRESS, ENV_ADDRESS, Flags::ACK, number, b"down");
        rustix::io::write(&self.region, &packet).unwrap();
    }

    fn stop(self) -> (Stats, Vec<Event>) {
        (self.link.stop(), self.recording.collect())
    }
}

/// The number of the next packet that arrives within so many ms.
fn next(at: &OwnedFd, within_ms: i64) -> Option<u32> {
    let timeout = Timespec { tv_sec: within_ms / 1000, tv_nsec: within_ms % 1000 * 1_000_000 };
    if poll(&mut [PollFd::new(at, PollFlags::IN)], Some(&timeout)).unwrap() == 0 {
        return None;
    }
    let mut buffer = [0; 2000];
    let length = rustix::io::read(at, &mut buffer).unwrap();
    Some(parse_packet(&buffer[..length]).unwrap().tcp.unwrap().sequence)
}

fn rtt(rtt_us: u64) -> Config {
    Config { default_path: Path { rtt_us, ..Path::default() }, offload: false, ..Config::default() }
}

/// Waits, with a bound, for the link to say so.
fn eventually(rig: &Rig, what: &str, says: impl Fn(&Stats) -> bool) {
    let begin_ns = monotonic_ns();
    while !says(&rig.link.handle().stats()) {
        assert!(monotonic_ns() - begin_ns < 5_000_000_000, "no {what}: {:?}", rig.link.handle().stats());
    }
}

#[test]
fn each_way_takes_half_a_round_trip() {
    let rig = Rig::new(rtt(20_000));
    let begin_ns = monotonic_ns();
    rig.up(1);
    assert_eq!(next(&rig.region, 1000), Some(1));
    let half_ns = monotonic_ns() - begin_ns;
    rig.down(2);
    assert_eq!(next(&rig.env, 1000), Some(2));
    let whole_ns = monotonic_ns() - begin_ns;
    assert!((10_000_000..200_000_000).contains(&half_ns), "{half_ns}");
    assert!((20_000_000..400_000_000).contains(&whole_ns), "{whole_ns}");
    let (stats, _) = rig.stop();
    assert_eq!((stats.packets, stats.bytes, stats.lateness.count), (2, 40 + 2 + 40 + 4, 2));
    assert!(stats.lateness.p50_ns <= stats.lateness.p90_ns && stats.lateness.p99_ns <= stats.lateness.max_ns);
    assert!(stats.lateness.max_ns > 0);
}

#[test]
fn nothing_passes_the_edge_of_a_held_env() {
    let rig = Rig::new(rtt(2_000));
    let link = rig.link.handle();
    rig.up(1);
    link.hold(ENV);
    assert_eq!(next(&rig.region, 1000), Some(1), "it was sent before the hold");
    rig.up(2);
    (10..20).for_each(|number| rig.down(number));
    assert_eq!(next(&rig.env, 30), None);
    assert_eq!(next(&rig.region, 0), None);
    assert_eq!(link.release(ENV), 10);
    for number in 10..20 {
        assert_eq!(next(&rig.env, 0), Some(number), "delivered when release returns");
    }
    assert_eq!(next(&rig.region, 1000), Some(2));
    link.hold(EnvId(99));
    assert_eq!((link.release(ENV), link.release(EnvId(99))), (0, 0));
    let (stats, _) = rig.stop();
    assert_eq!((stats.held, stats.packets, stats.unconfirmed), (10, 12, 0));
}

#[test]
fn what_overflows_a_hold_is_counted() {
    let rig = Rig::new(Config { hold_bound_packets: 3, ..rtt(0) });
    let link = rig.link.handle();
    link.hold(ENV);
    (0..5).for_each(|number| rig.down(number));
    eventually(&rig, "overflow", |stats| stats.held_overflow == 2);
    link.release(ENV);
    assert_eq!([next(&rig.env, 0), next(&rig.env, 0), next(&rig.env, 0)], [Some(0), Some(1), Some(2)]);
    assert_eq!(next(&rig.env, 10), None);
}

#[test]
fn a_full_queue_and_a_loss_are_counted() {
    let rig = Rig::new(Config { bound_packets: 2, ..rtt(10_000_000) });
    (0..5).for_each(|number| rig.up(number));
    eventually(&rig, "drop", |stats| stats.dropped_bound == 3);
    let mut lossy = rtt(0);
    lossy.default_path.loss = 1.0;
    let rig = Rig::new(lossy);
    rig.up(1);
    eventually(&rig, "loss", |stats| stats.lost == 1);
}

#[test]
fn there_is_no_way_out() {
    let rig = Rig::new(rtt(0));
    let send = |from: &OwnedFd, bytes: &[u8]| rustix::io::write(from, bytes).unwrap();
    send(&rig.env, &tcp_packet(ENV_ADDRESS, "8.8.8.8:53", Flags::SYN, 1, b""));
    send(&rig.env, &tcp_packet("10.0.0.2:1000", REGION_ADDRESS, Flags::SYN, 1, b""));
    send(&rig.env, &[0x60; 48]);
    send(&rig.env, b"");
    send(&rig.region, &tcp_packet(REGION_ADDRESS, "10.0.0.7:1000", Flags::SYN, 1, b""));
    send(&rig.region, &[0; 3]);
    eventually(&rig, "refusal", |stats| stats.dropped_no_route == 6);
    assert_eq!((next(&rig.region, 0), next(&rig.env, 0)), (None, None));
}

#[test]
fn a_slow_reader_loses_nothing_until_the_bound() {
    let begin_ns = monotonic_ns();
    let rig = Rig::new(rtt(0));
    // A socket pair takes only so many datagrams (net.unix.max_dgram_qlen, SO_SNDBUF) before EAGAIN.
    let mut sent = 0;
    while rig.link.handle().stats().write_retries == 0 {
        assert!(sent < 100_000, "the socket pair has no bound");
        rig.down(sent);
        sent += 1;
    }
    for number in 0..sent {
        assert_eq!(next(&rig.env, 1000), Some(number));
    }
    let far = rig.env;
    drop(far);
    let packet = tcp_packet(REGION_ADDRESS, ENV_ADDRESS, Flags::ACK, 1, b"");
    rustix::io::write(&rig.region, &packet).unwrap();
    while rig.link.handle().stats().write_failed == 0 {
        assert!(monotonic_ns() < begin_ns + 10_000_000_000);
    }
}

#[test]
fn detach_records_connections_and_gives_up_the_address() {
    let rig = Rig::new(rtt(1_000));
    let syn = tcp_packet(ENV_ADDRESS, REGION_ADDRESS, Flags::SYN, 1, b"");
    rustix::io::write(&rig.env, &syn).unwrap();
    rig.link.handle().detach(ENV);
    rig.link.handle().detach(ENV);
    assert_eq!(next(&rig.region, 1000), Some(1), "what was sent travels on");
    rig.down(2);
    eventually(&rig, "refusal", |stats| stats.dropped_no_route == 1);
    let (tun, _env) = tun();
    rig.link.handle().attach(ENV, "10.0.0.1".parse().unwrap(), tun).unwrap();
    let (stats, events) = rig.stop();
    let clients: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            Event::Connection(Connection { client, .. }) => Some(client.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!((stats.connections, clients), (1, vec![ENV_ADDRESS.to_owned()]));
}

#[test]
fn the_capture_holds_what_passed_the_edge() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wire.pcap");
    let rig = Rig::new(Config { pcap: Some(path.clone()), ..rtt(1_000) });
    rig.up(1);
    rig.down(2);
    assert_eq!((next(&rig.region, 1000), next(&rig.env, 1000)), (Some(1), Some(2)));
    rig.stop();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 24 + 2 * 16 + 42 + 44);
}

#[test]
fn a_stopped_link_says_so_and_remembers() {
    let rig = Rig::new(rtt(0));
    let handle = rig.link.handle();
    rig.up(1);
    assert_eq!(next(&rig.region, 1000), Some(1));
    rig.link.stop();
    let (tun, _other) = tun();
    let refused = handle.attach(ENV, "10.0.0.9".parse().unwrap(), tun);
    assert!(matches!(refused, Err(Error::Stopped)), "{refused:?}");
    handle.hold(ENV);
    assert_eq!((handle.stats().packets, handle.stats().unconfirmed), (1, 1));
}

#[test]
fn many_envs_at_once_each_get_their_own() {
    let rig = Rig::new(rtt(2_000));
    let far: Vec<OwnedFd> = (2..100u32)
        .map(|env| {
            let (near, far) = tun();
            rig.link.handle().attach(EnvId(env), Ipv4Addr::from(0x0a00_0000 + env), near).unwrap();
            far
        })
        .collect();
    for (far, env) in far.iter().zip(2u32..) {
        let packet = tcp_packet(REGION_ADDRESS, &format!("10.0.0.{env}:1"), Flags::ACK, env, b"");
        rustix::io::write(&rig.region, &packet).unwrap();
        if env % 4 == 0 {
            rig.link.handle().detach(EnvId(env));
        } else {
            assert_eq!(next(far, 1000), Some(env));
        }
    }
}

#[test]
fn cpus_are_kept_awake_only_if_asked() {
    if let Err(error) = crate::awake::Awake::request() {
        println!("skipped: keeping CPUs awake: {error}");
        return;
    }
    for keep_awake in [true, false] {
        let rig = Rig::new(Config { keep_awake, ..rtt(0) });
        assert_eq!(rig.stop().0.awake, keep_awake);
    }
}
