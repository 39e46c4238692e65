//! A runtime process against the session of an [`Api`].

use super::{Api, DEADLINE};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A process that is killed when the test ends.
pub struct Process(Child);

impl Process {
    /// `program args…` with the environment of a function whose code is in `task_root`.
    pub fn start<S: AsRef<std::ffi::OsStr>>(
        api: &Api,
        program: &str,
        args: &[S],
        task_root: &Path,
        handler: &str,
    ) -> Process {
        Process::with(api, program, args, task_root, handler, &[])
    }

    /// … and more variables.
    pub fn with<S: AsRef<std::ffi::OsStr>>(
        api: &Api,
        program: &str,
        args: &[S],
        task_root: &Path,
        handler: &str,
        variables: &[(&str, &str)],
    ) -> Process {
        let child = Command::new(program)
            .args(args)
            .current_dir(task_root)
            .env("AWS_LAMBDA_RUNTIME_API", api.address.to_string())
            .env("_HANDLER", handler)
            .env("LAMBDA_TASK_ROOT", task_root)
            .env("AWS_LAMBDA_FUNCTION_NAME", "f")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
            .env("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/f")
            .env("AWS_LAMBDA_LOG_STREAM_NAME", "2026/11/20/[$LATEST]0")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|e| panic!("{program}: {e}"));
        Process(child)
    }

    /// Waits for its end: exit code and everything it printed.
    pub async fn end(mut self) -> (Option<i32>, String) {
        let mut printed = String::new();
        let mut stdout = self.0.stdout.take().unwrap();
        timeout(DEADLINE, stdout.read_to_string(&mut printed)).await.expect("an end in time").unwrap();
        (timeout(DEADLINE, self.0.wait()).await.expect("an end in time").unwrap().code(), printed)
    }

    /// Kills it: what it had printed.
    pub async fn kill(mut self) -> String {
        self.0.start_kill().unwrap();
        self.end().await.1
    }
}
