//! The SDK for Rust: one function's life against `danki up`, whose address and keys are in the environment.

use aws_sdk_lambda::client::Waiters;
use aws_sdk_lambda::config::retry::RetryConfig;
use aws_sdk_lambda::config::{Credentials, Region};
use aws_sdk_lambda::operation::RequestId;
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::{
    FunctionCode, InvocationType, InvokeWithResponseStreamResponseEvent as StreamEvent, LogType,
    ProvisionedConcurrencyStatusEnum as Status, Runtime, State, ThrottleReason,
};
use aws_sdk_lambda::{Client, Config};
use std::env::var;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const NAME: &str = "rust";

type Any = Box<dyn std::error::Error>;

/// Holds that a call fails with one class of error, and gives the error.
macro_rules! refused {
    ($call:expr, $is:ident) => {{
        let error = $call.await.expect_err(stringify!($is)).into_service_error();
        assert!(error.$is(), "{error:?}");
        error
    }};
}

fn client() -> Result<Client, Any> {
    let config = Config::builder()
        .endpoint_url(var("AWS_ENDPOINT_URL")?)
        .region(Region::new(var("AWS_DEFAULT_REGION")?))
        .credentials_provider(Credentials::new(var("AWS_ACCESS_KEY_ID")?, var("AWS_SECRET_ACCESS_KEY")?, None, None, "test"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .retry_config(RetryConfig::disabled());
    Ok(Client::from_conf(config.build()))
}

async fn create(client: &Client, name: &str, runtime: Runtime, handler: &str, zip: &str) -> Result<(), Any> {
    let code = FunctionCode::builder().zip_file(Blob::new(std::fs::read(var(zip)?)?)).build();
    let create = client.create_function().function_name(name).runtime(runtime).handler(handler);
    let create = create.role("arn:aws:iam::123456789012:role/rust").code(code).timeout(30).memory_size(512);
    assert_eq!(create.clone().send().await?.state(), Some(&State::Pending));
    refused!(create.send(), is_resource_conflict_exception);
    client.wait_until_function_active_v2().function_name(name).wait(PATIENCE).await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Any> {
    let client = client()?;
    create(&client, NAME, Runtime::from("python3.11"), "app.handler", "ECHO_ZIP").await?;
    let invoke = |event: &str| client.invoke().function_name(NAME).payload(Blob::new(event));
    let echo = invoke(r#"{"n": 1}"#).log_type(LogType::Tail).send().await?;
    assert_eq!((echo.status_code(), echo.executed_version(), echo.function_error()), (200, Some("$LATEST"), None));
    assert_eq!(echo.payload().map(|p| p.as_ref()), Some(&br#"{"n": 1}"#[..]));
    assert!(echo.log_result().is_some_and(|log| log.len() > 100));
    let failed = invoke(r#"{"op": "fail"}"#).send().await?;
    assert_eq!((failed.status_code(), failed.function_error()), (200, Some("Unhandled")));

    provision(&client).await?;
    client.put_function_event_invoke_config().function_name(NAME).maximum_retry_attempts(1).send().await?;
    let sent = invoke(r#"{"op": "fail"}"#).invocation_type(InvocationType::Event).send().await?;
    assert_eq!(sent.status_code(), 202);
    stream(&client).await?;
    tried_twice(sent.request_id().expect("an id")).await?;

    refused!(client.get_function().function_name("nobody").send(), is_resource_not_found_exception);
    refused!(invoke("no json").send(), is_invalid_request_content_exception);
    let large = format!("\"{}\"", "x".repeat(6_291_456));
    refused!(invoke(&large).send(), is_request_too_large_exception);
    let java = client.update_function_configuration().function_name(NAME).runtime(Runtime::Java21);
    refused!(java.send(), is_invalid_parameter_value_exception);
    let stale = client.update_function_configuration().function_name(NAME).timeout(5).revision_id("stale");
    refused!(stale.send(), is_precondition_failed_exception);
    client.delete_provisioned_concurrency_config().function_name(NAME).qualifier("live").send().await?;
    client.put_function_concurrency().function_name(NAME).reserved_concurrent_executions(0).send().await?;
    let throttled = refused!(invoke("{}").send(), is_too_many_requests_exception);
    let aws_sdk_lambda::operation::invoke::InvokeError::TooManyRequestsException(throttled) = throttled else { unreachable!() };
    assert_eq!(throttled.reason(), Some(&ThrottleReason::ReservedFunctionConcurrentInvocationLimitExceeded));

    client.delete_function().function_name(NAME).send().await?;
    refused!(client.get_function().function_name(NAME).send(), is_resource_not_found_exception);
    println!("all fine");
    Ok(())
}

async fn provision(client: &Client) -> Result<(), Any> {
    let version = client.publish_version().function_name(NAME).send().await?.version.expect("a number");
    client.wait_until_published_version_active().function_name(NAME).qualifier(&version).wait(PATIENCE).await?;
    client.create_alias().function_name(NAME).name("live").function_version(&version).send().await?;
    let get = || client.get_provisioned_concurrency_config().function_name(NAME).qualifier("live").send();
    refused!(get(), is_provisioned_concurrency_config_not_found_exception);
    let put = client.put_provisioned_concurrency_config().function_name(NAME).qualifier("live");
    put.provisioned_concurrent_executions(1).send().await?;
    let ready = async {
        while get().await?.status() != Some(&Status::Ready) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok::<(), Any>(())
    };
    tokio::time::timeout(PATIENCE, ready).await??;
    let kind = Blob::new(r#"{"op": "env", "names": ["AWS_LAMBDA_INITIALIZATION_TYPE"]}"#);
    let warm = client.invoke().function_name(NAME).qualifier("live").payload(kind).send().await?;
    let payload = String::from_utf8(warm.payload.expect("a payload").into_inner())?;
    assert!(payload.contains("provisioned-concurrency"), "{payload}");
    assert_eq!(warm.executed_version, Some(version));
    Ok(())
}

/// An event that fails is tried again under its id: the log says so. It is read without another SDK, which would take a minute to compile.
async fn tried_twice(id: &str) -> Result<(), Any> {
    let begun = format!("START RequestId: {id}");
    let twice = async {
        while log()?.matches(&begun).count() < 2 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok::<(), Any>(())
    };
    tokio::time::timeout(PATIENCE, twice).await?
}

/// All that danki has logged of the function.
fn log() -> Result<String, Any> {
    let url = var("AWS_ENDPOINT_URL")?;
    let mut stream = TcpStream::connect(url.trim_start_matches("http://"))?;
    write!(stream, "GET /_danki/logs/{NAME}?after=0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

async fn stream(client: &Client) -> Result<(), Any> {
    let name = "rust-stream";
    create(client, name, Runtime::Nodejs20x, "index.handler", "STREAM_ZIP").await?;
    let mut answer = client.invoke_with_response_stream().function_name(name).send().await?;
    let (mut text, mut complete) = (String::new(), false);
    while let Some(event) = answer.event_stream.recv().await? {
        match event {
            StreamEvent::PayloadChunk(chunk) => {
                text += std::str::from_utf8(chunk.payload().expect("bytes").as_ref())?;
            }
            StreamEvent::InvokeComplete(end) => complete = end.error_code().is_none(),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((text.as_str(), complete), ("one\ntwo\n", true));
    Ok(())
}
