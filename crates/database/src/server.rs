//! The server: its files, its processes, and its end.

use crate::{Config, Error, proxies, seed};
use danki_db_proxy::Running;
use danki_record::Recorder;
use danki_sys::plan::{MountPlan, ProcessPlan, RootPlan};
use danki_sys::{ExitStatus, Sandbox, SandboxEvent, Spawned, system_dirs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Where Debian has the server; the other programs lie beside it or in `/usr/bin`.
const SERVER: &str = "/usr/sbin/mariadbd";
const INSTALL: &str = "/usr/bin/mariadb-install-db";
const CLIENT: &str = "/usr/bin/mariadb";
/// Data and socket, inside.
const DATA: &str = "/var/db";
const SOCKET: &str = "--socket=/var/db/sock";
/// What danki gives the server to read, inside.
const GIVEN: &str = "/etc/danki";
/// The system tables take 110 MB; the file behind the disk is sparse.
const DISK_MB: u32 = 8_192;
const TMP_MB: u32 = 1_024;
/// Starting takes about a second; disks may be slow, and a user's SQL long.
const START: Duration = Duration::from_secs(60);
const SEED: Duration = Duration::from_secs(600);
/// Last words that are kept.
const WORDS: usize = 12;

/// A certificate with its chain, and its key: PEM.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The host's certificate, then its issuer's.
    pub chain: String,
    /// The key.
    pub key: String,
}

/// A directory with what the server reads; goes with this value, or with the directory that it is in.
#[derive(Debug)]
pub struct Files {
    dir: PathBuf,
}

impl Files {
    /// Makes it below `keeper`, the keeper's own directory, to which only danki's user gets: it holds keys. Inside of the sandbox it is
    /// open for the server's user.
    pub fn create(keeper: &Path) -> Result<Files, Error> {
        let nth = |n: u32| keeper.join(format!("database-{n}"));
        let dir = (0..).map(nth).find(|dir| !dir.exists()).expect("there are more numbers than directories");
        let open = || fs::set_permissions(&dir, fs::Permissions::from_mode(0o755));
        match fs::create_dir(&dir).and_then(|()| open()) {
            Ok(()) => Ok(Files { dir }),
            Err(source) => Err(Error::File { path: dir, source }),
        }
    }

    pub(crate) fn put(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.dir.join(name);
        match fs::write(&path, text) {
            Ok(()) => Ok(path),
            Err(source) => Err(Error::File { path, source }),
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // The keeper removes what is left.
        fs::remove_dir_all(&self.dir).ok();
    }
}

/// The file system of the sandbox that a server can live in.
///
/// # Errors
/// This machine has no server.
pub fn root(files: &Files) -> Result<RootPlan, Error> {
    for program in [SERVER, INSTALL, CLIENT] {
        if !Path::new(program).exists() {
            return Err(Error::Missing { program });
        }
    }
    let bind = |source: &Path, target: &str| MountPlan::Bind {
        source: source.to_path_buf(),
        target: target.into(),
        read_only: true,
    };
    let mut mounts = vec![bind(Path::new("/usr"), "/usr")];
    mounts.extend(system_dirs());
    let etc = ["/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"];
    mounts.extend(etc.iter().filter(|path| Path::new(path).exists()).map(|path| bind(Path::new(path), path)));
    mounts.push(bind(&files.dir, GIVEN));
    mounts.push(MountPlan::Proc { target: "/proc".into() });
    mounts.push(MountPlan::Dev { target: "/dev".into() });
    mounts.push(MountPlan::Disk { target: "/tmp".into(), size_mb: TMP_MB, mode: 0o1777 });
    mounts.push(MountPlan::Disk { target: DATA.into(), size_mb: DISK_MB, mode: 0o777 });
    Ok(RootPlan { mounts })
}

/// A running database with its proxies. The server ends with its sandbox; the proxies end when this is dropped.
pub struct Database {
    proxies: Vec<Running>,
    words: Words,
    _files: Files,
}

impl Database {
    /// Starts the server in `sandbox`, seeds it, and starts the proxies. `certificates`: the database's, then one for each proxy. Blocks
    /// for a second or two.
    pub fn start(
        config: &Config,
        files: Files,
        certificates: &[Certificate],
        sandbox: &Sandbox,
        recorder: &Recorder,
    ) -> Result<Database, Error> {
        let (own, of_proxies) =
            certificates.split_first().expect("the caller makes one for the database and each proxy");
        files.put("server.crt", &own.chain)?;
        files.put("server.key", &own.key)?;
        run(sandbox, "mariadb-install-db", &install(), START)?;
        let words = serve(sandbox, config)?;
        files.put("seed.sql", &seed::sql(config))?;
        run(sandbox, "the account and the generated rows", &client(None, "seed.sql"), SEED)?;
        if let Some(sql) = &config.sql {
            let text = fs::read_to_string(sql).map_err(|source| Error::File { path: sql.clone(), source })?;
            files.put("user.sql", &text)?;
            run(
                sandbox,
                "the SQL of region.database.sql",
                &client(Some(&config.database), "user.sql"),
                SEED,
            )?;
        }
        let network = sandbox.netns()?;
        let proxies = match config.proxy.is_empty() {
            true => Vec::new(),
            false => proxies::start_all(config, &files, of_proxies, &network, recorder)?,
        };
        Ok(Database { proxies, words, _files: files })
    }

    /// Why the server has ended, though nobody ended it; none while it lives.
    pub fn death(&self) -> Option<Error> {
        let said = self.words.last_if_ended()?;
        Some(Error::Failed { what: "the server has ended", said })
    }

