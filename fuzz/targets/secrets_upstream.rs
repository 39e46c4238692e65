//! Whatever comes from upstream of `danki-secrets`, HTTP or JSON: it is read whole or refused, and a body that is made from it is JSON.
#![no_main]

use danki_secrets::upstream::read_answer;
use danki_secrets::{date, shape};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(answer) = read_answer(&mut &*data) {
        assert!(answer.body.len() <= data.len());
        check(&answer.body);
    }
    check(data);
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = date::parse_http(text);
    }
});

fn check(json: &[u8]) {
    let bodies = [shape::secret(json), shape::parameter(json), shape::secret(json).and_then(|body| shape::agent(&body))];
    for body in bodies.into_iter().flatten() {
        serde_json::from_slice::<serde_json::Value>(&body).expect("what goes to the function is JSON");
    }
    let secrets = shape::secrets(json).unwrap_or_default();
    let parameters = shape::parameters(json).unwrap_or_default();
    let bodies = secrets.iter().map(shape::secret_body).chain(parameters.iter().map(shape::parameter_body));
    for body in bodies {
        serde_json::from_slice::<serde_json::Value>(&body).expect("what goes to the function is JSON");
    }
}
