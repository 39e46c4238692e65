//! PostgreSQL's extended protocol, message by message: what a batch is answered through the proxy, it would be answered without.

use crate::support::{Database, Kind};
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// A client that says exactly what it is told to.
struct Wire(TcpStream);

impl Wire {
    fn connect(port: u16) -> Wire {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let mut wire = Wire(stream);
        let startup = b"\0\x03\0\0user\0app\0database\0shop\0\0";
        wire.send(&[&(startup.len() as u32 + 4).to_be_bytes()[..], startup].concat());
        let mut scram = ScramSha256::new(b"secret", ChannelBinding::unsupported());
        loop {
            let (kind, body) = wire.read();
            match (kind, body.get(3)) {
                (b'R', Some(10)) => {
                    let first = scram.message();
                    let length = (first.len() as u32).to_be_bytes();
                    wire.say(b'p', &[SCRAM_SHA_256.as_bytes(), b"\0", &length, first].concat());
                }
                (b'R', Some(11)) => {
                    scram.update(&body[4..]).expect("SCRAM goes on");
                    wire.say(b'p', scram.message());
                }
                (b'Z', _) => return wire,
                (b'E', _) => panic!("{}", String::from_utf8_lossy(&body)),
                _ => {}
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("sent");
    }

    fn say(&mut self, kind: u8, body: &[u8]) {
        self.send(&[&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat());
    }

    fn parse(&mut self, name: &str, sql: &str) {
        self.say(b'P', format!("{name}\0{sql}\0\0\0").as_bytes());
    }

    fn execute(&mut self, name: &str) {
        self.say(b'B', format!("\0{name}\0\0\0\0\0\0\0").as_bytes());
        self.say(b'E', b"\0\0\0\0\0");
    }

    fn read(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).expect("an answer");
        let length = u32::from_be_bytes(head[1..].try_into().expect("four bytes")) as usize;
        let mut body = vec![0; length - 4];
        self.0.read_exact(&mut body).expect("all of it");
        (head[0], body)
    }

    fn hears_nothing_for(&mut self, time: Duration) {
        self.0.set_read_timeout(Some(time)).expect("set");
        assert!(self.0.read(&mut [0]).is_err());
        self.0.set_read_timeout(Some(PATIENCE)).expect("set");
    }

    /// The kinds of the answers up to one of kind `last`, settings apart; an error with its code.
    fn answers(&mut self, last: u8) -> String {
        let mut kinds = String::new();
        loop {
            let (kind, body) = self.read();
            match kind {
                b'S' | b'N' => continue,
                b'E' => {
                    let fields = String::from_utf8_lossy(&body).into_owned();
                    let code = fields.split('\0').find_map(|field| field.strip_prefix('C'));
                    kinds += &format!("E({})", code.unwrap_or_default());
                }
                _ => kinds.push(char::from(kind)),
            }
            if kind == last {
                return kinds;
            }
        }
    }

    fn query(&mut self, sql: &str) -> String {
        self.say(b'Q', format!("{sql}\0").as_bytes());
        self.answers(b'Z')
    }

    fn sync(&mut self) -> String {
        self.say(b'S', b"");
        self.answers(b'Z')
    }

    /// What a query's only row says.
    fn one(&mut self, sql: &str) -> String {
        self.say(b'Q', format!("{sql}\0").as_bytes());
        let mut row = String::new();
        loop {
            match self.read() {
                (b'D', body) => row = String::from_utf8_lossy(&body[6..]).into_owned(),
                (b'Z', _) => return row,
                _ => {}
            }
        }
    }
}

/// Checks the same straight and through a proxy with few connections.
fn check(of: impl Fn(u16)) {
    let Some(database) = Database::start(Kind::Postgres) else { return };
    let (proxy, _events) = database.proxy("", "max_connections = 2", "");
    of(database.port);
    assert!(!database.session(database.port, "DELETE FROM acks").1);
    of(proxy.address().port());
}

#[test]
fn what_was_flushed_is_committed_by_its_sync() {
    check(|port| {
        let (mut client, mut other) = (Wire::connect(port), Wire::connect(port));
        client.parse("", "INSERT INTO acks (v) VALUES (1)");
        client.execute("");
        client.say(b'H', b"");
        assert_eq!(client.answers(b'C'), "12C");
        assert_eq!(other.one("SELECT count(*) FROM acks"), "0", "nothing is committed yet");
        assert_eq!(client.sync(), "Z");
        assert_eq!(other.one("SELECT count(*) FROM acks"), "1");
    });
}

#[test]
fn a_batch_that_failed_early_is_passed_over_to_its_end() {
    check(|port| {
        let mut client = Wire::connect(port);
        client.query("SET statement_timeout = '500ms'");
        client.parse("kept", "SELECT 1");
        client.say(b'H', b"");
        assert_eq!(client.answers(b'1'), "1");
        // The time is up while the database waits for the rest.
        client.hears_nothing_for(Duration::from_millis(700));
        client.say(b'D', b"Skept\0");
        client.say(b'H', b"");
        assert_eq!(client.answers(b'E'), "E(57014)");
        client.parse("lost", "SELECT 2");
        client.execute("lost");
        client.say(b'C', b"Skept\0");
        assert_eq!(client.sync(), "Z");
        client.query("RESET statement_timeout");
        client.execute("kept");
        assert_eq!(client.sync(), "2DCZ");
        client.execute("lost");
        assert_eq!(client.sync(), "E(26000)Z");
        client.say(b'C', b"Skept\0");
        client.say(b'C', b"Slost\0");
        assert_eq!(client.sync(), "33Z");
    });
}

#[test]
fn a_name_in_use_is_refused_and_takes_its_batch_with_it() {
    check(|port| {
        let mut client = Wire::connect(port);
        client.parse("a", "INSERT INTO acks (v) VALUES (1)");
        assert_eq!(client.sync(), "1Z");
        client.execute("a");
        client.parse("a", "SELECT 2");
        client.parse("b", "SELECT 3");
        assert_eq!(client.sync(), "2CE(42P05)Z");
        assert_eq!(client.one("SELECT count(*) FROM acks"), "0");
        client.query("BEGIN");
        client.query("SELECT 1/0");
        client.parse("a", "SELECT 2");
        assert_eq!(client.sync(), "E(25P02)Z");
        client.query("ROLLBACK");
        client.parse("b", "SELECT 3");
        assert_eq!(client.sync(), "1Z");
    });
}

#[test]
fn statements_are_prepared_anew_after_what_they_mean_has_changed() {
    check(|port| {
        let mut all = [Wire::connect(port), Wire::connect(port), Wire::connect(port)];
        let [early, changes, late] = &mut all;
        changes.query("DROP TABLE IF EXISTS d; CREATE TABLE d (a int)");
        early.parse("s", "SELECT * FROM d");
        assert_eq!(early.sync(), "1Z");
        changes.query("ALTER TABLE d ADD b text");
        late.parse("s", "SELECT * FROM d");
        late.say(b'D', b"Ss\0");
        late.execute("s");
        late.say(b'H', b"");
        assert_eq!(late.answers(b't'), "1t");
        let (kind, columns) = late.read();
        assert_eq!((kind, columns[1]), (b'T', 2), "both columns are told");
        assert_eq!(late.sync(), "2CZ");
        // Who had it before is told, as it would be alone.
        early.execute("s");
        assert_eq!(early.sync(), "E(0A000)Z");
    });
}

#[test]
fn a_long_statement_is_prepared() {
    check(|port| {
        let mut client = Wire::connect(port);
        client.parse("long", &format!("SELECT length('{}')", "x".repeat(1_000_000)));
        client.execute("long");
        assert_eq!(client.sync(), "12DCZ");
    });
}
