//! AWS's SDKs and CLI, unmodified, against Secrets Manager and Parameter Store. `conformance/install` installs them.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests: clippy sees only the tests themselves"
)]

use crate::common::{Lab, ca_dir};
use danki_region::{Config, Distribution, Endpoint, SecretsManager, Ssm};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Where `conformance/install` puts a client; `None`, with words, if it is not there.
fn installed(client: &str) -> Option<PathBuf> {
    let folder = root().join("target/conformance/region").join(client);
    if !folder.join("installed").exists() {
        println!("skipped: {client}: not installed, see conformance/README.md");
        return None;
    }
    Some(folder)
}

/// A region on a loopback port, answering at once and without a quota.
async fn lab() -> (Lab, PathBuf) {
    let at_once = Some(Distribution::Constant { ms: 0.0 });
    let endpoint =
        Endpoint { service_time: at_once, kms_time: at_once, rate_per_s: Some(1e6), ..Endpoint::default() };
    let config = Config {
        secretsmanager: Some(SecretsManager { endpoint: endpoint.clone(), ..SecretsManager::default() }),
        ssm: Some(Ssm { endpoint, ..Ssm::default() }),
        ca_dir: Some(ca_dir()),
        ..Config::default()
    };
    let lab = Lab::start(config).await;
    let bundle = ca_dir().join(format!("root-{}.pem", lab.address.port()));
    std::fs::write(&bundle, lab.region.root_pem()).unwrap();
    (lab, bundle)
}

/// Runs a client to its end; its output is the test's if it fails.
async fn run(
    lab: &Lab,
    bundle: &Path,
    program: &str,
    arguments: &[&str],
    environment: &[(&str, String)],
) -> String {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .envs(environment.iter().cloned());
    for (name, value) in
        [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("AWS_REGION", "us-east-1")]
    {
        command.env(name, value);
    }
    command.env("AWS_DEFAULT_REGION", "us-east-1").env("REGION_ADDRESS", lab.address.to_string());
    for bundle_of in ["AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
        command.env(bundle_of, bundle);
    }
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?}: {text}");
    text
}

/// The client has asked for each operation that is offered.
async fn every_operation(lab: Lab) {
    let requests = lab.requests().await;
    for operation in
        danki_secretstore::SecretsManager::OPERATIONS.iter().chain(danki_secretstore::Ssm::OPERATIONS)
    {
        assert!(requests.iter().any(|r| r.operation == *operation), "{operation} was not asked for");
    }
}

fn python() -> String {
    root().join("target/conformance/venv/bin/python3").display().to_string()
}

fn sources(client: &str) -> String {
    root().join("conformance/region").join(client).display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn boto3() {
    let Some(packages) = installed("python") else { return };
    let (lab, bundle) = lab().await;
    let path = [("PYTHONPATH", format!("{}:{}", packages.display(), sources("python")))];
    let script = format!("{}/services.py", sources("python"));
    assert_eq!(run(&lab, &bundle, &python(), &[&script], &path).await, "all fine\n");
    every_operation(lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn aws_cli() {
    let Some(packages) = installed("python") else { return };
    let (lab, bundle) = lab().await;
    let path = [("PYTHONPATH", format!("{}:{}", packages.display(), sources("python")))];
    let script = format!("{}/cli.py", sources("python"));
    assert_eq!(run(&lab, &bundle, &python(), &[&script], &path).await, "all fine\n");
    every_operation(lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn javascript_v3() {
    let Some(packages) = installed("node") else { return };
    let (lab, bundle) = lab().await;
    let script = packages.join("services.mjs").display().to_string();
    // The SDK also warns of Node 20 on stderr.
    let said = run(&lab, &bundle, "node", &[&script], &[]).await;
    assert!(said.starts_with("all fine\n"), "{said}");
    every_operation(lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn go_v2() {
    let Some(folder) = installed("go") else { return };
    let (lab, bundle) = lab().await;
    let program = folder.join("services").display().to_string();
    assert_eq!(run(&lab, &bundle, &program, &[], &[]).await, "all fine\n");
    every_operation(lab).await;
}
