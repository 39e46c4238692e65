//! Everything at once, for as long as one likes: `cargo bench -p danki-secrets --bench soak -- 3600` (seconds; without a number, 20).
//! Values that change, failures of every sort behind the extension and clients of every sort before it, at a bounded rate; each answer
//! is checked, and at the end memory, descriptors and threads must be where they were after the first quarter.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![allow(clippy::disallowed_methods, reason = "how long a soak lasts is for whoever starts it to say")]

#[path = "../tests/support/mod.rs"]
mod support;

use danki_secrets::clock::{Now, now};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::process::{descriptors, free_port, rss_kib, wait_for};
use support::{Answer, Call, Client, Platform, Reply, TOKEN, Upstream, tls};

/// Steps per second: what a machine with better things to do does not notice.
const RATE: u32 = 50;
/// Keys that are asked for, four times as many as the cache holds.
const KEYS: u64 = 400;
const CACHE_SIZE: &str = "100";
const TTL_S: u64 = 2;
/// Beyond its time to live an answer may be on its way for so long: three tries upstream on a busy machine.
const ON_ITS_WAY: Duration = Duration::from_secs(20);
/// Half requests that are left standing, until the extension ends them.
const SLOW: usize = 20;
/// Memory may move by this much between the second quarter and the last: what an allocator keeps differs from moment to moment.
const FLAT_KIB: u64 = 256;
const SAMPLES: u32 = 120;

fn main() {
    let seconds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(20);
    let began = now();
    let authority = tls::authority();
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = folder.path().join("root.pem");
    std::fs::write(&bundle, &authority.root).expect("written");
    let upstream = Upstream::start_with(Some(authority.server), move |call| script(call, began));
    let platform = Platform::start();
    let port = free_port();
    let child = Command::new(env!("CARGO_BIN_EXE_danki-secrets"))
        .env_clear()
        .envs(support::variables(&upstream.url))
        .env("AWS_LAMBDA_RUNTIME_API", &platform.address)
        .env("AWS_LAMBDA_FUNCTION_NAME", "soak")
        .env("AWS_CA_BUNDLE", &bundle)
        .env("SECRETS_MANAGER_TTL", TTL_S.to_string())
        .env("SSM_PARAMETER_STORE_TTL", TTL_S.to_string())
        .env("DANKI_SECRETS_METRICS", "true")
        .env("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT", port.to_string())
        .env("PARAMETERS_SECRETS_EXTENSION_CACHE_SIZE", CACHE_SIZE)
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut soak =
        Soak { began, port: wait_for(port), kept: None, slow: Vec::new(), tally: Tally::default() };
    platform.wait_for_next();
    let samples = soak.run(Duration::from_secs(seconds), &child, &upstream, &platform);
    platform.shutdown();
    report(&soak.tally, &samples);
    let mut child = child;
    assert!(child.wait().expect("it ends").success(), "SHUTDOWN is a good end");
}

/// A value says when it was given, and is of many lengths; a share of the calls fails in one of the ways there are.
fn script(call: &Call, began: Now) -> Reply {
    if call.id().ends_with("missing") {
        return Reply::refusal(400, "ResourceNotFoundException");
    }
    match call.index % 100 {
        7 | 8 => Reply::refusal(500, "InternalServiceError"),
        23 => Reply::refusal(400, "ThrottlingException"),
        41 => Reply::Close,
        59 => Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"SecretString\":\"hal".to_vec()),
        73 => Reply::Json(200, "<html>".into()),
        88 => Reply::After(Duration::from_millis(50), Box::new(Reply::value(call, &value(call, began)))),
        _ => Reply::value(call, &value(call, began)),
    }
}

fn value(call: &Call, began: Now) -> String {
    format!("{} {}", now().since(began).as_millis(), "x".repeat(call.index * 7919 % 8192))
}

#[derive(Debug, Default)]
struct Tally {
    steps: u64,
    values: u64,
    refusals: u64,
    /// Refusals of what was there: upstream had failed three times, or spoken nonsense.
    failures: u64,
}

#[derive(Debug)]
struct Sample {
    rss_kib: u64,
    descriptors: usize,
}

struct Soak {
    began: Now,
    port: u16,
    kept: Option<Client>,
    slow: Vec<Client>,
    tally: Tally,
}

impl Soak {
    fn run(
        &mut self,
        length: Duration,
        child: &Child,
        upstream: &Upstream,
        platform: &Platform,
    ) -> Vec<Sample> {
        let mut samples = Vec::new();
        let began = now();
        for step in 0_u64.. {
            // From the schedule: a slow step is made up for.
            let due = Duration::from_secs(1) * u32::try_from(step).expect("less than a year") / RATE;
            if due >= length {
                break;
            }
            while let Some(left) = due.checked_sub(now().since(began)).filter(|left| !left.is_zero()) {
                std::thread::park_timeout(left);
            }
            self.step(step);
            if step % u64::from(RATE) == 0 {
                platform.invoke();
                platform.wait_for_next();
            }
            let sampled = u32::try_from(samples.len()).expect("few");
            if due >= length * sampled / SAMPLES {
                // What the peers noted must not fill this process's memory.
                upstream.calls.lock().expect("sound").clear();
                platform.seen.lock().expect("sound").clear();
                samples.push(Sample { rss_kib: rss_kib(child.id()), descriptors: descriptors(child.id()) });
            }
        }
        samples
    }

