//! The environment variables of a function's process (`lambda-platform.md` §8.1, recorded on AWS 2026).
//!
//! Precedence, lowest first: defaults that a customer may override (PATH, LANG, TZ…), the customer's variables, the
//! platform's reserved variables. `_X_AMZN_TRACE_ID` is not here: it is set per invocation by the runtime.

use crate::{FunctionSpec, InitializationType, LogFormat, Runtime, log};
use std::collections::BTreeMap;

/// Where the Runtime API answers inside an env (recorded on AWS 2026).
pub const RUNTIME_API: &str = "169.254.100.1:9001";

/// Where the X-Ray daemon answers inside an env (recorded on AWS 2026).
pub const XRAY_DAEMON: &str = "169.254.100.1:2000";

/// Credentials of the function's role: well-formed and plainly fake (AWS's own documentation example).
pub const ACCESS_KEY_ID: &str = "AKIAIOSFODNN7EXAMPLE";
/// See [`ACCESS_KEY_ID`].
pub const SECRET_ACCESS_KEY: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
/// See [`ACCESS_KEY_ID`]; functions hand it to extensions as a token, so it must not be empty.
pub const SESSION_TOKEN: &str = "danki-example-session-token";

/// Names that a customer cannot set (AWS docs, "Defined runtime environment variables").
const RESERVED: [&str; 24] = [
    "_HANDLER",
    "_X_AMZN_TRACE_ID",
    "AWS_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_DEFAULT_REGION",
    "AWS_EXECUTION_ENV",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_FUNCTION_VERSION",
    "AWS_LAMBDA_INITIALIZATION_TYPE",
    "AWS_LAMBDA_LOG_FORMAT",
    "AWS_LAMBDA_LOG_GROUP_NAME",
    "AWS_LAMBDA_LOG_LEVEL",
    "AWS_LAMBDA_LOG_STREAM_NAME",
    "AWS_LAMBDA_MAX_CONCURRENCY",
    "AWS_LAMBDA_METADATA_API",
    "AWS_LAMBDA_METADATA_TOKEN",
    "AWS_LAMBDA_RUNTIME_API",
    "AWS_REGION",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SECRET_KEY",
    "AWS_SESSION_TOKEN",
    "LAMBDA_RUNTIME_DIR",
    "LAMBDA_TASK_ROOT",
];

/// A customer may not set this variable.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// What differs between two envs of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Function version, e.g. [`log::LATEST`].
    pub version: String,
    /// Log stream, see [`log::stream_name`].
    pub log_stream: String,
    /// Why the env exists.
    pub initialization: InitializationType,
}

/// All variables of the function's process.
pub fn process_environment(spec: &FunctionSpec, identity: &Identity) -> BTreeMap<String, String> {
    let mut all = overridable(spec.runtime);
    all.extend(
        spec.environment.iter().filter(|(name, _)| !is_reserved(name)).map(|(n, v)| (n.clone(), v.clone())),
    );
    all.extend(platform(spec, identity));
    all
}

/// What an external extension does not see of these, beside everything that begins with `_` (`lambda-platform.md` §2.1).
const NOT_FOR_EXTENSIONS: [&str; 10] = [
    "AWS_EXECUTION_ENV",
    "AWS_LAMBDA_LOG_FORMAT",
    "AWS_LAMBDA_LOG_GROUP_NAME",
    "AWS_LAMBDA_LOG_LEVEL",
    "AWS_LAMBDA_LOG_STREAM_NAME",
    "AWS_XRAY_CONTEXT_MISSING",
    "AWS_XRAY_DAEMON_ADDRESS",
    "LAMBDA_RUNTIME_DIR",
    "LAMBDA_TASK_ROOT",
    "PWD",
];

/// All variables of an external extension's process, from those of the function's.
pub fn extension_environment(process: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let seen = |name: &str| !name.starts_with('_') && !NOT_FOR_EXTENSIONS.contains(&name);
    process.iter().filter(|(name, _)| seen(name)).map(|(n, v)| (n.clone(), v.clone())).collect()
}

fn overridable(runtime: Runtime) -> BTreeMap<String, String> {
    let mut all = to_map([
        ("AWS_XRAY_CONTEXT_MISSING", "LOG_ERROR"),
        ("AWS_XRAY_DAEMON_ADDRESS", XRAY_DAEMON),
        ("LANG", "en_US.UTF-8"),
        ("TZ", ":UTC"),
        ("PATH", "/var/lang/bin:/usr/local/bin:/usr/bin/:/bin:/opt/bin"),
        (
            "LD_LIBRARY_PATH",
            "/var/lang/lib:/lib64:/usr/lib64:/var/runtime:/var/runtime/lib:/var/task:/var/task/lib:/opt/lib",
        ),
        ("PWD", "/var/task"),
    ]);
    match runtime {
        Runtime::NodeJs(major) => {
            all.insert("SHLVL".to_owned(), "0".to_owned());
            all.insert(
                "NODE_PATH".to_owned(),
                format!(
                    "/opt/nodejs/node{major}/node_modules:/opt/nodejs/node_modules:/var/runtime/node_modules:/var/runtime:/var/task"
                ),
            );
        }
        Runtime::Python(_) => {
            all.extend(to_map([("SHLVL", "0"), ("LC_CTYPE", "C.UTF-8"), ("PYTHONPATH", "/var/runtime")]));
        }
        Runtime::Php(_) | Runtime::Provided => {}
    }
    all
}

