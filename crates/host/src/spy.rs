//! CPU profiles of Python functions: py-spy looks at the runtime's process from outside, once per invocation.
//!
//! It reads the process's memory without stopping it, so that a frozen one can be looked at too and is before the event comes: the sampler is
//! at work when the invocation begins. What it writes goes to a directory that the function cannot reach. Init has no profile: py-spy needs
//! an interpreter that is up.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Samples per second: one costs the machine some 50 us.
const RATE: &str = "500";
/// Reading the symbols of an interpreter takes a tenth of a second, on a busy machine more.
const START: Duration = Duration::from_secs(5);
/// Writing the samples of a minute takes less.
const END: Duration = Duration::from_secs(5);
/// What it says when it has begun.
const BEGUN: &str = "Sampling process";

/// Where py-spy is, and where its profiles go.
#[derive(Debug)]
pub(crate) struct Spies {
    program: Option<PathBuf>,
    dir: PathBuf,
}

/// py-spy at work.
pub(crate) struct Spy {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Spies {
    /// Looks for py-spy, and makes a directory of danki's own in the one that functions may write to.
    pub fn find(search_path: &[PathBuf], profiles: &Path) -> io::Result<Spies> {
        let program = search_path.iter().map(|dir| dir.join("py-spy")).find(|path| path.is_file());
        let dir = profiles.join("python");
        fs::create_dir_all(&dir)?;
        Ok(Spies { program, dir })
    }

    /// Whether there is a py-spy.
    pub fn are_there(&self) -> bool {
        self.program.is_some()
    }

    /// Begins to sample; none if there is no py-spy.
    pub async fn begin(&self, pid: u32, name: &str) -> io::Result<Option<Spy>> {
        let Some(program) = &self.program else { return Ok(None) };
        let mut child = Command::new(program)
            .args(["record", "--nonblocking", "--format", "speedscope", "--rate", RATE, "--pid"])
            .arg(pid.to_string())
            .arg("--output")
            .arg(self.dir.join(format!("{name}.speedscope.json")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut spy = Spy { child, stdout };
        match timeout(START, spy.begun()).await {
            Ok(true) => Ok(Some(spy)),
            Ok(false) => Err(io::Error::other("py-spy could not look into the process")),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Spy {
    /// Whether it says that it has begun before it ends.
    async fn begun(&mut self) -> bool {
        let mut line = String::new();
        while self.stdout.read_line(&mut line).await.is_ok_and(|n| n > 0) {
            if line.contains(BEGUN) {
                return true;
            }
            line.clear();
        }
        false
    }

    /// Has the profile written.
    pub async fn end(mut self) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        // It may have ended by itself, with the process that it looked at.
        pid.into_iter().for_each(|pid| kill_process(pid, Signal::INT).unwrap_or_default());
        // What it says meanwhile must not fill the pipe.
        let ended = async {
            let mut line = String::new();
            while self.stdout.read_line(&mut line).await.is_ok_and(|n| n > 0) {
                line.clear();
            }
            self.child.wait().await.ok();
        };
        timeout(END, ended).await.unwrap_or_default();
    }
}
