//! The link between real TUNs: the kernel's own TCP at both ends.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests: clippy sees only the tests themselves"
)]

mod support;

use danki_link::{Config, Path};
use danki_record::{ClosedBy, Connection, Event, Flight};
use danki_sys::clock::monotonic_ns;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path as FilePath;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use support::{ENV, Rig};

const SERVER: &str = "198.18.1.1:443";
/// No socket waits longer.
const PATIENCE: Duration = Duration::from_secs(20);
const MS: u64 = 1_000_000;

fn rtt(rtt_us: u64) -> Config {
    Config { default_path: Path { rtt_us, ..Path::default() }, ..Config::default() }
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// A server in the region that serves one connection; returns when it listens.
fn serve(rig: &Rig, serve: impl FnOnce(TcpStream) + Send + 'static) -> JoinHandle<()> {
    let (ready, is_ready) = channel();
    let server = rig.in_region(move || {
        let listener = TcpListener::bind(SERVER).unwrap();
        ready.send(()).unwrap();
        serve(patient(listener.accept().unwrap().0));
    });
    is_ready.recv_timeout(PATIENCE).unwrap();
    server
}

fn echo(mut stream: TcpStream) {
    let mut block = vec![0; 64 << 10];
    while let Ok(length @ 1..) = stream.read(&mut block) {
        stream.write_all(&block[..length]).unwrap();
    }
}

/// Runs in the env with a connection to the server, and may be stepped from outside.
fn in_env(
    rig: &Rig,
    work: impl FnOnce(TcpStream, Receiver<()>) + Send + 'static,
) -> (JoinHandle<()>, Sender<()>) {
    let (go, gone) = channel();
    let server: SocketAddr = SERVER.parse().unwrap();
    let client =
        rig.in_env(move || work(patient(TcpStream::connect_timeout(&server, PATIENCE).unwrap()), gone));
    (client, go)
}

fn exchange(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
    stream.read_exact(&mut vec![0; bytes.len()]).unwrap();
}

fn connections(events: &[Event]) -> Vec<Connection> {
    let pick = |event: &Event| if let Event::Connection(conn) = event { Some(conn.clone()) } else { None };
    events.iter().filter_map(pick).collect()
}

#[test]
fn a_connect_takes_one_round_trip() {
    let Some(rig) = Rig::try_new(rtt(5000), "connect over 5 ms") else { return };
    let server = serve(&rig, echo);
    let begin_ns = monotonic_ns();
    let (client, _go) = in_env(&rig, move |_, _| {
        let took_ns = monotonic_ns() - begin_ns;
        assert!((5 * MS..60 * MS).contains(&took_ns), "{took_ns} ns"); // exactness: `cargo bench -p danki-link`
    });
    client.join().unwrap();
    server.join().unwrap();
    let (stats, events) = rig.stop();
    let conn = &connections(&events)[0];
    let handshake_ns = conn.established_ns.unwrap() - conn.syn_ns;
    assert!((5 * MS..60 * MS).contains(&handshake_ns), "{handshake_ns} ns");
    assert_eq!((stats.dropped_bound, stats.write_failed), (0, 0));
    let flying: u64 = events
        .iter()
        .filter_map(
            |event| if let Event::Flight(Flight { span, .. }) = event { Some(span.len_ns()) } else { None },
        )
        .sum();
    assert!(flying >= 5 * MS, "the handshake alone was 5 ms under way: {flying} ns");
}

#[test]
fn the_ledger_knows_reuse_and_a_fin_that_waited_for_a_held_env() {
    let Some(rig) = Rig::try_new(rtt(2000), "ledger") else { return };
    let (close, closing) = channel::<()>();
    let server = serve(&rig, move |mut stream| {
        let mut block = [0; 5];
        for _ in 0..2 {
            stream.read_exact(&mut block).unwrap();
            stream.write_all(&block).unwrap();
        }
        closing.recv_timeout(PATIENCE).unwrap();
    });
    let (done, is_done) = channel();
    let (client, go) = in_env(&rig, move |mut stream, gone| {
        exchange(&mut stream, b"first");
        done.send(()).unwrap();
        gone.recv_timeout(PATIENCE).unwrap();
        exchange(&mut stream, b"again");
        done.send(()).unwrap();
        gone.recv_timeout(PATIENCE).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "the FIN is there when release returns");
    });
    is_done.recv_timeout(PATIENCE).unwrap();
    std::thread::park_timeout(Duration::from_millis(30)); // the pause
    go.send(()).unwrap();
    is_done.recv_timeout(PATIENCE).unwrap();
    rig.link.handle().hold(ENV);
    close.send(()).unwrap();
    server.join().unwrap();
    std::thread::park_timeout(Duration::from_millis(50)); // frozen
    let delivered = rig.link.handle().release(ENV); // the FIN, and maybe its repetitions
    assert!(delivered >= 1);
    go.send(()).unwrap();
    client.join().unwrap();
    let (stats, events) = rig.stop();
    let conn = &connections(&events)[0];
    assert_eq!((conn.bytes_up, conn.bytes_down, conn.retransmits, stats.held), (10, 10, 0, delivered as u64));
    assert_eq!(conn.closed_by, Some(ClosedBy::Server));
    let waited_ns = conn.close_delivered_ns.unwrap() - conn.closed_ns.unwrap();
    assert!(waited_ns >= 49 * MS, "{waited_ns} ns");
    assert!(conn.idle.len() == 1 && conn.idle[0].len_ns() >= 30 * MS, "{:?}", conn.idle);
    assert!(conn.syn_ns < conn.established_ns.unwrap() && conn.established_ns <= conn.acked_ns);
}

