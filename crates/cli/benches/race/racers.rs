//! Those who race: `danki up` and AWS's emulator, each a process of its own that ends with its value.

use crate::client::Client;
use danki_sys::clock;
use danki_testkit::{eventually, repository};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// The emulator's commit: of 2026-01-02.
const RIE: &str = "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@4fa21571526087e3a0076b9fecf67a79e3927994";
const PATIENCE: Duration = Duration::from_secs(60);

/// What echoes.
#[derive(Clone, Copy, Debug)]
pub enum Code {
    Native,
    Node,
}

pub struct Danki {
    process: Child,
    /// The native echo's code.
    native: tempfile::TempDir,
    address: SocketAddr,
    notes: Receiver<String>,
    /// From spawn to its first line.
    pub ready_ms: f64,
}

impl Danki {
    pub fn start(flags: &[&str]) -> Danki {
        let began_ns = clock::monotonic_ns();
        let mut process = Command::new(env!("CARGO_BIN_EXE_danki"))
            .args(["up", "--port", "0", "--account-limit", "2000"])
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let ready_ms = (clock::monotonic_ns() - began_ns) as f64 / 1e6;
        let address =
            first.trim().rsplit('/').next().unwrap().parse().expect("danki up says where it listens");
        let (sender, notes) = channel();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let native = tempfile::tempdir().unwrap();
        crate::echo::deploy(native.path());
        Danki { process, native, address, notes, ready_ms }
    }

    /// What it says of itself; waits for that.
    pub fn functions_can_run_ms(&self) -> f64 {
        loop {
            let note = self.notes.recv_timeout(PATIENCE).expect("it says when functions can run");
            if let Some(rest) = note.strip_prefix("functions can run (") {
                return rest.trim_end_matches(" ms)").parse().unwrap();
            }
        }
    }

    /// Resident memory of it and of its children that are danki, too.
    pub fn rss_mb(&self) -> f64 {
        let own = self.process.id();
        let children =
            std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        let pids = children.split_whitespace().filter_map(|pid| pid.parse().ok()).chain([own]);
        pids.map(resident_mb).sum()
    }

    /// A client of a new echo function with one full vCPU.
    pub fn echo(&self, name: &str) -> Client {
        self.echo_of(name, Some(Code::Node))
    }

    /// A client of an echo function, which is made first if its code is given.
    pub fn echo_of(&self, name: &str, new: Option<Code>) -> Client {
        let mut client = Client::new(self.address, &format!("/2015-03-31/functions/{name}/invocations"));
        if let Some(code) = new {
            let (runtime, dir) = match code {
                Code::Node => ("nodejs20.x", repository().join("functions/echo-node")),
                Code::Native => ("provided.al2023", self.native.path().to_owned()),
            };
            let function = json!({
                "FunctionName": name, "Runtime": runtime, "Handler": "index.handler", "MemorySize": 1769, "Timeout": 60,
                "Role": "arn:aws:iam::123456789012:role/race", "Code": {"S3Bucket": "danki-local", "S3Key": dir},
            });
            let (status, said) = client.call("POST", "/2015-03-31/functions", &function.to_string());
            assert_eq!(status, 201, "{said}");
            let path = format!("/2015-03-31/functions/{name}/configuration");
            assert!(eventually(PATIENCE, || parsed(client.call("GET", &path, "").1)["State"] == "Active"));
        }
        client
    }

    /// Environments of a function that have written to their log.
    pub fn envs(&self, name: &str) -> usize {
        let mut client = Client::new(self.address, "/");
        let path = format!("/_danki/logs/{name}?after=0");
        let (_, text) = client.call("GET", &path, "");
        let streams = text.lines().map(|line| parsed(line.to_owned())["stream"].to_string());
        streams.collect::<std::collections::BTreeSet<_>>().len()
    }
}

impl Drop for Danki {
    fn drop(&mut self) {
        kill_process(Pid::from_child(&self.process), Signal::INT).ok();
        self.process.wait().ok();
    }
}

fn parsed(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or_default()
}

fn resident_mb(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb: f64 = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0.0);
    kb / 1024.0
}

pub struct Rie {
    process: Child,
    address: SocketAddr,
}

impl Rie {
    /// Builds it if it is not there, and starts it. Err says why not.
    pub fn start() -> Result<Rie, String> {
        let dir = repository().join("target/race");
        let binary = dir.join("aws-lambda-rie");
        if !binary.exists() {
            let built =
                Command::new("go").args(["install", RIE]).env("GOBIN", &dir).env("GOFLAGS", "").output();
            let built = built.map_err(|error| format!("go does not run: {error}"))?;
            if !built.status.success() {
                return Err(String::from_utf8_lossy(&built.stderr).trim().replace('\n', "; "));
            }
        }
        let (address, api) = (free(), free());
        let process = Command::new(binary)
            .args(["--log-level", "error"])
            .args(["--runtime-interface-emulator-address", &address.to_string()])
            .args(["--runtime-api-address", &api.to_string()])
            .args(["node".into(), repository().join("runtimes/node/bootstrap.mjs"), "index.handler".into()])
            .current_dir(repository().join("functions/echo-node"))
            .env("LAMBDA_TASK_ROOT", repository().join("functions/echo-node"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let rie = Rie { process, address };
        match eventually(PATIENCE, || TcpStream::connect(address).is_ok()) {
            true => Ok(rie),
            false => Err("it does not listen".to_owned()),
        }
    }

    pub fn echo(&self) -> Client {
        Client::new(self.address, "/2015-03-31/functions/function/invocations")
    }
}

impl Drop for Rie {
    fn drop(&mut self) {
        // Its runtime ends with its connection to the Runtime API.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// An address that nobody has just now.
fn free() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}
