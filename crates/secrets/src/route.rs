//! A request's target → what is asked for. Paths and query names are those of AWS's extension, and of AWS's open agent where it has
//! more; slashes are forgiven as AWS forgives them.

use crate::wanted::Wanted;

/// What a target asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// The agent's health check.
    Ping,
    /// A value.
    Fetch(Fetch),
}

/// A value, and how it is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Which value.
    pub wanted: Wanted,
    /// In whose form.
    pub dialect: Dialect,
    /// Whether the cache must be passed by (`refreshNow`).
    pub refresh: bool,
}

/// Whose bodies and errors a client expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// AWS's extension, `/secretsmanager/get` and `/systemsmanager/parameters/get`.
    Layer,
    /// AWS's open agent, `/v1/<id>`.
    Agent,
}

/// Why a target asks for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such path.
    NotFound,
    /// The path is right, the query is not.
    BadQuery,
    /// The agent refuses names that it does not know.
    UnknownParameter(String),
}

/// Reads a request's target.
pub fn route(target: &str) -> Result<Call, Refusal> {
    // A client may name the host in the target (RFC 9112 §3.2.2); it means the same.
    let target =
        target.strip_prefix("http://").map_or(target, |rest| &rest[rest.find('/').unwrap_or(rest.len())..]);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = path.trim_start_matches('/');
    match path.trim_end_matches('/') {
        "ping" => Ok(Call::Ping),
        "secretsmanager/get" => secret(query).map(Call::Fetch),
        "systemsmanager/parameters/get" => parameter(query).map(Call::Fetch),
        _ => match path.strip_prefix("v1/").filter(|id| !id.is_empty()) {
            Some(id) => agent(id, query).map(Call::Fetch),
            None => Err(Refusal::NotFound),
        },
    }
}

/// One entry of the prefetch list: the query of either path, told apart by its first name.
pub fn entry(query: &str) -> Result<Wanted, Refusal> {
    let fetch = if query.starts_with("name=") { parameter(query)? } else { secret(query)? };
    Ok(fetch.wanted)
}

fn secret(query: &str) -> Result<Fetch, Refusal> {
    let query = Query::parse(query)?;
    let wanted = Wanted::Secret {
        id: query.get("secretId").filter(|id| !id.is_empty()).ok_or(Refusal::BadQuery)?.to_owned(),
        version_id: query.some("versionId"),
        version_stage: query.some("versionStage"),
    };
    Ok(Fetch { wanted, dialect: Dialect::Layer, refresh: query.refresh()? })
}

fn parameter(query: &str) -> Result<Fetch, Refusal> {
    let query = Query::parse(query)?;
    let mut name = query.get("name").filter(|name| !name.is_empty()).ok_or(Refusal::BadQuery)?.to_owned();
    // If both are given, the first one counts.
    let selector =
        query.0.iter().find(|(key, value)| matches!(key.as_str(), "version" | "label") && !value.is_empty());
    if let Some((_, selector)) = selector {
        name = format!("{name}:{selector}");
    }
    let decrypt = query.get("withDecryption").map_or(Some(false), boolean).ok_or(Refusal::BadQuery)?;
    let wanted = Wanted::Parameter { name, decrypt };
    Ok(Fetch { wanted, dialect: Dialect::Layer, refresh: query.refresh()? })
}

fn agent(id: &str, query: &str) -> Result<Fetch, Refusal> {
    let query = Query::parse(query)?;
    let known = ["versionId", "versionStage", "refreshNow"];
    if let Some((name, _)) = query.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        return Err(Refusal::UnknownParameter(name.clone()));
    }
    let wanted = Wanted::Secret {
        id: decode(id, false).ok_or(Refusal::BadQuery)?,
        version_id: query.some("versionId"),
        version_stage: query.some("versionStage"),
    };
    Ok(Fetch { wanted, dialect: Dialect::Agent, refresh: query.refresh()? })
}

/// Names and values in their order, decoded.
struct Query(Vec<(String, String)>);

impl Query {
    fn parse(text: &str) -> Result<Query, Refusal> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let decoded = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name, true)?, decode(value, true)?))
        });
        decoded.collect::<Option<_>>().map(Query).ok_or(Refusal::BadQuery)
    }

    /// The first value of that name, as in Go.
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The same, where an empty value is none.
    fn some(&self, name: &str) -> Option<String> {
        self.get(name).filter(|value| !value.is_empty()).map(str::to_owned)
    }

    fn refresh(&self) -> Result<bool, Refusal> {
        self.get("refreshNow").map_or(Some(false), boolean).ok_or(Refusal::BadQuery)
    }
}

