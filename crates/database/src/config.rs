//! `[region.database]`: what a user may say, and the names and addresses that follow from it.

use crate::Error;
use danki_db_proxy::config::{EngineFamily, Mode, PoolConfig, Rules};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::str::FromStr;

/// Most proxies: each has an address of 198.18.5.0/24.
const PROXIES_MAX: usize = 20;
/// Rows that a generator makes at most: some 200 bytes each.
const USERS_MAX: u32 = 10_000_000;
/// Databases and accounts that the servers have themselves.
const RESERVED: [&str; 6] = ["root", "mysql", "sys", "postgres", "template0", "template1"];

/// A database of the region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Its identifier, the first label of its host name.
    pub name: String,
    /// Whose protocol it speaks.
    pub engine: EngineFamily,
    /// The RDS instance class that it stands for: decides how many connections there may be.
    pub class: Class,
    /// Connections that there may be, if not the class's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u32>,
    /// The database that functions use.
    pub database: String,
    /// The account that functions use.
    pub user: String,
    /// Its password.
    pub password: String,
    /// Rows of a generated table `users` (that of Laravel's first migration).
    pub users: u32,
    /// SQL that is run once before the first invocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<PathBuf>,
    /// Proxies before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proxy: Vec<Proxy>,
}

/// A proxy before the database, with the settings of `danki db-proxy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// The first label of its host name; a variant names it.
    pub name: String,
    /// How sessions share connections.
    #[serde(default)]
    pub mode: Mode,
    /// Which rules, in mode `rds`.
    #[serde(default)]
    pub rules: Rules,
    /// Whether clients must use TLS.
    #[serde(default)]
    pub require_tls: bool,
    /// RDS Proxy's pool settings.
    #[serde(default)]
    pub pool: PoolConfig,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            name: "mydb".to_owned(),
            engine: EngineFamily::default(),
            class: Class::default(),
            max_connections: None,
            database: "app".to_owned(),
            user: "app".to_owned(),
            password: "secret".to_owned(),
            users: 0,
            sql: None,
            proxy: Vec::new(),
        }
    }
}

/// An RDS instance class, `db.m5.large`, as far as it decides on connections: its memory in GiB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Class {
    name: String,
    memory_gib: u32,
}

/// RDS for MySQL allows memory / 12,582,880 B connections, after what it keeps of the memory for itself: 624 on the 8 GiB of
/// db.m5.large, says field report S2, where 682 would be all of it. Taken as 78 per GiB for all classes.
const MYSQL_PER_GIB: u32 = 78;
/// RDS for PostgreSQL allows memory / 9,531,392 B, of the same memory: 78 x 12,582,880 / 9,531,392.
const POSTGRESQL_PER_GIB: u32 = 102;
/// And never more than this.
const POSTGRESQL_MAX: u32 = 5_000;

impl Class {
    /// Connections that such a server allows.
    pub fn max_connections(&self, engine: EngineFamily) -> u32 {
        match engine {
            EngineFamily::Mysql => self.memory_gib * MYSQL_PER_GIB,
            EngineFamily::Postgresql => (self.memory_gib * POSTGRESQL_PER_GIB).min(POSTGRESQL_MAX),
        }
    }
}

impl Default for Class {
    /// That of field report S2.
    fn default() -> Class {
        "db.m5.large".parse().expect("a class")
    }
}

impl FromStr for Class {
    type Err = String;

    /// Sizes double from one to the next; a family with `r` has twice the memory of one with `m`.
    fn from_str(text: &str) -> Result<Class, String> {
        let unknown = || format!("class {text:?} is not one of db.t3.micro to db.r7g.16xlarge");
        let (family, size) =
            text.strip_prefix("db.").and_then(|rest| rest.split_once('.')).ok_or_else(unknown)?;
        let large = match family.as_bytes() {
            [b't', generation, ..] | [b'm', generation, ..] if generation.is_ascii_digit() => 8,
            [b'r', generation, ..] if generation.is_ascii_digit() => 16,
            _ => return Err(unknown()),
        };
        let memory_gib = match size {
            "micro" => large / 8,
            "small" => large / 4,
            "medium" => large / 2,
            "large" => large,
            "xlarge" => large * 2,
            _ => {
                let times: u32 =
                    size.strip_suffix("xlarge").and_then(|n| n.parse().ok()).ok_or_else(unknown)?;
                if !(2..=32).contains(&times) {
                    return Err(unknown());
                }
                large * 2 * times
            }
        };
        Ok(Class { name: text.to_owned(), memory_gib })
    }
}

