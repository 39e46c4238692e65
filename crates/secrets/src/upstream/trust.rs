//! Whom we believe to be AWS: a bundle that was named (`AWS_CA_BUNDLE`, `SSL_CERT_FILE`), else Mozilla's roots, compiled in. Reading the
//! system's bundle costs a cold start about 3 ms of CPU, so it is read only after a certificate was not known to the compiled-in
//! roots: behind a company's proxy, or in a laboratory.

use super::failure::Failure;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Where distributions keep their roots: Amazon Linux and its kin, Debian and its kin, Alpine.
const BUNDLES: [&str; 3] =
    ["/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem"];

/// The configuration of all TLS connections; they share its session tickets.
pub struct Trust {
    named: Option<PathBuf>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    config: Option<Arc<ClientConfig>>,
    is_system: bool,
}

impl Trust {
    /// Nothing is read yet.
    pub fn new(named: Option<PathBuf>) -> Trust {
        Trust { named, held: Mutex::default() }
    }

    /// The configuration.
    pub fn config(&self) -> Result<Arc<ClientConfig>, Failure> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = &held.config {
            return Ok(Arc::clone(config));
        }
        let roots = match &self.named {
            Some(path) => read(path)?,
            None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
        };
        Ok(Arc::clone(held.config.insert(configure(roots))))
    }

    /// A certificate's issuer was not known. Says whether another try with more roots is worth it.
    pub fn widen(&self) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if self.named.is_some() || held.is_system {
            return false;
        }
        held.is_system = true;
        let Some(roots) = BUNDLES.iter().find_map(|path| read(Path::new(path)).ok()) else { return false };
        held.config = Some(configure(roots));
        true
    }
}

fn read(path: &Path) -> Result<RootCertStore, Failure> {
    let unreadable = |what: String| Failure::Tls(format!("{}: {what}", path.display()));
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))?;
    // As everywhere, a certificate that is none does not spoil the others.
    roots.add_parsable_certificates(certificates.filter_map(Result::ok));
    if roots.is_empty() { Err(unreadable("no certificates in it".to_owned())) } else { Ok(roots) }
}

fn configure(roots: RootCertStore) -> Arc<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has cipher suites for TLS 1.2 and 1.3");
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}
