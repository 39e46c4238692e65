//! `aws-parameters-and-secrets-lambda` 1.0 as its documentation uses it.

use aws_parameters_and_secrets_lambda::{Manager, QueryBuilder};
use serde::Deserialize;

#[derive(Deserialize)]
struct Database {
    user: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let manager = Manager::default();
    let secret = manager.get_secret("prod/db");
    for _ in 0..3 {
        assert_eq!(secret.get_single("user").await.expect("a secret"), "app");
    }
    assert_eq!(secret.get_typed::<Database>().await.expect("a secret").user, "app");
    let staged = manager.get_secret(QueryBuilder::new("prod/db").with_version_stage("AWSPREVIOUS"));
    assert_eq!(staged.get_single("user").await.expect("a secret"), "before");
    let parameter = manager.get_parameter("/app/url", true);
    assert_eq!(parameter.get_raw().await.expect("a parameter"), "https://app.example?a=1&b=<2>");
    assert!(manager.get_secret("missing").get_raw().await.is_err());
    println!("ok");
}
