//! What an extension asks of the Telemetry API (`lambda-platform.md` §2.6). Pure.

use serde::Deserialize;

/// A valid subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// `platform.…` events.
    pub platform: bool,
    /// The function's log lines.
    pub function: bool,
    /// Log lines of extensions.
    pub extension: bool,
    /// When a batch is sent.
    pub buffering: Buffering,
    /// Where to.
    pub destination: Destination,
}

/// A batch is sent when one of these is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Buffering {
    /// 1,000 to 10,000.
    pub max_items: usize,
    /// 262,144 to 1,048,576.
    pub max_bytes: usize,
    /// 25 to 30,000.
    pub timeout_ms: u64,
}

impl Default for Buffering {
    fn default() -> Self {
        Buffering { max_items: 10_000, max_bytes: 262_144, timeout_ms: 1_000 }
    }
}

/// A listener inside the env, on its loopback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A JSON array per POST.
    Http {
        /// Its port.
        port: u16,
        /// Path and query.
        path: String,
    },
    /// A JSON object per line.
    Tcp {
        /// Its port.
        port: u16,
    },
}

impl Destination {
    /// Where it listens.
    pub fn port(&self) -> u16 {
        match self {
            Destination::Http { port, .. } | Destination::Tcp { port } => *port,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    schema_version: String,
    types: Vec<String>,
    #[serde(default)]
    buffering: Buffering,
    destination: RawDestination,
}

#[derive(Deserialize)]
struct RawDestination {
    protocol: String,
    #[serde(rename = "URI")]
    uri: Option<String>,
    port: Option<u16>,
}

const SCHEMAS: [&str; 3] = ["2022-07-01", "2022-12-13", "2025-01-29"];
/// Where the Runtime API listens; AWS reserves it too.
const RESERVED_PORT: u16 = 9001;

impl Subscription {
    /// Reads a body; an error says in words what is wrong with it.
    pub fn parse(body: &[u8]) -> Result<Subscription, String> {
        let body: Body = serde_json::from_slice(body).map_err(|e| e.to_string())?;
        if !SCHEMAS.contains(&body.schema_version.as_str()) {
            return Err(format!(
                "schemaVersion {:?} is not one of {}",
                body.schema_version,
                SCHEMAS.join(", ")
            ));
        }
        let known = ["platform", "function", "extension"];
        if let Some(kind) = body.types.iter().find(|kind| !known.contains(&kind.as_str())) {
            return Err(format!("type {kind:?} is not one of {}", known.join(", ")));
        }
        if body.types.is_empty() {
            return Err("types must not be empty".to_owned());
        }
        let Buffering { max_items, max_bytes, timeout_ms } = body.buffering;
        within("maxItems", max_items, 1_000, 10_000)?;
        within("maxBytes", max_bytes, 262_144, 1_048_576)?;
        within("timeoutMs", timeout_ms, 25, 30_000)?;
        let wants = |kind: &str| body.types.iter().any(|wanted| wanted == kind);
        Ok(Subscription {
            platform: wants("platform"),
            function: wants("function"),
            extension: wants("extension"),
            buffering: body.buffering,
            destination: destination(body.destination)?,
        })
    }

    /// Its types as the log names them.
    pub fn types(&self) -> Vec<&'static str> {
        let all = [("platform", self.platform), ("function", self.function), ("extension", self.extension)];
        all.into_iter().filter(|(_, wanted)| *wanted).map(|(kind, _)| kind).collect()
    }
}

fn within<T: PartialOrd + std::fmt::Display>(what: &str, value: T, from: T, to: T) -> Result<(), String> {
    match value >= from && value <= to {
        true => Ok(()),
        false => Err(format!("{what} {value} is not within {from} to {to}")),
    }
}

fn destination(raw: RawDestination) -> Result<Destination, String> {
    let destination = match (raw.protocol.as_str(), raw.uri, raw.port) {
        ("HTTP", Some(uri), _) => http(&uri)?,
        ("TCP", _, Some(port)) => Destination::Tcp { port },
        (protocol, ..) => {
            return Err(format!("destination {protocol:?} must be HTTP with a URI or TCP with a port"));
        }
    };
    match destination.port() {
        0 | RESERVED_PORT => Err(format!("port {} cannot be used", destination.port())),
        _ => Ok(destination),
    }
}

/// `http://sandbox.localdomain:8080/path`
fn http(uri: &str) -> Result<Destination, String> {
    let refused = || format!("URI {uri:?} must be http://sandbox.localdomain:<port>/<path>");
    let rest = uri.strip_prefix("http://").ok_or_else(refused)?;
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
    if !["sandbox.localdomain", "sandbox"].contains(&host) {
        return Err(refused());
    }
    if !path.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(refused());
    }
    Ok(Destination::Http { port: port.parse().map_err(|_| refused())?, path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn body(rest: &str) -> String {
        format!("{{\"schemaVersion\":\"2022-12-13\",\"types\":[\"platform\",\"function\"],{rest}}}")
    }

    const HTTP: &str = r#""destination":{"protocol":"HTTP","URI":"http://sandbox.localdomain:8080/x?y=1"}"#;

    #[test]
    fn a_subscription_has_aws_s_defaults() {
        let got = Subscription::parse(body(HTTP).as_bytes()).expect("valid");
        let path = "/x?y=1".to_owned();
        assert_eq!(got.destination, Destination::Http { port: 8080, path });
        assert_eq!(got.buffering, Buffering { max_items: 10_000, max_bytes: 262_144, timeout_ms: 1_000 });
        assert_eq!(got.types(), ["platform", "function"]);
        let tcp = body(r#""destination":{"protocol":"TCP","port":9999},"buffering":{"timeoutMs":25}"#);
        let got = Subscription::parse(tcp.as_bytes()).expect("valid");
        assert_eq!((got.destination, got.buffering.timeout_ms), (Destination::Tcp { port: 9_999 }, 25));
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let check = |rest: &str, expect: &str| {
            let error = Subscription::parse(body(rest).as_bytes()).expect_err(rest);
            assert!(error.contains(expect), "{error}");
        };
        check(&format!("{HTTP},\"buffering\":{{\"maxItems\":999}}"), "maxItems 999");
        check(&format!("{HTTP},\"buffering\":{{\"maxBytes\":1048577}}"), "maxBytes 1048577");
        check(&format!("{HTTP},\"buffering\":{{\"timeoutMs\":24}}"), "timeoutMs 24");
        check(r#""destination":{"protocol":"HTTP","URI":"http://example.com/"}"#, "sandbox.localdomain");
        check(r#""destination":{"protocol":"HTTP","URI":"http://sandbox.localdomain:9001/"}"#, "9001");
        check(r#""destination":{"protocol":"UDP","port":1}"#, "UDP");
        check(r#""destination":{"protocol":"TCP"}"#, "TCP");
        assert!(Subscription::parse(b"{}").is_err());
        let schema = br#"{"schemaVersion":"2020-08-15","types":["platform"],"destination":{"protocol":"TCP","port":1}}"#;
        assert!(Subscription::parse(schema).expect_err("old").contains("2020-08-15"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200), uri in ".*") {
            let _ = Subscription::parse(&body);
            let _ = http(&uri);
        }
    }
}
