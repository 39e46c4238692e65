//! A hundred hits from Python's `requests`, client and server together under the CPU quota that a function of 128 MB has: what the
//! server pays, and what both pay. There the kernel's and everybody's caches are cold at each request, which is how it is in Lambda.

use crate::support::process::cpu_ns;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// 128 of 1,769 MB, in Lambda's periods.
const PERIOD_US: u32 = 20_000;
const QUOTA_US: u32 = 1_447;

const CLIENT: &str = r#"
import sys
import requests
url, token, hits, ways = sys.argv[1], sys.argv[2], int(sys.argv[3]), {"fresh": requests, "kept": requests.Session()}
headers = {"X-Aws-Parameters-Secrets-Token": token}
def get(way):
    answer = way.get(url, headers=headers)
    answer.raise_for_status()
    return answer.json()["SecretString"]
value = [get(way) for way in ways.values()][0]
print("ready", flush=True)
for line in sys.stdin:
    way = ways[line.strip()]
    for _ in range(hits):
        assert get(way) == value
    print("done", flush=True)
"#;

/// The cgroup that both are put into; removed at the end.
pub struct Quota(PathBuf);

/// CPU of so many hits, in ms.
pub struct Cost {
    pub server_ms: f64,
    pub client_ms: f64,
}

impl Quota {
    /// Makes it, in cgroup v1 or v2; in words, why it cannot be made.
    pub fn new() -> Result<Quota, String> {
        let name = format!("danki-secrets-race-{}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/cpu");
        let (root, settings) = if v1.join("cgroup.procs").exists() {
            let settings = vec![
                ("cpu.cfs_period_us", PERIOD_US.to_string()),
                ("cpu.cfs_quota_us", QUOTA_US.to_string()),
            ];
            (v1, settings)
        } else {
            (Path::new("/sys/fs/cgroup"), vec![("cpu.max", format!("{QUOTA_US} {PERIOD_US}"))])
        };
        let quota = Quota(root.join(name));
        let write = |file: &str, text: &str| {
            let path = quota.0.join(file);
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        fs::create_dir(&quota.0).map_err(|error| format!("{}: {error}", quota.0.display()))?;
        settings.iter().try_for_each(|(file, text)| write(file, text))?;
        Ok(quota)
    }

    fn take(&self, child: &Child) {
        fs::write(self.0.join("cgroup.procs"), child.id().to_string()).expect("a process that lives");
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Its processes were waited for; what cannot be removed now is empty and harmless.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Python with `requests`, ready to ask.
pub struct Client {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Client {
    /// Starts it; it has then asked once in each way.
    pub fn start(packages: &Path, url: &str, token: &str, hits: usize) -> Client {
        let mut child = Command::new("python3")
            .args(["-c", CLIENT, url, token, &hits.to_string()])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("PYTHONPATH", packages)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let (to, from) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut client = Client { child, to, from: BufReader::new(from) };
        client.expect("ready");
        client
    }

    fn expect(&mut self, word: &str) {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("it writes text");
        assert_eq!(line.trim(), word);
    }

    /// A round of hits, both sides under the quota.
    pub fn ask(&mut self, way: &str, quota: &Quota, server: &Child) -> Cost {
        quota.take(server);
        quota.take(&self.child);
        let before = (cpu_ns(server.id()), cpu_ns(self.child.id()));
        writeln!(self.to, "{way}").expect("it reads");
        self.expect("done");
        let after = (cpu_ns(server.id()), cpu_ns(self.child.id()));
        Cost { server_ms: (after.0 - before.0) / 1e6, client_ms: (after.1 - before.1) / 1e6 }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
