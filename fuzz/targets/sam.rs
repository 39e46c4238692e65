//! Any text is a template or an error that says something; neither hangs nor fills the memory.
#![no_main]

use danki_sam::{Deployment, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match read(text, &Deployment::default()) {
        Ok(template) => template.functions.iter().for_each(|f| assert!((128..=10_240).contains(&f.memory.mb()))),
        Err(error) => assert!(!error.what.is_empty()),
    }
});
