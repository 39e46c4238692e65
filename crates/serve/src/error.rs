/// Why a server cannot start, or has ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The listener cannot be used.
    #[error("cannot serve on the listener: {0}")]
    Listener(#[source] std::io::Error),
    /// The TLS settings contradict each other.
    #[error("tls set-up: {0}")]
    Tls(#[from] rustls::Error),
    /// No TLS version lies between the two given.
    #[error("no tls version between {min} and {max}")]
    NoTlsVersion {
        /// Lowest version asked for.
        min: &'static str,
        /// Highest version asked for.
        max: &'static str,
    },
    /// The accept loop ended although nobody stopped it.
    #[error("the accept loop of {address} ended by itself: {reason}")]
    Ended {
        /// Where it listened.
        address: std::net::SocketAddr,
        /// What the runtime says about it.
        reason: String,
    },
}
