//! The echo that every client here serves, on AWS's runtime client for Rust.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::{Value, json};

async fn handler(event: LambdaEvent<Value>) -> Result<Value, Error> {
    match event.payload["op"].as_str() {
        Some("fail") => Err("boom".into()),
        Some("context") => {
            Ok(json!({ "id": event.context.request_id, "arn": event.context.invoked_function_arn }))
        }
        Some("twice") => {
            let value = event.payload["value"].as_str().unwrap_or_default();
            Ok(json!(value.repeat(2) + &"x".repeat(100)))
        }
        _ => Ok(event.payload["value"].clone()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    run(service_fn(handler)).await
}
