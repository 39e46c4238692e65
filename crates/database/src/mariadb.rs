//! MariaDB, as Debian has it.

use crate::Config;
use crate::engine::{Engine, words_of};

const SERVER: &str = "/usr/sbin/mariadbd";
const INSTALL: &str = "/usr/bin/mariadb-install-db";
const CLIENT: &str = "/usr/bin/mariadb";
const SOCKET: &str = "--socket=/var/db/sock";

pub(crate) fn engine(config: &Config) -> Engine {
    Engine {
        package: "mariadb-server",
        programs: vec![
            ("mariadbd", SERVER.into()),
            ("mariadb-install-db", INSTALL.into()),
            ("mariadb", CLIENT.into()),
        ],
        install: install(),
        server: server(config),
        ready: "ready for connections",
        seed: seed(config),
        as_admin: client("", "seed.sql"),
        as_user: client(&config.database, "user.sql"),
    }
}

/// Root has no password, and can log in through the socket only.
fn install() -> Vec<String> {
    words_of([
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
    ])
}

/// It keeps its promises to clients, not to disks: a run's database is thrown away.
fn server(config: &Config) -> Vec<String> {
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
    argv.push(format!("--port={}", config.port()));
    argv.push(format!("--max-connections={}", config.max_connections()));
    argv
}

/// From its standard input, where the first mistake ends it: `source` goes on and says that all is well.
fn client(database: &str, file: &str) -> Vec<String> {
    let command =
        format!("exec {CLIENT} --no-defaults {SOCKET} --user=root --batch {database} < /etc/danki/{file}");
    words_of(["/bin/sh", "-c", &command])
}

/// An account, a database, and the generated rows.
fn seed(config: &Config) -> String {
    let Config { database, user, password, users, .. } = config;
    let mut sql = format!(
        "CREATE DATABASE `{database}` CHARACTER SET utf8mb4;\n\
         CREATE USER `{user}`@`%` IDENTIFIED BY '{password}';\n\
         GRANT ALL ON `{database}`.* TO `{user}`@`%`;\n\
         USE `{database}`;\n"
    );
    if *users > 0 {
        sql += USERS;
        // The pseudo table seq_1_to_N is MariaDB's own.
        sql += &format!(
            "INSERT INTO users (name, email, email_verified_at, password, remember_token, created_at, updated_at) \
             SELECT CONCAT('User ', seq), CONCAT('user', seq, '@example.com'), '2019-12-04', \
             CONCAT('$2y$10$', LEFT(SHA2(seq, 256), 53)), LEFT(MD5(seq), 10), '2019-12-04', '2019-12-04' \
             FROM seq_1_to_{users};\n"
        );
    }
    sql
}

/// The table of Laravel's first migration.
const USERS: &str = "CREATE TABLE users (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, \
     name VARCHAR(255) NOT NULL, email VARCHAR(255) NOT NULL UNIQUE, email_verified_at TIMESTAMP NULL, \
     password VARCHAR(255) NOT NULL, remember_token VARCHAR(100) NULL, created_at TIMESTAMP NULL, \
     updated_at TIMESTAMP NULL) ENGINE=InnoDB;\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_made_only_where_asked_for() {
        let none = seed(&Config::default());
        assert!(none.contains("CREATE USER `app`@`%`") && !none.contains("users"), "{none}");
        let some = seed(&Config { users: 10_000, ..Config::default() });
        assert!(some.contains("FROM seq_1_to_10000;"), "{some}");
    }
}