fn platform(spec: &FunctionSpec, identity: &Identity) -> BTreeMap<String, String> {
    let (xray_host, xray_port) = XRAY_DAEMON.split_once(':').expect("the constant is host:port");
    let mut all = to_map([
        ("_AWS_XRAY_DAEMON_ADDRESS", xray_host),
        ("_AWS_XRAY_DAEMON_PORT", xray_port),
        ("AWS_REGION", &spec.region),
        ("AWS_DEFAULT_REGION", &spec.region),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID),
        ("AWS_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY),
        ("AWS_SESSION_TOKEN", SESSION_TOKEN),
        ("AWS_LAMBDA_FUNCTION_NAME", &spec.name),
        ("AWS_LAMBDA_FUNCTION_VERSION", &identity.version),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", &spec.memory.mb().to_string()),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", identity.initialization.as_str()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", &log_group(spec)),
        ("AWS_LAMBDA_LOG_STREAM_NAME", &identity.log_stream),
        ("AWS_LAMBDA_RUNTIME_API", RUNTIME_API),
        ("LAMBDA_TASK_ROOT", "/var/task"),
        ("LAMBDA_RUNTIME_DIR", "/var/runtime"),
    ]);
    if spec.image.is_none() {
        all.insert("_HANDLER".to_owned(), spec.handler.clone());
    }
    all.insert("AWS_LAMBDA_LOG_FORMAT".to_owned(), spec.logging.format.as_str().to_owned());
    if spec.logging.format == LogFormat::Json {
        all.insert("AWS_LAMBDA_LOG_LEVEL".to_owned(), spec.logging.application.as_str().to_owned());
    }
    // Bref's runtimes are layers upon `provided`, for which there is none.
    if !matches!(spec.runtime, Runtime::Php(_) | Runtime::Provided) {
        all.insert("AWS_EXECUTION_ENV".to_owned(), format!("AWS_Lambda_{}", spec.runtime));
    }
    all
}

/// The function's log group.
pub fn log_group(spec: &FunctionSpec) -> String {
    spec.logging.group.clone().unwrap_or_else(|| log::group_name(&spec.name))
}

fn to_map<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::tests::spec as spec_for_tests;

    #[test]
    fn the_platform_wins_over_the_customer_over_defaults() {
        let mut spec = spec_for_tests();
        spec.environment = to_map([("AWS_REGION", "mars"), ("TZ", "Asia/Tokyo"), ("TABLE", "t")]);
        let identity = Identity {
            version: log::LATEST.to_owned(),
            log_stream: "s".to_owned(),
            initialization: InitializationType::OnDemand,
        };
        let all = process_environment(&spec, &identity);
        for (name, value) in [
            ("AWS_REGION", "ap-northeast-1"),
            ("TZ", "Asia/Tokyo"),
            ("TABLE", "t"),
            ("AWS_EXECUTION_ENV", "AWS_Lambda_nodejs20.x"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
            ("AWS_LAMBDA_RUNTIME_API", "169.254.100.1:9001"),
            ("_AWS_XRAY_DAEMON_PORT", "2000"),
            ("_HANDLER", "index.handler"),
            ("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/f"),
        ] {
            assert_eq!(all.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert_eq!(all.get("AWS_LAMBDA_LOG_FORMAT").map(String::as_str), Some("Text"));
        assert!(!all.contains_key("AWS_LAMBDA_LOG_LEVEL"), "text has no levels");
        let extension = extension_environment(&all);
        for name in ["TABLE", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_LAMBDA_RUNTIME_API", "TZ", "PATH"] {
            assert!(extension.contains_key(name), "{name}");
        }
        for name in ["_HANDLER", "_AWS_XRAY_DAEMON_PORT", "LAMBDA_TASK_ROOT", "AWS_EXECUTION_ENV"] {
            assert!(!extension.contains_key(name), "{name}");
        }
        spec.logging.format = LogFormat::Json;
        let all = process_environment(&spec, &identity);
        assert_eq!(all.get("AWS_LAMBDA_LOG_LEVEL").map(String::as_str), Some("INFO"));
        spec.runtime = Runtime::Provided;
        let all = process_environment(&spec, &identity);
        assert!(!all.contains_key("AWS_EXECUTION_ENV") && !all.contains_key("SHLVL"));
    }
}
