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
    /// Everything else, the Extensions and Telemetry APIs included.
    Unknown,
}

/// The route of `method` and `path`.
pub fn route<'a>(method: &Method, path: &'a str) -> Route<'a> {
    let Some(rest) = path.strip_prefix("/2018-06-01") else { return Route::Unknown };
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
        for path in [
            "/",
            "/ping",
            "/2018-06-01",
            "/2018-06-01/runtime/invocation/next",
            "/2018-06-01/runtime/invocation//response",
            "/2018-06-01/runtime/invocation/a/b/response",
            "/2020-01-01/extension/register",
            "/2022-07-01/telemetry",
        ] {
            check(Method::POST, path, Route::Unknown);
            check(Method::PUT, path, Route::Unknown);
        }
        check(Method::GET, "/2018-06-01/runtime/restore/next", Route::Unknown);
        check(Method::POST, "/2018-06-01/ping", Route::Unknown);
    }
}
