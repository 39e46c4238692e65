//! A client of `danki-secrets` is somebody else's program: any head is read or refused, any target is routed or refused, and what is
//! read stays within what was sent.
#![no_main]

use danki_secrets::request::head;
use danki_secrets::route::{entry, route};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(Some(head)) = head(data) {
        assert!(head.length <= data.len() && head.length > 0);
        let _ = route(head.target);
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = (route(text), entry(text));
        let _ = route(&format!("/secretsmanager/get?{text}"));
        let _ = route(&format!("/systemsmanager/parameters/get?{text}"));
    }
});
