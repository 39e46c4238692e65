//! Clients of Lambda's API send what they like: a path is routed or not, a body is settings or refused, a credential has a scope or
//! none, and a zip is unpacked inside of its directory or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(3, |byte| *byte == b'\n');
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (method, path) = (text(), text());
    danki_lambda_api::fuzz_request(&method, &path, parts.next().unwrap_or_default());
});
