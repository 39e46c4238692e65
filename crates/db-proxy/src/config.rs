//! What a proxy is told. Names and defaults of the pool's settings are RDS Proxy's.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The file: one or more proxies.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Each has its own listener, database and loop.
    pub proxy: Vec<Config>,
}

/// Whose protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineFamily {
    /// MySQL and MariaDB.
    #[default]
    Mysql,
    /// PostgreSQL.
    Postgresql,
}

/// How sessions share connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Pins and answers as RDS Proxy does.
    Rds,
    /// Shares what can be shared without a wrong answer.
    #[default]
    Smart,
}

/// Which of RDS Proxy's rules for pinning, in mode `rds`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rules {
    /// Any statement prepared over PostgreSQL's protocol pins.
    #[serde(rename = "2023")]
    Of2023,
    /// Those do not.
    #[default]
    #[serde(rename = "current")]
    Current,
}

/// Whether the way to the database is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetTls {
    /// As the client's way to the proxy is (RDS Proxy's rule).
    #[default]
    LikeClient,
    /// Never.
    Off,
    /// Always.
    On,
}

/// How clients prove their password (MySQL; PostgreSQL takes SCRAM unless `md5` is asked for).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PasswordType {
    /// `mysql_native_password`.
    MysqlNativePassword,
    /// `caching_sha2_password`.
    MysqlCachingSha2Password,
    /// SCRAM-SHA-256.
    PostgresScramSha256,
    /// MD5.
    PostgresMd5,
}

/// One proxy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// For logs and metrics.
    #[serde(default = "default_name")]
    pub name: String,
    /// Whose protocol.
    pub engine: EngineFamily,
    /// Where clients connect.
    pub listen: String,
    /// Where metrics are served over HTTP.
    pub metrics: Option<String>,
    /// How sessions share connections.
    #[serde(default)]
    pub mode: Mode,
    /// Which rules, in mode `rds`.
    #[serde(default)]
    pub rules: Rules,
    /// Whether clients must use TLS.
    #[serde(default)]
    pub require_tls: bool,
    /// The proxy's certificate chain, PEM.
    pub tls_certificate: Option<PathBuf>,
    /// Its key, PEM.
    pub tls_key: Option<PathBuf>,
    /// How clients prove their password.
    pub client_password_auth_type: Option<PasswordType>,
    /// Most clients at a time.
    #[serde(default = "default_max_clients")]
    pub max_clients: u32,
    /// How long a stop waits for transactions to end, in seconds.
    #[serde(default = "default_drain_s")]
    pub drain_timeout_s: u64,
    /// Where IAM tokens are made for; they name it.
    pub iam_host: Option<String>,
    /// The database.
    pub target: Target,
    /// RDS Proxy's pool settings.
    #[serde(default)]
    pub pool: PoolConfig,
    /// Accounts, with the same name and password on either side.
    pub user: Vec<User>,
}

/// The database.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// `host:port`.
    pub address: String,
    /// Encryption.
    #[serde(default)]
    pub tls: TargetTls,
    /// Whom to trust, PEM. Without it the certificate is not checked.
    pub tls_ca: Option<PathBuf>,
    /// What the database allows. Without it, it is asked, and again every minute.
    pub max_connections: Option<u32>,
}

/// RDS Proxy's `ConnectionPoolConfig`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PoolConfig {
    /// Share of the database's `max_connections`; 1 to 100.
    pub max_connections_percent: u32,
    /// Share that may stay idle; half of the above unless given.
    pub max_idle_connections_percent: Option<u32>,
    /// Longest wait for a connection, in seconds; 0 to 300.
    pub connection_borrow_timeout: f64,
    /// A client that asks nothing for so long is disconnected, in seconds.
    pub idle_client_timeout: u64,
    /// SQL that each new database connection runs.
    pub init_query: Option<String>,
    /// `EXCLUDE_VARIABLE_SETS` or nothing.
    pub session_pinning_filters: Vec<PinningFilter>,
    /// Most clients that wait.
    pub max_waiters: u32,
}

/// RDS Proxy knows one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PinningFilter {
    /// Setting a variable does not pin.
    ExcludeVariableSets,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            max_connections_percent: 100,
            max_idle_connections_percent: None,
            connection_borrow_timeout: 120.0,
            idle_client_timeout: 1800,
            init_query: None,
            session_pinning_filters: Vec::new(),
            max_waiters: 100_000,
        }
    }
}

/// An account.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its password at the database, and for clients unless they use IAM.
    pub password: String,
    /// Clients use IAM tokens, signed with this key.
    pub iam: Option<IamKey>,
}

/// An AWS access key, to check the tokens that it signs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IamKey {
    /// The key's id.
    pub access_key_id: String,
    /// The key.
    pub secret_access_key: String,
    /// The region that tokens are signed for.
    pub region: String,
}

fn default_name() -> String {
    "proxy".to_owned()
}

const fn default_max_clients() -> u32 {
    20_000
}

const fn default_drain_s() -> u64 {
    30
}

impl File {
    /// Reads the file's text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let file: Self = toml::from_str(text).map_err(|error| Error::Config(error.to_string()))?;
        if file.proxy.is_empty() {
            return Err(Error::Config("there is no [[proxy]]".into()));
        }
        file.proxy.iter().try_for_each(Config::check)?;
        Ok(file)
    }
}

impl Config {
    fn check(&self) -> Result<(), Error> {
        let wrong = |what: &str, value: String, range: &str| {
            Err(Error::Config(format!("{} of proxy {:?} is {value}, allowed: {range}", what, self.name)))
        };
        if let Some((key, value, allowed)) = self.pool.problem() {
            return wrong(key, value, allowed);
        }
        if self.user.is_empty() {
            return wrong("user", "empty".into(), "at least one [[proxy.user]]");
        }
        if self.tls_certificate.is_some() != self.tls_key.is_some() {
            return wrong("tls_certificate", "given alone".into(), "together with tls_key, or neither");
        }
        if self.require_tls && self.tls_certificate.is_none() {
            return wrong("require_tls", "true".into(), "only with tls_certificate and tls_key");
        }
        Ok(())
    }
}

impl PoolConfig {
    /// A setting that is out of range: its name, its value and what is allowed.
    pub fn problem(&self) -> Option<(&'static str, String, &'static str)> {
        let (percent, idle) = (self.max_connections_percent, self.max_idle_percent());
        let (borrow, client) = (self.connection_borrow_timeout, self.idle_client_timeout);
        if !(1..=100).contains(&percent) {
            return Some(("max_connections_percent", percent.to_string(), "1 to 100"));
        }
        if idle > percent {
            let range = "0 to max_connections_percent";
            return Some(("max_idle_connections_percent", idle.to_string(), range));
        }
        if !(0.0..=300.0).contains(&borrow) {
            return Some(("connection_borrow_timeout", borrow.to_string(), "0 to 300 s"));
        }
        (!(1..=28_800).contains(&client)).then(|| ("idle_client_timeout", client.to_string(), "1 to 28800 s"))
    }

    /// Share that may stay idle.
    pub fn max_idle_percent(&self) -> u32 {
        self.max_idle_connections_percent.unwrap_or(self.max_connections_percent / 2)
    }

    /// Whether setting a variable pins.
    pub fn excludes_sets(&self) -> bool {
        self.session_pinning_filters.contains(&PinningFilter::ExcludeVariableSets)
    }
}
