//! TLS settings that an endpoint may differ in.

use crate::Error;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use std::sync::Arc;

/// A TLS version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2: two round trips.
    V12,
    /// TLS 1.3: one round trip.
    V13,
}

/// What an endpoint offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// Lowest version.
    pub min: TlsVersion,
    /// Highest version.
    pub max: TlsVersion,
    /// Sends session tickets (and keeps TLS 1.2 session ids), so that clients may resume.
    pub resumption: bool,
}

impl Default for TlsOptions {
    fn default() -> Self {
        TlsOptions { min: TlsVersion::V12, max: TlsVersion::V13, resumption: true }
    }
}

impl TlsVersion {
    /// As OpenSSL names it.
    pub fn as_str(self) -> &'static str {
        match self {
            TlsVersion::V12 => "TLSv1.2",
            TlsVersion::V13 => "TLSv1.3",
        }
    }
}

/// A rustls configuration without client certificates and without ALPN (AWS's JSON endpoints speak HTTP/1.1 only),
/// on `ring`: aws-lc gathers entropy for about 50 ms of CPU at first use (`observe.md` §3.3).
pub fn server_config(
    certificates: Arc<dyn ResolvesServerCert>,
    options: TlsOptions,
) -> Result<Arc<ServerConfig>, Error> {
    let both = [(TlsVersion::V13, &rustls::version::TLS13), (TlsVersion::V12, &rustls::version::TLS12)];
    let versions: Vec<_> =
        both.into_iter().filter(|(v, _)| (options.min..=options.max).contains(v)).map(|(_, p)| p).collect();
    if versions.is_empty() {
        return Err(Error::NoTlsVersion { min: options.min.as_str(), max: options.max.as_str() });
    }
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&versions)?
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    if options.resumption {
        config.ticketer = ring::Ticketer::new()?;
        config.send_tls13_tickets = 1; // as s2n, AWS's TLS, does by default; rustls would send 2
    } else {
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
    }
    Ok(Arc::new(config))
}