/// 8 MiB there and back, through whatever lies between.
#[test]
fn a_freeze_longer_than_all_keep_alive_probes_is_survived() {
    use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl};
    let Some(rig) = Rig::try_new(rtt(1000), "keep-alive") else { return };
    let server = serve(&rig, echo);
    let (done, is_done) = channel();
    let (client, go) = in_env(&rig, move |mut stream, gone| {
        set_socket_keepalive(&stream, true).unwrap();
        set_tcp_keepidle(&stream, Duration::from_secs(1)).unwrap();
        set_tcp_keepintvl(&stream, Duration::from_secs(1)).unwrap();
        set_tcp_keepcnt(&stream, 1).unwrap();
        exchange(&mut stream, b"first");
        done.send(()).unwrap();
        gone.recv_timeout(PATIENCE).unwrap();
        exchange(&mut stream, b"again");
    });
    is_done.recv_timeout(PATIENCE).unwrap();
    rig.link.handle().hold(ENV);
    std::thread::park_timeout(Duration::from_millis(3_500)); // one probe after 1 s, given up at 2 s
    rig.link.handle().release(ENV);
    go.send(()).unwrap();
    client.join().unwrap();
    server.join().unwrap();
    let (stats, events) = rig.stop();
    assert!(stats.passed_while_held > 0);
    assert_eq!((connections(&events).len(), connections(&events)[0].retransmits), (1, 0));
}

fn bulk(config: Config, what: &str) -> Option<(danki_link::Stats, Connection)> {
    let rig = Rig::try_new(config, what)?;
    let server = serve(&rig, echo);
    let (client, _go) = in_env(&rig, |mut stream, _| {
        let sent: Vec<u8> = (0..8u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let (mut writer, copy) = (stream.try_clone().unwrap(), sent.clone());
        let write = std::thread::spawn(move || writer.write_all(&copy).unwrap());
        let mut received = vec![0; sent.len()];
        stream.read_exact(&mut received).unwrap();
        write.join().unwrap();
        assert!(sent == received, "not the same bytes");
    });
    client.join().unwrap();
    server.join().unwrap();
    let (stats, events) = rig.stop();
    Some((stats, connections(&events).remove(0)))
}

#[test]
fn bytes_arrive_as_they_were_sent_with_and_without_offload() {
    for offload in [true, false] {
        let Some((stats, conn)) = bulk(Config { offload, ..rtt(1000) }, "bulk transfer") else { return };
        assert_eq!((conn.bytes_up, conn.bytes_down), (8 << 20, 8 << 20));
        let mean = stats.bytes / stats.packets;
        assert!(offload || mean <= 1500, "{mean} bytes per packet");
    }
}

#[test]
fn loss_is_repaired_and_seen() {
    let lossy = Path { loss: 0.01, ..Path::default() };
    let config = Config { default_path: lossy, offload: false, ..Config::default() };
    let Some((stats, conn)) = bulk(config, "bulk transfer with loss") else { return };
    assert_eq!((conn.bytes_up, conn.bytes_down), (8 << 20, 8 << 20));
    assert!(stats.lost > 0 && conn.retransmits > 0, "{stats:?}");
}

#[test]
fn bandwidth_limits_a_transfer() {
    let slow = Path { bandwidth_mbps: Some(200.0), ..Path::default() };
    let config = Config { default_path: slow, offload: false, ..Config::default() };
    let begin_ns = monotonic_ns();
    let Some((_, conn)) = bulk(config, "bulk transfer with limited bandwidth") else { return };
    // 8 MiB at 200 Mbit/s are 336 ms, both ways at the same time.
    let took_ns = monotonic_ns() - begin_ns;
    assert!(took_ns > 330 * MS && conn.bytes_down == 8 << 20, "{took_ns} ns");
}

#[test]
fn there_is_no_way_out() {
    let Some(rig) = Rig::try_new(rtt(0), "no egress") else { return };
    let outcome = rig.in_env(|| {
        let outside: SocketAddr = "192.0.2.1:80".parse().unwrap();
        TcpStream::connect_timeout(&outside, Duration::from_millis(300)).map(drop)
    });
    assert!(outcome.join().unwrap().is_err());
    rig.stop();
}

#[test]
fn tshark_reads_the_capture() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("skipped: capture read by tshark: tshark is not installed");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wire.pcap");
    let config = Config { pcap: Some(path.clone()), ..rtt(1000) };
    if bulk(config, "capture read by tshark").is_none() {
        return;
    }
    let tshark = |filter: &str, field: &str| {
        let output = Command::new("tshark")
            .arg("-r")
            .arg(&path)
            .args(["-Y", filter, "-T", "fields", "-e", field])
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(tshark("tcp.flags.syn==1 && tcp.flags.ack==0", "ip.src").trim(), "10.0.0.1");
    let rtt_s: f64 = tshark("tcp.flags.syn==1 && tcp.flags.ack==1", "tcp.time_delta").trim().parse().unwrap();
    assert!((0.001..0.1).contains(&rtt_s), "{rtt_s}");
    assert_eq!(tshark("_ws.malformed || tcp.analysis.lost_segment", "frame.number"), "");
    assert!(FilePath::new(&path).metadata().unwrap().len() > 16 << 20);
}
