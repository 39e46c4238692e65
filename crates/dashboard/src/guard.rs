//! Who is answered: a page that this address itself has served, or a person who typed the address.
//!
//! A browser lets any site send requests to 127.0.0.1. A site cannot read an answer without CORS headers, which there are none of, unless
//! its own name leads to 127.0.0.1 (DNS rebinding): then `Host` has that name. So `Host` must be a loopback address or `localhost`, with
//! this port; `Origin`, where there is one, must be the same; and what the browser says of the asking site (`Sec-Fetch-Site`) must not
//! be another one.

use hyper::HeaderMap;
use std::net::{IpAddr, SocketAddr};

/// Why a request is refused.
pub(crate) fn check(headers: &HeaderMap, local: SocketAddr) -> Result<(), &'static str> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let Some(host) = text("host").filter(|host| is_loopback(host, local.port())) else {
        return Err("the dashboard is served under 127.0.0.1 and localhost only");
    };
    if !local.ip().is_loopback() {
        return Err("the dashboard is served to this machine only");
    }
    if text("origin").is_some_and(|origin| origin != format!("http://{host}")) {
        return Err("the dashboard answers no page of another origin");
    }
    if text("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none") {
        return Err("the dashboard answers no page of another site");
    }
    Ok(())
}

fn is_loopback(host: &str, port: u16) -> bool {
    let Some(name) = host.strip_suffix(&format!(":{port}")) else { return false };
    let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    #[test]
    fn only_pages_of_this_address_are_answered() {
        let answered = |given: &[(&'static str, &'static str)], fine: bool| {
            let pairs = given.iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v)));
            let local = SocketAddr::from(([127, 0, 0, 1], 9001));
            assert_eq!(check(&pairs.collect(), local).is_ok(), fine, "{given:?}");
        };
        answered(&[("host", "127.0.0.1:9001")], true);
        answered(&[("host", "localhost:9001"), ("origin", "http://localhost:9001")], true);
        answered(&[("host", "[::1]:9001"), ("sec-fetch-site", "same-origin")], true);
        answered(&[("host", "127.0.0.1:9001"), ("sec-fetch-site", "none")], true);
        answered(&[], false);
        answered(&[("host", "127.0.0.1")], false);
        answered(&[("host", "127.0.0.1:9002")], false);
        answered(&[("host", "attacker.example:9001")], false);
        answered(&[("host", "127.0.0.1.attacker.example:9001")], false);
        answered(&[("host", "10.0.0.1:9001")], false);
        answered(&[("host", "127.0.0.1:9001"), ("origin", "https://attacker.example")], false);
        answered(&[("host", "127.0.0.1:9001"), ("origin", "null")], false);
        answered(&[("host", "127.0.0.1:9001"), ("origin", "http://localhost:9001")], false);
        answered(&[("host", "127.0.0.1:9001"), ("sec-fetch-site", "cross-site")], false);
        answered(&[("host", "127.0.0.1:9001"), ("sec-fetch-site", "same-site")], false);
    }

    #[test]
    fn nobody_is_answered_on_an_outside_address() {
        let headers: HeaderMap =
            [(HeaderName::from_static("host"), HeaderValue::from_static("127.0.0.1:9001"))]
                .into_iter()
                .collect();
        assert!(check(&headers, SocketAddr::from(([192, 0, 2, 1], 9001))).is_err());
    }
}
