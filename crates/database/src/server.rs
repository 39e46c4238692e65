//! The server: its files, its processes, and its end.

use crate::engine::{DATA, Engine, GIVEN};
use crate::{Config, Error, proxies};
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
pub fn root(config: &Config, files: &Files, uid: u32) -> Result<RootPlan, Error> {
    let engine = Engine::of(config);
    if let Some((program, _)) = engine.programs.iter().find(|(_, path)| !path.exists()) {
        return Err(Error::Missing { program, package: engine.package });
    }
    // PostgreSQL's programs ask what the name of their user is.
    let passwd = files.put("passwd", &format!("database:x:{uid}:{uid}::{DATA}:/bin/sh\n"))?;
    let bind = |source: &Path, target: &str| MountPlan::Bind {
        source: source.to_path_buf(),
        target: target.into(),
        read_only: true,
    };
    let mut mounts = vec![bind(Path::new("/usr"), "/usr")];
    mounts.extend(system_dirs());
    let etc = ["/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"];
    mounts.extend(etc.iter().filter(|path| Path::new(path).exists()).map(|path| bind(Path::new(path), path)));
    mounts.push(bind(&passwd, "/etc/passwd"));
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
        let engine = Engine::of(config);
        run(sandbox, "the server cannot be installed", engine.install, START)?;
        let words = serve(sandbox, engine.server, engine.ready)?;
        files.put("seed.sql", &engine.seed)?;
        run(sandbox, "the account and the generated rows", engine.as_admin, SEED)?;
        if let Some(sql) = &config.sql {
            let text = fs::read_to_string(sql).map_err(|source| Error::File { path: sql.clone(), source })?;
            files.put("user.sql", &text)?;
            run(sandbox, "the SQL of region.database.sql", engine.as_user, SEED)?;
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
        [("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), ("HOME", DATA), ("TZ", "UTC"), ("LC_ALL", "C.UTF-8")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    ProcessPlan { argv, env, cwd: DATA.into() }
}

/// Starts the server and waits until it says that it is ready.
fn serve(sandbox: &Sandbox, server: Vec<String>, says: &'static str) -> Result<Words, Error> {
    let Spawned { stdout, stderr, .. } = sandbox.spawn(&process(server))?;
    drop(stdout);
    let (words, ready) = Words::of(stderr, Some(says));
    match ready.recv_timeout(START) {
        Ok(()) => Ok(words),
        Err(_) => Err(Error::Failed { what: "the server does not start", said: words.last() }),
    }
}

/// Runs a program to its end.
fn run(sandbox: &Sandbox, what: &'static str, argv: Vec<String>, patience: Duration) -> Result<(), Error> {
    let Spawned { inner_pid, stdout, stderr, .. } = sandbox.spawn(&process(argv))?;
    let ((errors, _), (output, _)) = (Words::of(stderr, None), Words::of(stdout, None));
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
    /// The channel tells when it has said that it is `ready`, and closes when the process has ended.
    fn of(output: OwnedFd, ready: Option<&'static str>) -> (Words, Receiver<()>) {
        let (tell, told) = channel();
        let last: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let kept = Arc::clone(&last);
        let reader = thread::spawn(move || {
            for line in BufReader::new(File::from(output)).lines().map_while(Result::ok) {
                if ready.is_some_and(|ready| line.contains(ready)) {
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
        (Words { last, reader: Some(reader) }, told)
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
