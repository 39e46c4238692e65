//! Requests to events, answers to responses.

use danki_gateway::{Arrival, Call, Front, Malformed, Payload, Response, event};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The event of `POST /orders/7?a=1&a=2&b=x%20y` with this body and content type.
fn order(front: Front, payload: Payload, kind: &str, body: &[u8]) -> Value {
    let headers = headers(&[
        ("Host", "api.example"),
        ("User-Agent", "curl/8"),
        ("X-Twice", "1"),
        ("X-Twice", "2"),
        ("Cookie", "c=1; d=2"),
        ("Content-Type", kind),
    ]);
    let arrival = Arrival {
        method: "POST",
        path: "/orders/7",
        query: "a=1&a=2&b=x%20y",
        headers: &headers,
        body,
        source_ip: "127.0.0.1",
        epoch_ms: 1_583_348_638_390,
    };
    let parameters = BTreeMap::from([("id".to_owned(), "7".to_owned())]);
    let call = Call {
        front,
        api: "abc",
        domain: "abc.example:8443",
        account: "123456789012",
        stage: if front == Front::Rest { "dev" } else { "$default" },
        resource: "/orders/{id}",
        method: "POST",
        parameters: &parameters,
        request_id: "id-1",
    };
    event(&arrival, &call, payload)
}

#[test]
fn format_2_joins_and_sets_cookies_apart() {
    let event = order(Front::Http, Payload::V2, "application/json", b"{}");
    assert_eq!(
        event,
        json!({
            "version": "2.0", "routeKey": "POST /orders/{id}", "rawPath": "/orders/7", "rawQueryString": "a=1&a=2&b=x%20y",
            "cookies": ["c=1", "d=2"],
            "headers": {"host": "api.example", "user-agent": "curl/8", "x-twice": "1,2", "content-type": "application/json"},
            "queryStringParameters": {"a": "1,2", "b": "x y"},
            "pathParameters": {"id": "7"},
            "requestContext": {
                "accountId": "123456789012", "apiId": "abc", "domainName": "abc.example:8443", "domainPrefix": "abc",
                "http": {"method": "POST", "path": "/orders/7", "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": "curl/8"},
                "requestId": "id-1", "routeKey": "POST /orders/{id}", "stage": "$default",
                "time": "04/Mar/2020:19:03:58 +0000", "timeEpoch": 1_583_348_638_390_u64,
            },
            "body": "{}", "isBase64Encoded": false,
        })
    );
}

#[test]
fn a_function_url_has_one_route() {
    let event = order(Front::Url, Payload::V2, "text/plain", b"");
    assert_eq!((&event["routeKey"], event.get("body")), (&json!("$default"), None));
}

#[test]
fn format_1_says_repeated_names_twice() {
    let event = order(Front::Rest, Payload::V1, "text/plain", b"hi");
    assert_eq!(event["headers"]["X-Twice"], "2");
    assert_eq!(event["multiValueHeaders"]["X-Twice"], json!(["1", "2"]));
    assert_eq!(event["multiValueQueryStringParameters"], json!({"a": ["1", "2"], "b": ["x y"]}));
    assert_eq!(event["requestContext"]["path"], "/dev/orders/7");
    assert_eq!((event.get("version"), &event["stageVariables"]), (None, &Value::Null));
    let http = order(Front::Http, Payload::V1, "text/plain", b"hi");
    assert_eq!((&http["version"], &http["headers"]["x-twice"]), (&json!("1.0"), &json!("2")));
}

#[test]
fn bodies_travel_as_text_or_base64() {
    for (kind, body, expect, is_base64) in [
        ("application/json", b"{}".as_slice(), "{}", false),
        ("application/problem+json", b"{}", "{}", false),
        ("multipart/form-data; boundary=x", b"abc", "YWJj", true),
        ("text/plain; charset=latin-1", b"\xff", "/w==", true),
        ("image/png", b"abc", "YWJj", true),
    ] {
        let event = order(Front::Url, Payload::V2, kind, body);
        assert_eq!(
            (&event["body"], &event["isBase64Encoded"]),
            (&json!(expect), &json!(is_base64)),
            "{kind}"
        );
    }
}

