//! `danki-secrets` beside AWS's open agent, interleaved, in one run: CPU and time from spawn to the first value through a TLS upstream,
//! cached hits on one kept connection and on a new connection each, memory; hits from Python's `requests` under the quota of 128 MB. The peer is looked for at
//! `target/peers/aws_secretsmanager_agent` (docs/secrets.md says how to build it); ours is the layer's binary if it is there.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

#[path = "race/quota.rs"]
mod quota;
#[path = "../tests/support/mod.rs"]
mod support;

use danki_secrets::clock::now;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::process::{cpu_ns, free_port, rss_kib, wait_for};
use support::{Client, Reply, TOKEN, Upstream, tls};

const ROUNDS: usize = 15;
const HITS: usize = 4_000;
const CONNECTIONS: usize = 1_000;
/// Rounds under the quota, which makes them slow, and hits in each.
const QUOTA_ROUNDS: usize = 5;
const QUOTA_HITS: usize = 100;
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
    let packages = root.join("functions/secrets-extension-python/.deps/python");
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
    match quota::Quota::new() {
        Ok(quota) if packages.exists() => under_quota(&racers, &upstream.url, &bundle, &packages, &quota),
        Ok(_) => println!("skipped: requests: {} is not there; hint: make functions", packages.display()),
        Err(why) => println!("skipped: requests under the quota: {why}"),
    }
}

fn race(racer: &Racer, upstream: &str, bundle: &Path, result: &mut Result) {
    let began = now();
    let mut child = spawn(racer, upstream, bundle);
    let mut client = Client::connect(wait_for(racer.port), Some(TOKEN));
    let first = client.get(TARGET);
    result.first_wall_ms.0.push(now().since(began).as_secs_f64() * 1e3);
    assert_eq!(first.status, 200, "{}: {}", racer.name, first.body);
    result.first_cpu_ms.0.push(cpu_ns(child.id()) / 1e6);

    for _ in 0..200 {
        client.get(TARGET);
    }
    let before = cpu_ns(child.id());
    let mut times: Vec<f64> = (0..HITS)
        .map(|_| {
            let asked = now();
            client.get(TARGET);
            now().since(asked).as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    result.hit_p50_us.0.push(times[HITS / 2]);
    result.hits_per_cpu_s.0.push(HITS as f64 / ((cpu_ns(child.id()) - before) / 1e9));

    let before = cpu_ns(child.id());
    for _ in 0..CONNECTIONS {
        Client::connect(racer.port, Some(TOKEN)).get(TARGET);
    }
    result.fresh_cpu_us.0.push((cpu_ns(child.id()) - before) / 1e3 / CONNECTIONS as f64);
    result.rss_mib.0.push(rss_kib(child.id()) as f64 / 1024.0);
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

/// What a hundred hits cost, from a client that connects anew each time and from one that does not.
fn under_quota(racers: &[Racer], upstream: &str, bundle: &Path, packages: &Path, quota: &quota::Quota) {
    println!(
        "requests under the quota of 128 MB: CPU ms per {QUOTA_HITS} hits, medians of {QUOTA_ROUNDS} interleaved rounds"
    );
    println!("{:<16}{:>8}{:>10}{:>10}{:>10}", "", "", "server", "client", "both");
    for way in ["fresh", "kept"] {
        let mut costs: Vec<[Figures; 3]> = racers.iter().map(|_| Default::default()).collect();
        for _ in 0..QUOTA_ROUNDS {
            for (racer, costs) in racers.iter().zip(&mut costs) {
                let mut child = spawn(racer, upstream, bundle);
                let url = format!("http://127.0.0.1:{}{TARGET}", wait_for(racer.port));
                let mut client = quota::Client::start(packages, &url, TOKEN, QUOTA_HITS);
                let cost = client.ask(way, quota, &child);
                let each = [cost.server_ms, cost.client_ms, cost.server_ms + cost.client_ms];
                costs.iter_mut().zip(each).for_each(|(figures, ms)| figures.0.push(ms));
                child.kill().expect("it runs");
                child.wait().expect("it ends");
            }
        }
        for (racer, costs) in racers.iter().zip(&costs) {
            let [server, client, both] = costs.each_ref().map(Figures::median);
            println!("{:<16}{way:>8}{server:>10.2}{client:>10.2}{both:>10.2}", racer.name);
        }
        if let [ours, theirs] = costs.as_slice() {
            let ratio = |at: usize| ours[at].median() / theirs[at].median();
            println!("ours / the agent's, {way}: server {:.3}, both {:.3}", ratio(0), ratio(2));
        }
    }
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