    fn step(&mut self, step: u64) {
        self.tally.steps += 1;
        // Some keys are asked for often, most seldom.
        let key = if step.is_multiple_of(3) { step % 20 } else { step * 7919 % KEYS };
        let secret = format!("/secretsmanager/get?secretId=s{key}");
        match step % 20 {
            0..=8 => self.ask_kept(&secret),
            9 | 10 => {
                self.ask_kept(&format!("/systemsmanager/parameters/get?name=p{key}&withDecryption=true"))
            }
            11..=13 => {
                let answer = Client::connect(self.port, Some(TOKEN)).get(&secret);
                self.judge(&answer);
            }
            14 => self.ask_kept(&format!("{secret}&refreshNow=true")),
            15 => self.refused(Some(TOKEN), "/secretsmanager/get?secretId=missing", 400),
            16 => self.refused(Some("wrong"), &secret, 401),
            17 => self.refused(None, "/elsewhere", 404),
            18 => self.leave_standing(),
            _ => self.together(step),
        }
    }

    fn ask_kept(&mut self, target: &str) {
        let mut kept = self.kept.take().unwrap_or_else(|| Client::connect(self.port, Some(TOKEN)));
        let answer = kept.get(target);
        self.judge(&answer);
        self.kept = Some(kept);
    }

    /// Right and young enough, or refused in AWS's words.
    fn judge(&mut self, answer: &Answer) {
        if answer.status != 200 {
            assert!(answer.is(400, "an unexpected error occurred while executing request"), "{answer:?}");
            self.tally.failures += 1;
            return;
        }
        let json = answer.json();
        let value = json["SecretString"].as_str().or_else(|| json["Parameter"]["Value"].as_str());
        let (given_ms, filling) = value.and_then(|value| value.split_once(' ')).expect("two words");
        let given = Duration::from_millis(given_ms.parse().expect("a time"));
        let age = now().since(self.began).saturating_sub(given);
        assert!(age <= Duration::from_secs(TTL_S) + ON_ITS_WAY, "a value is {age:?} old");
        assert!(filling.bytes().all(|byte| byte == b'x'), "{answer:?}");
        self.tally.values += 1;
    }

    fn refused(&mut self, token: Option<&str>, target: &str, status: u16) {
        let answer = Client::connect(self.port, token).get(target);
        assert_eq!(answer.status, status, "{answer:?}");
        self.tally.refusals += 1;
    }

    fn leave_standing(&mut self) {
        let mut client = Client::connect(self.port, None);
        client.send(b"GET /secretsmanager/get?secretId=");
        self.slow.push(client);
        if self.slow.len() > SLOW {
            self.slow.remove(0);
        }
    }

    /// Ten at once for the same key, one of which does not wait for its answer.
    fn together(&mut self, step: u64) {
        let target = format!("/secretsmanager/get?secretId=s{}", step % KEYS);
        let mut clients: Vec<Client> = (0..10).map(|_| Client::connect(self.port, Some(TOKEN))).collect();
        clients.iter_mut().for_each(|client| client.ask(&target));
        clients.pop();
        for client in &mut clients {
            let answer = client.answer().expect("an answer");
            self.judge(&answer);
        }
    }
}

fn report(tally: &Tally, samples: &[Sample]) {
    println!("{tally:?}");
    let quarters: Vec<&[Sample]> = samples.chunks(samples.len().div_ceil(4)).collect();
    for (quarter, samples) in (1..).zip(&quarters) {
        println!(
            "quarter {quarter}: {} samples, RSS {} to {} KiB, at most {} descriptors",
            samples.len(),
            samples.iter().map(|sample| sample.rss_kib).min().unwrap_or_default(),
            most_rss(samples),
            most_descriptors(samples)
        );
    }
    let [_, second, .., last] = quarters.as_slice() else { panic!("four quarters: {}", quarters.len()) };
    assert!(most_rss(last) <= most_rss(second) + FLAT_KIB, "memory grows");
    assert!(most_descriptors(last) <= most_descriptors(second) + 10, "descriptors grow");
    assert!(tally.values > 10 * tally.failures, "most answers are values: {tally:?}");
    println!("flat: memory within {FLAT_KIB} KiB, descriptors within 10");
}

fn most_rss(samples: &[Sample]) -> u64 {
    samples.iter().map(|sample| sample.rss_kib).max().unwrap_or_default()
}

fn most_descriptors(samples: &[Sample]) -> usize {
    samples.iter().map(|sample| sample.descriptors).max().unwrap_or_default()
}
