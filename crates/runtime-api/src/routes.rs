//! Method and path to what is meant.

use hyper::Method;

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// `GET /ping`
    Ping,
    /// `GET /runtime/invocation/next`
    Next,
    /// `POST /runtime/invocation/{id}/response`
    Response(&'a str),
    /// `POST /runtime/invocation/{id}/error`
    Error(&'a str),
    /// `POST /runtime/init/error`
    InitError,
    /// `POST /extension/register`
    Register,
    /// `GET /extension/event/next`
    ExtensionNext,
    /// `POST /extension/init/error`
    ExtensionInitError,
    /// `POST /extension/exit/error`
    ExtensionExitError,
    /// `PUT /telemetry`
    Telemetry,
    /// `PUT /logs`
    Logs,
    /// Everything else.
    Unknown,
}

/// The route of `method` and `path`.
pub fn route<'a>(method: &Method, path: &'a str) -> Route<'a> {
    match path.strip_prefix("/2018-06-01") {
        Some(rest) => runtime(method, rest),
        None => beside(method, path),
    }
}

/// The Extensions, Telemetry and Logs APIs.
fn beside<'a>(method: &Method, path: &str) -> Route<'a> {
    match (method.as_str(), path) {
        ("POST", "/2020-01-01/extension/register") => Route::Register,
        ("GET", "/2020-01-01/extension/event/next") => Route::ExtensionNext,
        ("POST", "/2020-01-01/extension/init/error") => Route::ExtensionInitError,
        ("POST", "/2020-01-01/extension/exit/error") => Route::ExtensionExitError,
        ("PUT", "/2022-07-01/telemetry") => Route::Telemetry,
        ("PUT", "/2020-08-15/logs") => Route::Logs,
        _ => Route::Unknown,
    }
}

fn runtime<'a>(method: &Method, rest: &'a str) -> Route<'a> {
    if *method == Method::GET {
        return match rest {
            "/runtime/invocation/next" => Route::Next,
            "/ping" => Route::Ping,
            _ => Route::Unknown,
        };
    }
    if *method != Method::POST {
        return Route::Unknown;
    }
    if rest == "/runtime/init/error" {
        return Route::InitError;
    }
    let id_and_what = rest.strip_prefix("/runtime/invocation/").and_then(|r| r.split_once('/'));
    match id_and_what {
        Some((id, "response")) if !id.is_empty() => Route::Response(id),
        Some((id, "error")) if !id.is_empty() => Route::Error(id),
        _ => Route::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes() {
        let check =
            |method: Method, path: &str, expect: Route| assert_eq!(route(&method, path), expect, "{path}");
        check(Method::GET, "/2018-06-01/ping", Route::Ping);
        check(Method::GET, "/2018-06-01/runtime/invocation/next", Route::Next);
        check(Method::POST, "/2018-06-01/runtime/invocation/a-1/response", Route::Response("a-1"));
        check(Method::POST, "/2018-06-01/runtime/invocation/a-1/error", Route::Error("a-1"));
        check(Method::POST, "/2018-06-01/runtime/init/error", Route::InitError);
        check(Method::POST, "/2020-01-01/extension/register", Route::Register);
        check(Method::GET, "/2020-01-01/extension/event/next", Route::ExtensionNext);
        check(Method::POST, "/2020-01-01/extension/init/error", Route::ExtensionInitError);
        check(Method::POST, "/2020-01-01/extension/exit/error", Route::ExtensionExitError);
        check(Method::PUT, "/2022-07-01/telemetry", Route::Telemetry);
        check(Method::PUT, "/2020-08-15/logs", Route::Logs);
        for path in [
            "/",
            "/ping",
            "/2018-06-01",
            "/2018-06-01/runtime/invocation/next",
            "/2018-06-01/runtime/invocation//response",
            "/2018-06-01/runtime/invocation/a/b/response",
            "/2020-01-01/extension",
            "/2020-01-01/extension/event/next",
            "/2020-08-15/telemetry",
        ] {
            check(Method::POST, path, Route::Unknown);
            check(Method::PUT, path, Route::Unknown);
        }
        check(Method::GET, "/2018-06-01/runtime/restore/next", Route::Unknown);
        check(Method::POST, "/2018-06-01/ping", Route::Unknown);
    }
}
