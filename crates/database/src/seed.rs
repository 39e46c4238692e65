//! SQL that makes the account and what is in the database.

use crate::Config;

/// An account, a database, and the generated rows.
pub(crate) fn sql(config: &Config) -> String {
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
        let none = sql(&Config::default());
        assert!(none.contains("CREATE USER `app`@`%`") && !none.contains("users"), "{none}");
        let some = sql(&Config { users: 10_000, ..Config::default() });
        assert!(some.contains("FROM seq_1_to_10000;"), "{some}");
    }
}
