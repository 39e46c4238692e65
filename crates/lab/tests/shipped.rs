//! The experiments that ship with danki read, whole and quick.

use danki_lab::{Experiment, Options};
use std::fs;
use std::path::Path;

#[test]
fn every_shipped_experiment_reads() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut read = 0;
    for entry in fs::read_dir(&dir).expect("the experiments are there").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        for quick in [false, true] {
            match Experiment::read(&path, &Options { quick, ..Options::default() }) {
                Ok(experiment) => {
                    assert!(
                        !experiment.variants.is_empty() && !experiment.expect.is_empty(),
                        "{}",
                        path.display()
                    );
                    assert_eq!(experiment.name, path.file_stem().expect("has one").to_string_lossy());
                    read += 1;
                }
                // Not installed here: said in the way a user would read it.
                Err(error) if error.hint().is_some_and(|hint| hint.contains("make functions")) => {
                    println!("skipped: {}: {error}", path.display());
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(read > 0, "no experiment could be read");
}
