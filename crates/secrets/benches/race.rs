//! `danki-secrets` beside AWS's open agent, interleaved, in one run: CPU and time from spawn to the first value through a TLS upstream,
//! cached hits on one kept connection and on a new connection each, memory. The peer is looked for at
//! `target/peers/aws_secretsmanager_agent` (docs/secrets.md says how to build it); ours is the layer's binary if it is there.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[path = "../tests/support/mod.rs"]
mod support;

use danki_secrets::clock::now;
use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{Client, Reply, TOKEN, Upstream, tls};

const ROUNDS: usize = 15;
const HITS: usize = 4_000;
const CONNECTIONS: usize = 1_000;
const TARGET: &str = "/secretsmanager/get?secretId=prod/db";

struct Racer {
    name: &'static str,
    binary: PathBuf,
    arguments: Vec<String>,
    port: u16,
}

/// One figure of each round.
#[derive(Default)]
struct Figures(Vec<f64>);

impl Figures {
    /// The middle value (of an odd number; of an even number, the upper of the two).
    fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

#[derive(Default)]
struct Result {
    first_cpu_ms: Figures,
    first_wall_ms: Figures,
    rss_mib: Figures,
    hit_p50_us: Figures,
    hits_per_cpu_s: Figures,
    fresh_cpu_us: Figures,
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let agent = root.join("target/peers/aws_secretsmanager_agent");
    let layer =
        root.join(format!("target/{}-unknown-linux-musl/layer/danki-secrets", std::env::consts::ARCH));
    let ours = if layer.exists() { layer } else { PathBuf::from(env!("CARGO_BIN_EXE_danki-secrets")) };
    let folder = tempfile::tempdir().expect("a folder");
    let authority = tls::authority();
    let bundle = folder.path().join("root.pem");
    fs::write(&bundle, &authority.root).expect("written");
    let value = r#"{"host":"db.example","user":"app","password":"not a real one"}"#;
    let upstream = Upstream::start_with(Some(authority.server), move |call| Reply::value(call, value));
    let mut racers =
        vec![Racer { name: "danki-secrets", binary: ours, arguments: Vec::new(), port: free_port() }];
    if agent.exists() {
        let port = free_port();
        let config = folder.path().join("agent.toml");
        let text = format!(
            "http_port = {port}\nregion = \"us-east-1\"\nlog_level = \"none\"\nlog_to_file = false\nvalidate_credentials = false\n"
        );
        fs::write(&config, text).expect("written");
        let arguments = vec!["--config".to_owned(), config.display().to_string()];
        racers.push(Racer { name: "agent", binary: agent, arguments, port });
    } else {
        println!("skipped: the agent: {} is not there", agent.display());
    }
    let mut results: Vec<Result> = racers.iter().map(|_| Result::default()).collect();
    for _ in 0..ROUNDS {
        for (racer, result) in racers.iter().zip(&mut results) {
            race(racer, &upstream.url, &bundle, result);
        }
    }
    report(&racers, &results);
}

fn race(racer: &Racer, upstream: &str, bundle: &Path, result: &mut Result) {
    let began = now();
    let mut child = spawn(racer, upstream, bundle);
    let mut client = Client::connect(wait_for(racer.port), Some(TOKEN));
    let first = client.get(TARGET);
    result.first_wall_ms.0.push(now().since(began).as_secs_f64() * 1e3);
    assert_eq!(first.status, 200, "{}: {}", racer.name, first.body);
    result.first_cpu_ms.0.push(cpu_ns(&child) / 1e6);

    for _ in 0..200 {
        client.get(TARGET);
    }
    let before = cpu_ns(&child);
    let mut times: Vec<f64> = (0..HITS)
        .map(|_| {
            let asked = now();
            client.get(TARGET);
            now().since(asked).as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    result.hit_p50_us.0.push(times[HITS / 2]);
    result.hits_per_cpu_s.0.push(HITS as f64 / ((cpu_ns(&child) - before) / 1e9));

    let before = cpu_ns(&child);
    for _ in 0..CONNECTIONS {
        Client::connect(racer.port, Some(TOKEN)).get(TARGET);
    }
    result.fresh_cpu_us.0.push((cpu_ns(&child) - before) / 1e3 / CONNECTIONS as f64);
    result.rss_mib.0.push(rss_mib(&child));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

fn spawn(racer: &Racer, upstream: &str, bundle: &Path) -> Child {
    Command::new(&racer.binary)
        .args(&racer.arguments)
        .env_clear()
        .env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_SESSION_TOKEN", TOKEN)
        .env("AWS_TOKEN", TOKEN)
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ENDPOINT_URL", upstream)
        .env("AWS_CA_BUNDLE", bundle)
        .env("SSL_CERT_FILE", bundle)
        .env("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT", racer.port.to_string())
        .env("PARAMETERS_SECRETS_EXTENSION_LOG_LEVEL", "none")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", racer.binary.display()))
}

/// Tries until somebody listens.
fn wait_for(port: u16) -> u16 {
    let began = now();
    while let Err(error) = TcpStream::connect(("127.0.0.1", port)) {
        assert!(error.kind() == ErrorKind::ConnectionRefused && now().since(began).as_secs() < 10, "{error}");
        std::thread::park_timeout(Duration::from_micros(200));
    }
    port
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// CPU time of all threads that live, in nanoseconds; neither racer ends a thread within a round.
fn cpu_ns(child: &Child) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).expect("it lives");
    let times = tasks.filter_map(|task| {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    times.sum()
}

fn rss_mib(child: &Child) -> f64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().split(' ').next().and_then(|kib| kib.parse::<f64>().ok()).expect("a number") / 1024.0
}

fn report(racers: &[Racer], results: &[Result]) {
    println!(
        "medians of {ROUNDS} interleaved rounds; {HITS} hits on one connection, {CONNECTIONS} on one each"
    );
    println!(
        "{:<16}{:>12}{:>14}{:>10}{:>14}{:>16}{:>18}",
        "", "first CPU ms", "first wall ms", "RSS MiB", "hit p50 us", "hits per CPU s", "CPU us per fresh"
    );
    for (racer, result) in racers.iter().zip(results) {
        println!(
            "{:<16}{:>12.2}{:>14.2}{:>10.2}{:>14.1}{:>16.0}{:>18.1}",
            racer.name,
            result.first_cpu_ms.median(),
            result.first_wall_ms.median(),
            result.rss_mib.median(),
            result.hit_p50_us.median(),
            result.hits_per_cpu_s.median(),
            result.fresh_cpu_us.median()
        );
        let size = fs::metadata(&racer.binary).map(|binary| binary.len()).unwrap_or_default();
        println!("{:<16}{size} bytes", "");
    }
    if let [ours, theirs] = results {
        let ratio = |of: &dyn Fn(&Result) -> f64| of(ours) / of(theirs);
        println!(
            "ours / the agent's: first CPU {:.3}, hit p50 {:.2}, hits per CPU second {:.2}, CPU per fresh connection {:.2}, RSS {:.2}",
            ratio(&|result| result.first_cpu_ms.median()),
            ratio(&|result| result.hit_p50_us.median()),
            ratio(&|result| result.hits_per_cpu_s.median()),
            ratio(&|result| result.fresh_cpu_us.median()),
            ratio(&|result| result.rss_mib.median())
        );
    }
}
