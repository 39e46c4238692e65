//! An experiment file is written by people: whatever stands in it, the answer is an experiment or an error with words.
#![no_main]

use danki_lab::{Experiment, Options};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|text: &str| {
    for quick in [false, true] {
        let options = Options { quick, ..Options::default() };
        if let Err(error) = Experiment::parse(text, "fuzz.toml", Path::new("/nonexistent"), &options) {
            assert!(!error.to_string().is_empty());
        }
    }
});
