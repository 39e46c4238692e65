//! Whatever a function answers and whatever a client asks: a response that can be sent or a reason, a route or none, an event that is JSON.
#![no_main]

use danki_gateway::{Arrival, Call, Front, Payload, Response, Routes, event};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

fuzz_target!(|parts: (&str, &str, &str, &[u8])| {
    let (route, path, query, body) = parts;
    for payload in [Payload::V1, Payload::V2] {
        if let Ok(response) = Response::read(body, payload) {
            assert!((100..600).contains(&response.head.status));
        }
        let headers = [("content-type".to_owned(), query.to_owned())];
        let arrival =
            Arrival { method: "GET", path, query, headers: &headers, body, source_ip: "127.0.0.1", epoch_ms: 0 };
        let call = Call {
            front: Front::Rest,
            api: "a",
            domain: route,
            account: "0",
            stage: "s",
            resource: route,
            method: "GET",
            parameters: &BTreeMap::new(),
            request_id: "r",
        };
        assert!(event(&arrival, &call, payload).is_object());
    }
    let mut routes = Routes::default();
    if routes.add("ANY", route, ()).is_ok() {
        routes.find("GET", path);
    }
});