impl TryFrom<String> for Class {
    type Error = String;
    fn try_from(text: String) -> Result<Class, String> {
        text.parse()
    }
}

impl From<Class> for String {
    fn from(class: Class) -> String {
        class.name
    }
}

impl Config {
    /// Connections that the server allows.
    pub fn max_connections(&self) -> u32 {
        self.max_connections.unwrap_or_else(|| self.class.max_connections(self.engine))
    }

    /// Its host name. The middle is an account's own in AWS.
    pub fn host(&self, region: &str) -> String {
        format!("{}.cluster-c9akciq32rwa.{region}.rds.amazonaws.com", self.name)
    }

    /// A proxy's host name.
    pub fn proxy_host(&self, name: &str, region: &str) -> Option<String> {
        let proxy = self.proxy.iter().find(|proxy| proxy.name == name)?;
        Some(format!("{}.proxy-c9akciq32rwa.{region}.rds.amazonaws.com", proxy.name))
    }

    /// The engine's own port, which RDS Proxy does not let anybody change.
    pub const fn port(&self) -> u16 {
        match self.engine {
            EngineFamily::Mysql => 3306,
            EngineFamily::Postgresql => 5432,
        }
    }

    /// Where the server listens.
    pub const fn address() -> Ipv4Addr {
        Ipv4Addr::new(198, 18, 4, 1)
    }

    /// Where the proxies listen, with their names.
    pub fn proxy_addresses(&self) -> impl Iterator<Item = (&Proxy, Ipv4Addr)> {
        self.proxy.iter().zip(1..=254).map(|(proxy, n)| (proxy, Ipv4Addr::new(198, 18, 5, n)))
    }

    /// All host names with their addresses.
    pub fn hosts(&self, region: &str) -> Vec<(String, Ipv4Addr)> {
        let proxies = self
            .proxy_addresses()
            .filter_map(|(proxy, address)| Some((self.proxy_host(&proxy.name, region)?, address)));
        std::iter::once((self.host(region), Config::address())).chain(proxies).collect()
    }

