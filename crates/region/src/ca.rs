//! A CA whose certificates look and cost like AWS's: root, intermediate, leaf, all RSA-2048 with SHA-256.
//!
//! Functions trust the root because the env's CA bundle contains it. Leafs are made when a name is asked for, and all
//! share one key; an endpoint sends leaf and intermediate. Nothing outside of the envs ever trusts this root.

use crate::{Error, keys};
use danki_sys::clock::epoch_ns;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SerialNumber,
};
use rsa::rand_core::{OsRng, RngCore};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SigningKey};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use time::{Duration, OffsetDateTime};

/// Names whose certificate is kept. Beyond it a certificate is made for each handshake (about 1 ms of CPU).
const MAX_NAMES: usize = 256;

/// Name in the certificate for clients that ask for none.
const DEFAULT_NAME: &str = "dynamodb.us-east-1.amazonaws.com";

/// The local CA.
pub struct Ca {
    root_pem: String,
    intermediate: Issuer<'static, KeyPair>,
    intermediate_der: CertificateDer<'static>,
    intermediate_pem: String,
    leaf_key: KeyPair,
    signer: Arc<dyn SigningKey>,
    now: OffsetDateTime,
    leafs: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl fmt::Debug for Ca {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ca")
    }
}

impl Ca {
    /// A CA with the keys of `dir`, or new ones. Blocks while keys are made: a second or so, only the first time if
    /// there is a directory.
    pub fn create(dir: Option<&Path>) -> Result<Ca, Error> {
        let keys = keys::load_or_make(dir)?;
        let now = OffsetDateTime::UNIX_EPOCH + Duration::seconds((epoch_ns() / 1_000_000_000).cast_signed());
        let root_key = KeyPair::from_pem(&keys.root)?;
        let root_params = authority("danki local root CA", now, IsCa::Ca(BasicConstraints::Unconstrained));
        let root_pem = root_params.self_signed(&root_key)?.pem();
        let root = Issuer::new(root_params, root_key);

        let intermediate_key = KeyPair::from_pem(&keys.intermediate)?;
        let mut params =
            authority("danki local RSA 2048 CA", now, IsCa::Ca(BasicConstraints::Constrained(0)));
        params.use_authority_key_identifier_extension = true;
        let intermediate = params.signed_by(&intermediate_key, &root)?;
        let (intermediate_der, intermediate_pem) = (intermediate.der().clone(), intermediate.pem());

        let leaf_private = PrivateKeyDer::from_pem_slice(keys.leaf.as_bytes())
            .map_err(|e| Error::Key(format!("the leaf key does not parse: {e}")))?;
        let signer = rustls::crypto::ring::sign::any_supported_type(&leaf_private)
            .map_err(|e| Error::Key(format!("the leaf key does not sign: {e}")))?;
        Ok(Ca {
            root_pem,
            intermediate: Issuer::new(params, intermediate_key),
            intermediate_der,
            intermediate_pem,
            leaf_key: KeyPair::from_pem(&keys.leaf)?,
            signer,
            now,
            leafs: Mutex::default(),
        })
    }

    /// The root certificate, to be appended to CA bundles.
    pub fn root_pem(&self) -> &str {
        &self.root_pem
    }

    /// The certificate for a host name, from the cache or new.
    pub fn certificate(&self, name: &str) -> Result<Arc<CertifiedKey>, Error> {
        let lock = || self.leafs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(name) {
            return Ok(Arc::clone(known));
        }
        let leaf = self.leaf_params(name)?.signed_by(&self.leaf_key, &self.intermediate)?;
        let chain = vec![leaf.der().clone(), self.intermediate_der.clone()];
        let made = Arc::new(CertifiedKey::new(chain, Arc::clone(&self.signer)));
        let mut leafs = lock();
        if leafs.len() < MAX_NAMES {
            leafs.insert(name.to_owned(), Arc::clone(&made));
        }
        Ok(made)
    }

    /// A certificate for a host name with its chain, and its key, as PEM: for servers that read files.
    pub fn pem(&self, name: &str) -> Result<(String, String), Error> {
        let leaf = self.leaf_params(name)?.signed_by(&self.leaf_key, &self.intermediate)?;
        Ok((leaf.pem() + &self.intermediate_pem, self.leaf_key.serialize_pem()))
    }

    fn leaf_params(&self, name: &str) -> Result<CertificateParams, Error> {
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(serial());
        params.not_before = self.now - Duration::days(1);
        params.not_after = self.now + Duration::days(365);
        Ok(params)
    }
}

fn authority(name: &str, now: OffsetDateTime, is_ca: IsCa) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "danki, trusted by its own envs only");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = is_ca;
    params.key_usages =
        vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.serial_number = Some(serial());
    params.not_before = now - Duration::days(2);
    params.not_after = now + Duration::days(3650);
    params
}

/// rcgen derives the serial number from the key, which all leafs share; verifiers may refuse equal serial numbers.
fn serial() -> SerialNumber {
    let mut bytes = [0; 16];
    OsRng.fill_bytes(&mut bytes);
    bytes[0] = bytes[0] & 0x7f | 0x40;
    SerialNumber::from_slice(&bytes)
}

impl ResolvesServerCert for Ca {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.certificate(hello.server_name().unwrap_or(DEFAULT_NAME)).ok()
    }
}