    /// Ends the proxies, at once.
    pub fn stop(self) {
        self.proxies.iter().for_each(Running::stop);
        self.proxies.into_iter().for_each(Running::join);
    }
}

fn process(argv: Vec<String>) -> ProcessPlan {
    let env =
        [("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), ("HOME", DATA), ("TZ", ":UTC"), ("LC_ALL", "C.UTF-8")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    ProcessPlan { argv, env, cwd: DATA.into() }
}

fn words_of<const N: usize>(argv: [&str; N]) -> Vec<String> {
    argv.map(str::to_owned).to_vec()
}

/// Root has no password, and can log in through the socket only.
fn install() -> ProcessPlan {
    process(words_of([
        INSTALL,
        "--no-defaults",
        "--datadir=/var/db/data",
        "--tmpdir=/tmp",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        // Without names to resolve, which there are none of.
        "--force",
        "--skip-name-resolve",
        "--innodb-log-file-size=32M",
    ]))
}

/// It keeps its promises to clients, not to disks: a run's database is thrown away.
fn server(config: &Config) -> ProcessPlan {
    let mut argv = words_of([
        SERVER,
        "--no-defaults",
        "--datadir=/var/db/data",
        "--tmpdir=/tmp",
        SOCKET,
        "--skip-name-resolve",
        "--ssl-cert=/etc/danki/server.crt",
        "--ssl-key=/etc/danki/server.key",
        "--innodb-log-file-size=32M",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-use-native-aio=OFF",
        "--performance-schema=OFF",
    ]);
    argv.push(format!("--bind-address={}", Config::address()));
    argv.push(format!("--port={}", crate::config::PORT));
    argv.push(format!("--max-connections={}", config.max_connections()));
    process(argv)
}

/// From its standard input, where the first mistake ends it: `source` goes on and says that all is well.
fn client(database: Option<&str>, file: &str) -> ProcessPlan {
    let database = database.unwrap_or_default();
    let command =
        format!("exec {CLIENT} --no-defaults {SOCKET} --user=root --batch {database} < {GIVEN}/{file}");
    process(vec!["/bin/sh".to_owned(), "-c".to_owned(), command])
}

/// Starts the server and waits until it says that it is ready.
fn serve(sandbox: &Sandbox, config: &Config) -> Result<Words, Error> {
    let Spawned { stdout, stderr, .. } = sandbox.spawn(&server(config))?;
    drop(stdout);
    let (words, ready) = Words::of(stderr);
    match ready.recv_timeout(START) {
        Ok(()) => Ok(words),
        Err(_) => Err(Error::Failed { what: "the server does not start", said: words.last() }),
    }
}

/// Runs a program to its end.
fn run(sandbox: &Sandbox, what: &'static str, plan: &ProcessPlan, patience: Duration) -> Result<(), Error> {
    let Spawned { inner_pid, stdout, stderr, .. } = sandbox.spawn(plan)?;
    let ((errors, _), (output, _)) = (Words::of(stderr), Words::of(stdout));
    match end_of(sandbox, inner_pid, patience)? {
        Some(ExitStatus::Code(0)) => Ok(()),
        Some(_) => {
            let said = [errors.at_the_end(), output.at_the_end()].join(" ").trim().to_owned();
            Err(Error::Failed { what, said })
        }
        None => Err(Error::Failed { what, said: format!("not done after {} s", patience.as_secs()) }),
    }
}

/// How the process ended; none if it has not in time. The end of another one is told by its silence.
fn end_of(sandbox: &Sandbox, inner_pid: i32, patience: Duration) -> Result<Option<ExitStatus>, Error> {
    let until_ns = danki_sys::clock::monotonic_ns() + patience.as_nanos() as u64;
    loop {
        match sandbox.try_event()? {
            Some(SandboxEvent::Exited { inner_pid: pid, status }) if pid == inner_pid => {
                return Ok(Some(status));
            }
            Some(SandboxEvent::PidOneGone) => {
                return Err(danki_sys::Error::Gone { who: "pid 1 of the region" }.into());
            }
            Some(SandboxEvent::Exited { .. }) => {}
            None => {
                let left = Duration::from_nanos(until_ns.saturating_sub(danki_sys::clock::monotonic_ns()));
                let timeout =
                    Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
                let readable =
                    poll(&mut [PollFd::from_borrowed_fd(sandbox.event_fd(), PollFlags::IN)], Some(&timeout));
                if matches!(readable, Ok(0)) {
                    return Ok(None);
                }
            }
        }
    }
}

/// What a process says, read by a thread that ends with it.
struct Words {
    last: Arc<Mutex<VecDeque<String>>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl Words {
    /// The channel tells when the server is ready, and closes when the process has ended.
    fn of(output: OwnedFd) -> (Words, Receiver<()>) {
        let (tell, ready) = channel();
        let last: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let kept = Arc::clone(&last);
        let reader = thread::spawn(move || {
            for line in BufReader::new(File::from(output)).lines().map_while(Result::ok) {
                if line.contains("ready for connections") {
                    // Nobody may listen any more.
                    tell.send(()).ok();
                }
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_back(line);
                if kept.len() > WORDS {
                    kept.pop_front();
                }
            }
        });
        (Words { last, reader: Some(reader) }, ready)
    }

    fn last(&self) -> String {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
    }

    fn last_if_ended(&self) -> Option<String> {
        self.reader.as_ref().is_some_and(thread::JoinHandle::is_finished).then(|| self.last())
    }

    /// All that was said, when the process has ended.
    fn at_the_end(mut self) -> String {
        self.reader.take().map(thread::JoinHandle::join);
        self.last()
    }
}