/// What Go's `strconv.ParseBool` takes.
pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// Percent-decoding; none if a `%` is not followed by two hexadecimal digits, or if the result is not UTF-8.
fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            b'+' if plus_is_space => b' ',
            _ => byte,
        });
    }
    String::from_utf8(out).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secret_of(id: &str, version_id: Option<&str>, version_stage: Option<&str>) -> Wanted {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Wanted::Secret {
            id: id.to_owned(),
            version_id: owned(version_id),
            version_stage: owned(version_stage),
        }
    }

    fn parameter_of(name: &str, decrypt: bool) -> Wanted {
        Wanted::Parameter { name: name.to_owned(), decrypt }
    }

    #[test]
    fn targets_are_read_as_aws_reads_them() {
        let check = |target: &str, expect: Wanted| match route(target) {
            Ok(Call::Fetch(fetch)) => assert_eq!(fetch.wanted, expect, "{target}"),
            other => panic!("{target}: {other:?}"),
        };
        let arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:a-MFUBmH";
        check("/secretsmanager/get?secretId=a", secret_of("a", None, None));
        check("//secretsmanager/get/?secretId=a", secret_of("a", None, None));
        check("http://localhost:2773/secretsmanager/get?secretId=a", secret_of("a", None, None));
        check(
            &format!("/secretsmanager/get?secretId={}", arn.replace(':', "%3A")),
            secret_of(arn, None, None),
        );
        check(
            "/secretsmanager/get?secretId=p/a&versionStage=AWSPREVIOUS",
            secret_of("p/a", None, Some("AWSPREVIOUS")),
        );
        check("/secretsmanager/get?versionId=v&secretId=a+b%2B", secret_of("a b+", Some("v"), None));
        check("/secretsmanager/get?secretId=a&withDecryption=true&x", secret_of("a", None, None));
        check("/secretsmanager/get?secretId=a&secretId=b&versionStage=", secret_of("a", None, None));
        check("/systemsmanager/parameters/get?name=%2Fa%2Fb", parameter_of("/a/b", false));
        check("/systemsmanager/parameters/get/?name=/a/b&withDecryption=true", parameter_of("/a/b", true));
        check("/systemsmanager/parameters/get?name=a&version=3&label=Dev", parameter_of("a:3", false));
        check("/systemsmanager/parameters/get?label=Dev&name=a&version=3", parameter_of("a:Dev", false));
        check("/v1/p/a%20b?versionId=v", secret_of("p/a b", Some("v"), None));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let check = |target: &str, refusal: Refusal| assert_eq!(route(target), Err(refusal), "{target}");
        check("/", Refusal::NotFound);
        check("", Refusal::NotFound);
        check("http://x", Refusal::NotFound);
        check("/v1/", Refusal::NotFound);
        check("/secretsmanager/get/more?secretId=a", Refusal::NotFound);
        check("/secretsmanager/get", Refusal::BadQuery);
        check("/secretsmanager/get?secretId=", Refusal::BadQuery);
        check("/secretsmanager/get?secretId=%zz", Refusal::BadQuery);
        check("/secretsmanager/get?secretId=%ff", Refusal::BadQuery);
        check("/secretsmanager/get?secretId=a%2", Refusal::BadQuery);
        check("/secretsmanager/get?secretId=a&refreshNow=yes", Refusal::BadQuery);
        check("/systemsmanager/parameters/get?name=a&withDecryption=yes", Refusal::BadQuery);
        check("/v1/a?secretId=b", Refusal::UnknownParameter("secretId".to_owned()));
        assert_eq!(route("/ping"), Ok(Call::Ping));
        assert!(matches!(
            route("/v1/a?refreshNow=1"),
            Ok(Call::Fetch(Fetch { refresh: true, dialect: Dialect::Agent, .. }))
        ));
    }

    #[test]
    fn prefetch_entries_are_queries() {
        assert_eq!(entry("secretId=a&versionStage=S"), Ok(secret_of("a", None, Some("S"))));
        assert_eq!(entry("name=/a&withDecryption=true"), Ok(parameter_of("/a", true)));
        assert_eq!(entry("prod/db"), Err(Refusal::BadQuery));
    }

    proptest! {
        #[test]
        fn any_target_is_answered(target in any::<String>()) {
            let _ = route(&target);
            let _ = route(&format!("/secretsmanager/get?{target}"));
            let _ = route(&format!("/systemsmanager/parameters/get?{target}"));
        }

        #[test]
        fn an_encoded_name_comes_back(name in "\\PC{1,40}") {
            let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
            match route(&format!("/systemsmanager/parameters/get?name={encoded}")) {
                Ok(Call::Fetch(fetch)) => prop_assert_eq!(fetch.wanted, parameter_of(&name, false)),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
