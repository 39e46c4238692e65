//! What the link costs and how exact it is: `cargo bench -p danki-link`. Needs root. Prints a table and a JSON line per figure.
#![allow(clippy::print_stdout, reason = "a benchmark prints")]
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run stops")]

#[path = "../tests/support/mod.rs"]
mod support;

use danki_link::{Config, Path, Stats};
use danki_sys::clock::monotonic_ns;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use support::{ENV, Rig};

const SERVER: &str = "198.18.1.1:443";
/// How long each throughput measurement sends.
const THROUGHPUT_NS: u64 = 2_000_000_000;

fn main() {
    load("before");
    for (rtt_us, connects) in [(1000, 1000), (5000, 300), (20_000, 100)] {
        connect(rtt_us, connects);
    }
    throughput(true);
    throughput(false);
    hold();
    load("after");
}

fn config(rtt_us: u64) -> Config {
    Config { default_path: Path { rtt_us, ..Path::default() }, ..Config::default() }
}

/// TCP connects as the env sees them, one after the other.
fn connect(rtt_us: u64, times: usize) {
    let rig = Rig::try_new(config(rtt_us), "benchmark").unwrap();
    let (ready, is_ready) = channel();
    let server = rig.in_region(move || {
        let listener = TcpListener::bind(SERVER).unwrap();
        ready.send(()).unwrap();
        for _ in 0..times {
            drop(listener.accept().unwrap());
        }
    });
    is_ready.recv().unwrap();
    let client = rig.in_env(move || {
        let mut took: Vec<f64> = (0..times)
            .map(|_| {
                let begin_ns = monotonic_ns();
                let stream = TcpStream::connect(SERVER).unwrap();
                let took_ns = monotonic_ns() - begin_ns;
                drop(stream);
                took_ns as f64 / 1e6
            })
            .collect();
        took.sort_by(f64::total_cmp);
        took
    });
    let took = client.join().unwrap();
    server.join().unwrap();
    let (stats, _) = rig.stop();
    let rank = |q: f64| took[((q * times as f64).ceil() as usize).max(1) - 1];
    let (p50, p99) = (rank(0.5), rank(0.99));
    println!("connect   RTT {:>2} ms   p50 {p50:.3} ms   p99 {p99:.3} ms   n {times}", rtt_us / 1000);
    println!(r#"{{"figure":"connect","rtt_us":{rtt_us},"n":{times},"p50_ms":{p50:.4},"p99_ms":{p99:.4}}}"#);
    lateness(&stats);
}

fn lateness(stats: &Stats) {
    let late = &stats.lateness;
    let us = |ns: u64| ns as f64 / 1e3;
    let (p50, p99, max) = (us(late.p50_ns), us(late.p99_ns), us(late.max_ns));
    println!(
        "  lateness   p50 {p50:.2} µs   p99 {p99:.1} µs   max {max:.0} µs   n {}   realtime {}",
        late.count, stats.realtime
    );
    println!(
        r#"{{"figure":"lateness","n":{},"p50_us":{p50:.3},"p99_us":{p99:.3},"max_us":{max:.1}}}"#,
        late.count
    );
}

/// One TCP connection of one env, as fast as it goes, RTT 1 ms.
fn throughput(up: bool) {
    let rig = Rig::try_new(config(1000), "benchmark").unwrap();
    let (ready, is_ready) = channel();
    let server = rig.in_region(move || {
        let listener = TcpListener::bind(SERVER).unwrap();
        ready.send(()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        if up { drain(stream) } else { flood(stream) }
    });
    is_ready.recv().unwrap();
    let client = rig.in_env(move || {
        let stream = TcpStream::connect(SERVER).unwrap();
        if up { flood(stream) } else { drain(stream) }
    });
    let (a, b) = (client.join().unwrap(), server.join().unwrap());
    let (stats, _) = rig.stop();
    let gbit = if up { b } else { a };
    let way = if up { "up" } else { "down" };
    println!(
        "throughput   {way:<4} {gbit:.2} Gbit/s   {} packets of {} bytes",
        stats.packets,
        stats.bytes / stats.packets
    );
    println!(r#"{{"figure":"throughput","way":"{way}","gbit_s":{gbit:.3}}}"#);
    println!("  drops {}   retries {}", stats.dropped_bound, stats.write_retries);
    lateness(&stats);
}

fn flood(mut stream: TcpStream) -> f64 {
    let (block, begin_ns) = (vec![7; 1 << 20], monotonic_ns());
    while monotonic_ns() - begin_ns < THROUGHPUT_NS {
        stream.write_all(&block).unwrap();
    }
    0.0
}

/// Reads to the end; Gbit/s.
fn drain(mut stream: TcpStream) -> f64 {
    let (mut block, mut bytes, begin_ns) = (vec![0; 1 << 20], 0, monotonic_ns());
    loop {
        match stream.read(&mut block).unwrap() {
            0 => return bytes as f64 * 8.0 / (monotonic_ns() - begin_ns) as f64,
            length => bytes += length,
        }
    }
}

/// Hold and release of an idle env.
fn hold() {
    let rig = Rig::try_new(config(1000), "benchmark").unwrap();
    let link = rig.link.handle();
    let mut took: Vec<[u64; 2]> = (0..2000)
        .map(|_| {
            let begin_ns = monotonic_ns();
            link.hold(ENV);
            let held_ns = monotonic_ns();
            link.release(ENV);
            [held_ns - begin_ns, monotonic_ns() - held_ns]
        })
        .collect();
    for (index, name) in ["hold", "release"].into_iter().enumerate() {
        took.sort_by_key(|pair| pair[index]);
        let us = |rank: usize| took[rank][index] as f64 / 1e3;
        let (p50, p99) = (us(999), us(1979));
        println!("{name:<9} p50 {p50:.1} µs   p99 {p99:.1} µs   n 2000");
        println!(r#"{{"figure":"{name}","n":2000,"p50_us":{p50:.2},"p99_us":{p99:.2}}}"#);
    }
    rig.stop();
}

fn load(when: &str) {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    println!("host {when}: load {} on {cpus} CPUs", text.trim());
}
