//! PostgreSQL, as Debian has it: the newest that is installed.

use crate::Config;
use crate::engine::{Engine, words_of};
use std::fs;
use std::path::{Path, PathBuf};

/// Debian keeps each major version in a directory of its own.
const VERSIONS: &str = "/usr/lib/postgresql";

pub(crate) fn engine(config: &Config) -> Engine {
    let bin = newest(Path::new(VERSIONS));
    let program = |name: &str| bin.join(name).to_string_lossy().into_owned();
    Engine {
        package: "postgresql",
        programs: ["postgres", "initdb", "psql"].map(|name| (name, bin.join(name))).to_vec(),
        install: install(&program("initdb")),
        server: server(&program("postgres"), config),
        ready: "ready to accept connections",
        seed: seed(config),
        as_admin: client(&program("psql"), "postgres", "postgres", "seed.sql"),
        // What an application's own SQL makes belongs to its account.
        as_user: client(&program("psql"), &config.user, &config.database, "user.sql"),
    }
}

/// Where its programs are; a place where they are not if there is none.
fn newest(versions: &Path) -> PathBuf {
    let entries = fs::read_dir(versions).into_iter().flatten().filter_map(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    versions.join(numbers.max().unwrap_or_default().to_string()).join("bin")
}

/// The superuser can log in through the socket only, everybody else with a password. The server reads its key only if nobody else can.
fn install(initdb: &str) -> Vec<String> {
    let command = format!(
        "{initdb} --pgdata=/var/db/data --username=postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync && \
         printf 'local all all trust\\nhost all postgres all reject\\nhost all all all scram-sha-256\\n' \
           > /var/db/data/pg_hba.conf && \
         install -m 600 /etc/danki/server.key /var/db/server.key"
    );
    words_of(["/bin/sh", "-c", &command])
}

/// It keeps its promises to clients, not to disks: a run's database is thrown away.
fn server(postgres: &str, config: &Config) -> Vec<String> {
    let mut argv = words_of([postgres, "-D", "/var/db/data", "-k", "/var/db"]);
    let settings = [
        ("listen_addresses", Config::address().to_string()),
        ("port", config.port().to_string()),
        ("max_connections", config.max_connections().to_string()),
        ("ssl", "on".to_owned()),
        ("ssl_cert_file", "/etc/danki/server.crt".to_owned()),
        ("ssl_key_file", "/var/db/server.key".to_owned()),
        ("fsync", "off".to_owned()),
        ("synchronous_commit", "off".to_owned()),
        ("full_page_writes", "off".to_owned()),
        // The sandbox has no /dev/shm.
        ("dynamic_shared_memory_type", "mmap".to_owned()),
    ];
    argv.extend(settings.into_iter().flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]));
    argv
}

fn client(psql: &str, user: &str, database: &str, file: &str) -> Vec<String> {
    let file = format!("/etc/danki/{file}");
    words_of([
        psql,
        "--no-psqlrc",
        "--quiet",
        "--host=/var/db",
        "--port=5432",
        "--username",
        user,
        "--dbname",
        database,
        "--set=ON_ERROR_STOP=1",
        "--file",
        &file,
    ])
}

/// An account, a database, and the generated rows, all of which are the account's.
fn seed(config: &Config) -> String {
    let Config { database, user, password, users, .. } = config;
    let mut sql = format!(
        "CREATE ROLE \"{user}\" LOGIN PASSWORD '{password}';\n\
         CREATE DATABASE \"{database}\" OWNER \"{user}\";\n\
         \\connect \"{database}\"\n\
         SET ROLE \"{user}\";\n"
    );
    if *users > 0 {
        sql += USERS;
        sql += &format!(
            "INSERT INTO users (name, email, email_verified_at, password, remember_token, created_at, updated_at) \
             SELECT 'User ' || n, 'user' || n || '@example.com', '2019-12-04', \
             '$2y$10$' || left(encode(sha256(n::text::bytea), 'hex'), 53), left(md5(n::text), 10), '2019-12-04', '2019-12-04' \
             FROM generate_series(1, {users}) AS n;\n"
        );
    }
    sql
}

/// The table of Laravel's first migration.
const USERS: &str = "CREATE TABLE users (id BIGSERIAL PRIMARY KEY, name VARCHAR(255) NOT NULL, \
     email VARCHAR(255) NOT NULL UNIQUE, email_verified_at TIMESTAMP(0) NULL, password VARCHAR(255) NOT NULL, \
     remember_token VARCHAR(100) NULL, created_at TIMESTAMP(0) NULL, updated_at TIMESTAMP(0) NULL);\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_made_only_where_asked_for() {
        let none = seed(&Config::default());
        assert!(none.contains("CREATE ROLE \"app\" LOGIN") && !none.contains("users"), "{none}");
        let some = seed(&Config { users: 10_000, ..Config::default() });
        assert!(some.contains("generate_series(1, 10000)"), "{some}");
    }

    #[test]
    fn the_newest_version_is_taken() {
        let check = |installed: &[&str], expect: &str| {
            let dir = tempfile::tempdir().expect("a directory");
            for name in installed {
                fs::create_dir(dir.path().join(name)).expect("made");
            }
            assert_eq!(newest(dir.path()), dir.path().join(expect));
        };
        check(&["9", "15", "17", "common"], "17/bin");
        check(&[], "0/bin");
        assert_eq!(newest(Path::new("/nowhere")), Path::new("/nowhere/0/bin"));
    }
}
