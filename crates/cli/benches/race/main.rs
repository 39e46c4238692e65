//! `danki up` beside AWS's Runtime Interface Emulator (RIE): a warm echo through HTTP Invoke, one client, rounds in turn, the same Node and
//! the same runtime in both. Then what has no peer: invocations per second over 16 environments (of a native echo, which costs next to nothing;
//! and of the same Node, which is then most of it), time to ready, memory at rest.
//! `cargo bench -p danki-cli --bench race` (root). The RIE is built by `go install` into `target/race`; without it the race goes on alone.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark: it prints, and a failure is its end"
)]

mod client;
#[path = "../../../testkit/benches/native/echo.rs"]
mod echo;
mod racers;

use client::Client;
use danki_stats::{Method, Sample};
use danki_sys::clock;
use danki_testkit::eventually;
use racers::{Code, Danki, Rie};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const ROUNDS: usize = 20;
const PER_ROUND: usize = 100;
const WARM_UP: usize = 200;
const STARTS: usize = 11;
const ENVS: usize = 16;
const SECONDS: u64 = 8;
/// Memory at rest is read after this long.
const REST: Duration = Duration::from_secs(2);

/// The promises of the race.
const OVER_RIE_MS: f64 = 0.4;
const PER_S: f64 = 3_000.0;
const READY_MS: f64 = 300.0;
const RSS_MB: f64 = 40.0;

fn main() {
    if echo::is_runtime() {
        return echo::serve();
    }
    println!("load of the machine: {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    start_and_rest();
    echo();
    for code in [Code::Native, Code::Node] {
        for freezer in [false, true] {
            throughput(freezer, code);
        }
    }
}

fn start_and_rest() {
    let (mut ready, mut runnable) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let danki = Danki::start(&[]);
        ready.push(danki.ready_ms);
        runnable.push(danki.functions_can_run_ms());
    }
    let danki = Danki::start(&[]);
    danki.functions_can_run_ms();
    // Nothing is waited for: it rests.
    eventually(REST, || false);
    let rss_mb = danki.rss_mb();
    println!("\n`danki up`, {STARTS} starts, and its memory {} s after one", REST.as_secs());
    let (ready, runnable) = (summary(ready), summary(runnable));
    row("ready, ms", &ready, verdict(ready.max, READY_MS));
    row("functions can run, ms", &runnable, String::new());
    println!("{:<28} {rss_mb:.1} of danki and its keeper   {}", "resident, MB", verdict(rss_mb, RSS_MB));
}

/// One client, one connection each, rounds in turn.
fn echo() {
    let (thawed, frozen) = (Danki::start(&["--no-freeze"]), Danki::start(&[]));
    let mut names = vec!["danki, freezer off", "danki, freezer on"];
    let mut clients = vec![thawed.echo("warm"), frozen.echo("warm")];
    let rie = Rie::start();
    match &rie {
        Ok(rie) => {
            names.push("RIE (never freezes)");
            clients.push(rie.echo());
        }
        Err(why) => println!("\nskipped: RIE: {why}"),
    }
    clients.iter_mut().for_each(|client| drop(spans(client, WARM_UP)));
    let mut all: Vec<Vec<f64>> = vec![Vec::new(); clients.len()];
    for round in 0..ROUNDS {
        // Each is first, last and in the middle equally often.
        for turn in 0..clients.len() {
            let racer = (round + turn) % clients.len();
            all[racer].extend(spans(&mut clients[racer], PER_ROUND));
        }
    }
    println!("\nwarm echo through HTTP Invoke, one client, ms; {} each, in turn", ROUNDS * PER_ROUND);
    let all: Vec<_> = all.into_iter().map(summary).collect();
    let rie = all.get(2).map(|rie| rie.p50);
    let against = |p50, more| rie.map_or_else(String::new, |rie| verdict(p50, rie + more));
    row(names[0], &all[0], against(all[0].p50, 0.0));
    row(names[1], &all[1], against(all[1].p50, OVER_RIE_MS));
    if let Some(summary) = all.get(2) {
        row(names[2], summary, String::new());
    }
}

/// As many clients as environments, each invoking as fast as it is answered.
fn throughput(freezer: bool, code: Code) {
    let flags: &[&str] = if freezer { &[] } else { &["--no-freeze"] };
    let danki = Danki::start(flags);
    let (count, begin) = (AtomicU64::new(0), Barrier::new(ENVS));
    let clients: Vec<Client> = (0..ENVS).map(|n| danki.echo_of("busy", (n == 0).then_some(code))).collect();
    // The first two seconds make environments.
    let counted_ns = clock::monotonic_ns() + 2_000_000_000;
    let until_ns = counted_ns + SECONDS * 1_000_000_000;
    thread::scope(|scope| {
        for mut client in clients {
            let (count, begin) = (&count, &begin);
            scope.spawn(move || {
                begin.wait();
                while clock::monotonic_ns() < until_ns {
                    client.echo();
                    let counts = clock::monotonic_ns() > counted_ns;
                    count.fetch_add(u64::from(counts), Ordering::Relaxed);
                }
            });
        }
    });
    let per_s = count.load(Ordering::Relaxed) as f64 / SECONDS as f64;
    let envs = danki.envs("busy");
    let word = if freezer { "on" } else { "off" };
    let verdict = match code {
        Code::Native if per_s >= PER_S => format!("≥ {PER_S}: holds"),
        Code::Native => format!("≥ {PER_S}: missed"),
        Code::Node => "for comparison".to_owned(),
    };
    println!(
        "\n{ENVS} clients, {envs} environments, {code:?}, freezer {word}: {per_s:.0} invocations/s   {verdict}"
    );
}

fn spans(client: &mut Client, n: usize) -> Vec<f64> {
    let one = |_| {
        let began_ns = clock::monotonic_ns();
        client.echo();
        (clock::monotonic_ns() - began_ns) as f64 / 1e6
    };
    (0..n).map(one).collect()
}

fn summary(spans: Vec<f64>) -> danki_stats::Summary {
    Sample::new(spans).unwrap().summary(Method::NearestRank)
}

fn verdict(figure: f64, limit: f64) -> String {
    format!("≤ {limit:.3}: {}", if figure <= limit { "holds" } else { "missed" })
}

fn row(name: &str, s: &danki_stats::Summary, verdict: String) {
    println!(
        "{name:<28} p50 {:>7.3} p90 {:>7.3} p99 {:>7.3} max {:>7.3}   {verdict}",
        s.p50, s.p90, s.p99, s.max
    );
}
