//! Real servers in a temporary directory, which die with the test, and their own command-line clients.

use danki_db_proxy::config::{Config, File};
use danki_db_proxy::{Event, Running, Sink, start, start_with};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicU16;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// Starting takes seconds where disks are slow.
const START: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    MySql,
    Postgres,
}

/// A private server. Dropping it kills it.
pub struct Database {
    pub kind: Kind,
    pub port: u16,
    child: Child,
    dir: TempDir,
}

impl Drop for Database {
    fn drop(&mut self) {
        let _already_gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn found(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// PostgreSQL's programs are where Debian has them, or in the path.
fn postgres_program(name: &str) -> Option<String> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let debian = versions.map(|version| version.path().join("bin").join(name)).find(|path| path.exists());
    debian.map(|path| path.display().to_string()).or_else(|| found(name).then(|| name.to_owned()))
}

impl Database {
    /// None: the machine has no such server, or the test is not root; that is printed.
    pub fn start(kind: Kind) -> Option<Self> {
        let (user, missing) = match kind {
            Kind::MySql => ("mysql", !found("mariadbd") || !found("mariadb")),
            Kind::Postgres => ("postgres", postgres_program("postgres").is_none() || !found("psql")),
        };
        if missing || !rustix::process::geteuid().is_root() || !found("setpriv") {
            println!("skipped: {kind:?}: needs root, setpriv, mariadb-server and postgresql");
            return None;
        }
        let dir = tempfile::tempdir().expect("a temporary directory");
        let data = dir.path().join("data");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
        run(&["chmod", "755", &dir.path().display().to_string()]);
        run(&["install", "-d", "-m", "700", "-o", user, &data.display().to_string()]);
        match kind {
            Kind::MySql => install_mysql(&data),
            Kind::Postgres => install_postgres(&data),
        }
        let database = Self { kind, port, child: serve(kind, &data, port), dir };
        database.prepare();
        Some(database)
    }

    /// Kills the server, and starts it again where it was.
    pub fn restart(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is ours");
        let data = self.dir.path().join("data");
        // Left by the one that was killed; the number in it may be somebody else's by now.
        let _absent = std::fs::remove_file(data.join("postmaster.pid"));
        self.child = serve(self.kind, &data, self.port);
    }

    fn prepare(&self) {
        let (admin, sql): (&str, &[&str]) = match self.kind {
            Kind::MySql => (
                "root",
                &["CREATE USER app IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO app; CREATE DATABASE shop; \
                   CREATE TABLE shop.acks (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=InnoDB"],
            ),
            Kind::Postgres => (
                "postgres",
                &["CREATE ROLE app SUPERUSER LOGIN PASSWORD 'secret'", "CREATE DATABASE shop OWNER app"],
            ),
        };
        for statement in sql {
            let (said, failed) = self.client(self.port, admin, "", statement);
            assert!(!failed, "{said}");
        }
        if self.kind == Kind::Postgres {
            let (said, failed) = self.session(self.port, "CREATE TABLE acks (id serial PRIMARY KEY, v int)");
            assert!(!failed, "{said}");
        }
    }

    /// Runs a script as the account `app` in one session; what it prints, and whether the client failed.
    pub fn session(&self, port: u16, script: &str) -> (String, bool) {
        self.client(port, "app", "shop", script)
    }

    /// A session that is asked one statement after the other.
    pub fn open(&self, port: u16) -> Session {
        let port = port.to_string();
        let mut command = match self.kind {
            Kind::MySql => {
                let mut command = Command::new("mariadb");
                command.args(["--no-defaults", "-h127.0.0.1", "-P", &port, "-u", "app", "shop"]);
                command.args(["--force", "--batch", "--unbuffered", "-N", "--skip-ssl", "--skip-reconnect"]);
                command.env("MYSQL_PWD", "secret");
                command
            }
            Kind::Postgres => {
                let mut command = Command::new("psql");
                command.args(["-X", "-h", "127.0.0.1", "-p", &port, "-U", "app", "-d", "shop", "-Atq"]);
                command.env("PGPASSWORD", "secret");
                command
            }
        };
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = piped.spawn().expect("the client runs");
        let said = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            said.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)))
        });
        Session { child, lines }
    }

    fn client(&self, port: u16, user: &str, database: &str, script: &str) -> (String, bool) {
        let port = port.to_string();
        let mut command = match self.kind {
            Kind::MySql => {
                let mut command = Command::new("mariadb");
                command.args([
                    "--no-defaults",
                    "-h127.0.0.1",
                    "-P",
                    &port,
                    "-u",
                    user,
                    "--force",
                    "-N",
                    "--skip-ssl",
                ]);
                command.env("MYSQL_PWD", if user == "root" { "" } else { "secret" });
                command.args(Some(database).filter(|name| !name.is_empty()));
                command.args(["-e", script]);
                command
            }
            Kind::Postgres => {
                let mut command = Command::new("psql");
                let database = if database.is_empty() { "postgres" } else { database };
                command.args(["-X", "-h", "127.0.0.1", "-p", &port, "-U", user, "-d", database, "-At"]);
                command.env("PGPASSWORD", "secret").env("PGCONNECT_TIMEOUT", "20");
                // One at a time: psql sends the lines of a file as queries of their own.
                script.split(';').for_each(|sql| {
                    command.args(["-c", sql]);
                });
                command
            }
        };
        let output = command.output().expect("the client runs");
        let said = [output.stdout, output.stderr].concat();
        (String::from_utf8_lossy(&said).into_owned(), !output.status.success())
    }

    /// A proxy before this server: keys of `[[proxy]]`, `[proxy.target]` and `[proxy.pool]`.
    pub fn proxy(&self, keys: &str, target: &str, pool: &str) -> (Running, Receiver<String>) {
        let (sink, events) = sink();
        (start(self.config(keys, target, pool), sink).expect("the proxy starts"), events)
    }

    /// A proxy before whatever database is at this port when it asks.
    pub fn proxy_to(&self, port: Arc<AtomicU16>) -> (Running, Receiver<String>) {
        let (sink, events) = sink();
        let resolve = move |_: &str| Ok(vec![SocketAddr::from(([127, 0, 0, 1], port.load(Relaxed)))]);
        let config = self.config("", "max_connections = 4", "connection_borrow_timeout = 20");
        (start_with(config, sink, Arc::new(resolve)).expect("the proxy starts"), events)
    }

    /// Runs a script as the server's administrator.
    pub fn admin(&self, script: &str) {
        let user = if self.kind == Kind::MySql { "root" } else { "postgres" };
        let (said, failed) = self.client(self.port, user, "", script);
        assert!(!failed, "{said}");
    }

    /// Its configuration.
    pub fn config(&self, keys: &str, target: &str, pool: &str) -> Config {
        let engine = match self.kind {
            Kind::MySql => "mysql",
            Kind::Postgres => "postgresql",
        };
        let text = format!(
            "[[proxy]]\nengine = \"{engine}\"\nlisten = \"127.0.0.1:0\"\n{keys}\n[proxy.target]\naddress = \"127.0.0.1:{}\"\n{target}\n\
             [proxy.pool]\n{pool}\n[[proxy.user]]\nname = \"app\"\npassword = \"secret\"\n",
            self.port
        );
        File::parse(&text).expect("a configuration").proxy.remove(0)
    }
}