    /// What a function's environment says of the database, under Laravel's names; `proxy` stands in its place.
    pub fn variables(&self, proxy: Option<&str>, region: &str) -> [(&'static str, String); 6] {
        let host = proxy.and_then(|name| self.proxy_host(name, region)).unwrap_or_else(|| self.host(region));
        let connection = match self.engine {
            EngineFamily::Mysql => "mysql",
            EngineFamily::Postgresql => "pgsql",
        };
        [
            ("DB_HOST", host),
            ("DB_CONNECTION", connection.to_owned()),
            ("DB_PORT", self.port().to_string()),
            ("DB_DATABASE", self.database.clone()),
            ("DB_USERNAME", self.user.clone()),
            ("DB_PASSWORD", self.password.clone()),
        ]
    }

    /// Checks what the types cannot.
    pub fn validate(&self) -> Result<(), Error> {
        let wrong = |key: &str, value: &str, allowed| {
            Err(Error::Setting { key: key.to_owned(), value: value.to_owned(), allowed })
        };
        let label = |text: &str| {
            (1..=60).contains(&text.len())
                && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        let word = |text: &str| {
            (1..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        if !label(&self.name) {
            return wrong("name", &self.name, "1 to 60 of a-z 0-9 -");
        }
        for (key, text) in [("database", &self.database), ("user", &self.user)] {
            if !word(text) || RESERVED.contains(&text.as_str()) {
                return wrong(key, text, "1 to 32 of A-Z a-z 0-9 _, and not the server's own");
            }
        }
        let plain = |b: u8| b.is_ascii_graphic() && !b"'\"\\`;".contains(&b);
        if self.password.is_empty() || !self.password.bytes().all(plain) {
            return wrong("password", &self.password, "letters, digits and signs but '\"\\`;");
        }
        if !(10..=100_000).contains(&self.max_connections()) {
            return wrong("max_connections", &self.max_connections().to_string(), "10 to 100,000");
        }
        if self.users > USERS_MAX {
            return wrong("users", &self.users.to_string(), "0 to 10,000,000");
        }
        if self.proxy.len() > PROXIES_MAX {
            return wrong("proxy", &self.proxy.len().to_string(), "at most 20, as in an AWS account");
        }
        for (n, proxy) in self.proxy.iter().enumerate() {
            if !label(&proxy.name) || self.proxy[..n].iter().any(|other| other.name == proxy.name) {
                return wrong("proxy.name", &proxy.name, "1 to 60 of a-z 0-9 -, each once");
            }
            if let Some((key, value, allowed)) = proxy.pool.problem() {
                return wrong(&format!("proxy.pool.{key}"), &value, allowed);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_allow_connections_by_their_memory() {
        let check = |class: &str, expect: Option<(u32, u32)>| {
            let both =
                |c: Class| [EngineFamily::Mysql, EngineFamily::Postgresql].map(|e| c.max_connections(e));
            assert_eq!(class.parse().ok().map(both), expect.map(|(my, pg)| [my, pg]), "{class}");
        };
        check("db.m5.large", Some((624, 816)));
        check("db.t3.micro", Some((78, 102)));
        check("db.r6g.large", Some((1_248, 1_632)));
        check("db.m5.4xlarge", Some((4_992, 5_000)));
        for wrong in ["m5.large", "db.m5", "db.x5.large", "db.m5.huge", "db.m5.99xlarge", "db.m.large", ""] {
            check(wrong, None);
        }
    }

    #[test]
    fn a_section_is_read_and_its_names_follow() {
        let text = "name = \"shop\"\nusers = 3\n[[proxy]]\nname = \"small\"\nmode = \"rds\"\n\
                    [proxy.pool]\nmax_connections_percent = 1\n";
        let config: Config = toml::from_str(text).expect("valid");
        config.validate().expect("valid");
        let small = "small.proxy-c9akciq32rwa.us-east-1.rds.amazonaws.com".to_owned();
        let hosts = config.hosts("us-east-1");
        assert_eq!(hosts[0].0, "shop.cluster-c9akciq32rwa.us-east-1.rds.amazonaws.com");
        assert_eq!(hosts[1], (small.clone(), Ipv4Addr::new(198, 18, 5, 1)));
        assert_eq!(config.variables(Some("small"), "us-east-1")[0], ("DB_HOST", small));
        assert_eq!(config.variables(None, "us-east-1")[0].1, hosts[0].0);
        assert_eq!(config.variables(None, "us-east-1")[2], ("DB_PORT", "3306".to_owned()));
        let written = toml::to_string(&config).expect("written");
        assert_eq!(toml::from_str::<Config>(&written).expect("read again"), config);
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let check = |text: &str, key: &str| {
            let config: Config = toml::from_str(text).expect("readable");
            let error = config.validate().expect_err(text).to_string();
            assert!(error.contains(&format!("region.database: {key} = ")), "{error}");
        };
        check("name = \"My DB\"", "name");
        check("user = \"root\"", "user");
        check("engine = \"postgresql\"\nuser = \"postgres\"", "user");
        check("database = \"a;b\"", "database");
        check("password = \"it's\"", "password");
        check("max_connections = 5", "max_connections");
        check("[[proxy]]\nname = \"a\"\n[[proxy]]\nname = \"a\"", "proxy.name");
        let pool = "[[proxy]]\nname = \"a\"\n[proxy.pool]\nmax_connections_percent = 0";
        check(pool, "proxy.pool.max_connections_percent");
    }
}