/// Status, headers, body.
type Told<'t> = (u16, &'t [(&'t str, &'t str)], &'t str);

fn check(answer: &str, payload: Payload, expect: Result<Told<'_>, Malformed>) {
    let expect = expect.map(|(status, pairs, body)| (status, headers(pairs), body.to_owned()));
    let read = Response::read(answer.as_bytes(), payload)
        .map(|r| (r.head.status, r.head.headers, String::from_utf8_lossy(&r.body).into_owned()));
    assert_eq!(read, expect, "{answer}");
}

#[test]
fn answers_become_responses() {
    const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
    const TEXT: &[(&str, &str)] = &[("content-type", "text/plain; charset=utf-8")];
    // As recorded from a function URL: values without a status are the body of a 200.
    check("\"hello\"", Payload::V2, Ok((200, JSON, "hello")));
    check("3.1", Payload::V2, Ok((200, JSON, "3.1")));
    check("[1,2]", Payload::V2, Ok((200, JSON, "[1,2]")));
    check(r#"{"a":1}"#, Payload::V2, Ok((200, JSON, r#"{"a":1}"#)));
    check(r#"{"statusCode":201,"body":"made"}"#, Payload::V2, Ok((201, TEXT, "made")));
    check(r#"{"statusCode":"204"}"#, Payload::V1, Ok((204, JSON, "")));
    check(r#"{"statusCode":200,"body":"aGk=","isBase64Encoded":true}"#, Payload::V1, Ok((200, JSON, "hi")));
    check(
        r#"{"statusCode":200,"headers":{"Content-Type":"text/html","n":1},"cookies":["a=1","b=2"],"body":"x"}"#,
        Payload::V2,
        Ok((
            200,
            &[("Content-Type", "text/html"), ("n", "1"), ("set-cookie", "a=1"), ("set-cookie", "b=2")],
            "x",
        )),
    );
    check(
        r#"{"statusCode":200,"multiValueHeaders":{"x":["1","2"]},"headers":{"X":"3","content-type":"a/b"}}"#,
        Payload::V1,
        Ok((200, &[("x", "1"), ("x", "2"), ("content-type", "a/b")], "")),
    );
}

#[test]
fn malformed_answers_say_why() {
    check("nope", Payload::V2, Err(Malformed::NotJson));
    check("\"hello\"", Payload::V1, Err(Malformed::NoStatus));
    check(r#"{"statusCode":99}"#, Payload::V1, Err(Malformed::Status("99".to_owned())));
    check(
        r#"{"statusCode":200,"headers":{"a b":"c"}}"#,
        Payload::V2,
        Err(Malformed::Header("a b".to_owned())),
    );
    check(
        r#"{"statusCode":200,"headers":{"a":"x\r\ny: z"}}"#,
        Payload::V2,
        Err(Malformed::Header("a".to_owned())),
    );
    check(r#"{"statusCode":200,"body":"*","isBase64Encoded":true}"#, Payload::V2, Err(Malformed::Body));
}

proptest! {
    #[test]
    fn a_response_can_be_sent(answer in "\\{\"statusCode\":[0-9]{1,4},\"headers\":\\{\"[ -~]{0,8}\":\"[a-z:]{0,8}\"\\}\\}") {
        for payload in [Payload::V1, Payload::V2] {
            if let Ok(response) = Response::read(answer.as_bytes(), payload) {
                prop_assert!((100..600).contains(&response.head.status));
                for (name, _) in &response.head.headers {
                    prop_assert!(!name.is_empty() && !name.contains([' ', ':', '\r', '\n']));
                }
            }
        }
    }
}
