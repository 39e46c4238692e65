//! The chain that functions verify.

use danki_region::Ca;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use std::sync::Arc;

#[test]
fn a_leaf_verifies_for_its_name_only() {
    let ca = Ca::create(Some(&crate::common::ca_dir())).expect("a CA");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.root_pem().as_bytes()).expect("pem")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().expect("a verifier");
    let certificate = ca.certificate(crate::common::HOST).expect("a certificate");
    assert_eq!(certificate.cert.len(), 2, "leaf and intermediate");
    let verify = |name: &'static str| {
        let name = ServerName::try_from(name).expect("a name");
        let [leaf, intermediate] = &certificate.cert[..] else { panic!("two") };
        verifier.verify_server_cert(leaf, std::slice::from_ref(intermediate), &name, &[], UnixTime::now())
    };
    verify(crate::common::HOST).expect("its own name");
    verify("dynamodb.eu-west-1.amazonaws.com").expect_err("another name");
}

#[test]
fn certificates_are_kept_and_keys_survive() {
    let dir = crate::common::ca_dir();
    let ca = Ca::create(Some(&dir)).expect("a CA");
    let once = ca.certificate("a.example").expect("made");
    assert!(Arc::ptr_eq(&once, &ca.certificate("a.example").expect("kept")));
    for name in 0..300 {
        ca.certificate(&format!("n{name}.example")).expect("made beyond the bound, too");
    }
    let key = std::fs::read(dir.join("leaf-key.pem")).expect("kept");
    Ca::create(Some(&dir)).expect("a CA");
    assert_eq!(key, std::fs::read(dir.join("leaf-key.pem")).expect("kept"));
}
