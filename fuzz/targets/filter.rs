//! Whoever looks at traces types what they like: an expression is read, or its mistake lies inside the text.
#![no_main]

use danki_xray::{Filter, Trace};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Filter::parse(text) {
        Ok(filter) => {
            let none = Trace { id: String::new(), requests: Vec::new(), sampled: false, entities: Vec::new() };
            filter.takes(&none);
        }
        Err(bad) => assert!(bad.at <= text.len() && text.is_char_boundary(bad.at) && !bad.what.is_empty()),
    }
});
