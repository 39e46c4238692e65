use std::path::PathBuf;

/// Why a region cannot start, or has died.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is outside of what is allowed.
    #[error("region: {key} = {value} is not allowed: {allowed}")]
    Setting {
        /// The setting, as a path.
        key: String,
        /// The value given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A table or an item of the configuration was refused by the engine.
    #[error("region: table {table:?}: {reason}")]
    Seed {
        /// The table.
        table: String,
        /// What the engine says.
        reason: String,
    },
    /// A secret or a parameter of the configuration was refused by the store.
    #[error("region: secret or parameter {name:?}: {reason}")]
    SecretSeed {
        /// Its name.
        name: String,
        /// What the store says.
        reason: String,
    },
    /// The DynamoDB engine does not start.
    #[error("region: the DynamoDB engine does not start: {0}")]
    Engine(String),
    /// A key cannot be read or kept.
    #[error("region: cannot keep the CA's keys in {}: {source}", path.display())]
    KeyFile {
        /// The directory or file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A key cannot be made.
    #[error("region: cannot make an RSA key: {0}")]
    Key(String),
    /// A certificate cannot be made.
    #[error("region: cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The HTTPS server cannot start, or has ended.
    #[error("region: {0}")]
    Serve(#[from] danki_serve::Error),
    /// The sockets of an env's X-Ray daemon cannot be served.
    #[error("region: no X-Ray daemon: {0}")]
    Daemon(std::io::Error),
    /// TLS towards the upstream cannot be set up.
    #[error("region: no tls towards the upstream: {0}")]
    Upstream(std::io::Error),
    /// A thread of the start-up is gone.
    #[error("region: start-up broke off: {0}")]
    Broken(String),
}
