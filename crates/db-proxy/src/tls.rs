//! TLS on either side: rustls with ring.

use crate::Error;
use crate::config::Config;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use std::path::Path;
use std::sync::Arc;

/// What both sides need, made once.
#[derive(Clone)]
pub(crate) struct Tls {
    server: Option<Arc<ServerConfig>>,
    client: Arc<ClientConfig>,
}

impl Tls {
    pub fn new(config: &Config) -> Result<Self, Error> {
        let server = match (&config.tls_certificate, &config.tls_key) {
            (Some(certificate), Some(key)) => Some(Arc::new(server_config(certificate, key)?)),
            _ => None,
        };
        let client = Arc::new(client_config(config.target.tls_ca.as_deref())?);
        Ok(Self { server, client })
    }

    /// For a client that has asked for TLS. None without a certificate.
    pub fn server(&self) -> Option<rustls::Connection> {
        ServerConnection::new(Arc::clone(self.server.as_ref()?)).ok().map(Into::into)
    }

    /// Towards the database. None if its host cannot be a name.
    pub fn client(&self, host: &str) -> Option<rustls::Connection> {
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).ok()?;
        ClientConnection::new(Arc::clone(&self.client), name).ok().map(Into::into)
    }
}

fn unusable(path: &Path, why: impl ToString) -> Error {
    Error::Tls { path: path.display().to_string(), why: why.to_string() }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn server_config(certificate: &Path, key: &Path) -> Result<ServerConfig, Error> {
    let chain = certificates(certificate)?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, error))?;
    ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(certificate, error))?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| unusable(certificate, error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| unusable(path, error))?;
    let found: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| unusable(path, error))?;
    if found.is_empty() { Err(unusable(path, "there is no certificate in it")) } else { Ok(found) }
}

fn client_config(ca: Option<&Path>) -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("ring has all of rustls' default versions");
    let Some(path) = ca else {
        let any = Arc::new(AnyCertificate(provider()));
        return Ok(builder.dangerous().with_custom_certificate_verifier(any).with_no_client_auth());
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| unusable(path, error))?;
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Without a CA there is nothing to check a certificate with, as with `sslmode=require`.
#[derive(Debug)]
struct AnyCertificate(Arc<rustls::crypto::CryptoProvider>);

impl rustls::client::danger::ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