/// Sends what happens to a test, in words.
fn sink() -> (Sink, Receiver<String>) {
    let (sender, events) = channel();
    let sink = move |event: &Event<'_>| {
        // The test may have ended.
        let _unread = sender.send(event.to_string());
    };
    (Box::new(sink), events)
}

/// A client that stays. Dropping it ends it.
pub struct Session {
    child: Child,
    lines: Receiver<String>,
}

impl Session {
    /// Asks for one row of one column, and gives it; None: there was no answer for a while.
    pub fn ask(&mut self, sql: &str) -> Option<String> {
        self.tell(sql);
        self.lines.recv_timeout(Duration::from_secs(10)).ok()
    }

    /// Says what has no answer.
    pub fn tell(&mut self, sql: &str) {
        let input = self.child.stdin.as_mut().expect("it is piped");
        writeln!(input, "{sql};").expect("the client listens");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _already_gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn run(command: &[&str]) {
    let status = Command::new(command[0]).args(&command[1..]).status().expect("a basic program");
    assert!(status.success(), "{command:?}");
}

/// A command as another account, killed when this thread ends.
fn as_user(user: &str, program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--clear-groups", "--pdeathsig", "KILL", program]);
    command
}

fn serve(kind: Kind, data: &Path, port: u16) -> Child {
    let mut command = match kind {
        Kind::MySql => mysql(data, port),
        Kind::Postgres => postgres(data, port),
    };
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the server starts");
    wait_for(&mut child, kind);
    child
}

fn install_mysql(data: &Path) {
    let dir = format!("--datadir={}", data.display());
    // Two that are installed at the same time would share names in /tmp.
    let scratch = format!("--tmpdir={}", data.display());
    let install = Command::new("mariadb-install-db")
        .args([
            "--no-defaults",
            "--user=mysql",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            &dir,
            &scratch,
        ])
        .output()
        .expect("mariadb-install-db runs");
    assert!(install.status.success(), "{}", String::from_utf8_lossy(&install.stderr));
}

fn mysql(data: &Path, port: u16) -> Command {
    let (dir, scratch) = (format!("--datadir={}", data.display()), format!("--tmpdir={}", data.display()));
    let mut command = as_user("mysql", "mariadbd");
    command.args([
        "--no-defaults",
        &dir,
        &scratch,
        "--bind-address=127.0.0.1",
        "--innodb-flush-log-at-trx-commit=0",
    ]);
    command.arg(format!("--port={port}")).arg(format!("--socket={}", data.join("sock").display()));
    command.arg("--skip-name-resolve").env("HOME", data);
    // Root has no password here; the server listens on this machine only, and for as long as the test runs.
    command
}

fn install_postgres(data: &Path) {
    let initdb = postgres_program("initdb").expect("beside postgres");
    let made = as_user("postgres", &initdb)
        .args(["-D", &data.display().to_string(), "-A", "trust", "-U", "postgres", "--no-sync"])
        .output()
        .expect("initdb runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let scram = "local all all trust\nhost all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(data.join("pg_hba.conf"), scram).expect("the server's directory can be written");
}

fn postgres(data: &Path, port: u16) -> Command {
    let mut command = as_user("postgres", &postgres_program("postgres").expect("found before"));
    command.arg("-D").arg(data).args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]);
    command.args(["-p", &port.to_string(), "-k", &data.display().to_string()]);
    command
}

fn wait_for(child: &mut Child, kind: Kind) {
    let log = BufReader::new(child.stderr.take().expect("it is piped"));
    let (sender, lines) = channel();
    std::thread::spawn(move || log.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
    let ready = if kind == Kind::MySql { "ready for connections" } else { "ready to accept connections" };
    loop {
        let line = lines.recv_timeout(START).expect("the server says that it is ready");
        if line.contains(ready) {
            return;
        }
    }
}
