//! `explain-corpus/`: recorded runs, each built to have one cause. It is found; what is not there is not; and it goes when it
//! is taken away.

use danki_explain::{Facts, Waterfall, by_variant, findings};
use danki_record::{Level, Manifest};
use danki_runview::{context, events};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    kind: Option<String>,
    #[serde(default)]
    also: Vec<String>,
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../explain-corpus")
}

fn cases() -> Vec<Case> {
    let text = fs::read_to_string(corpus().join("corpus.toml")).expect("the list of cases");
    toml::from_str::<Corpus>(&text).expect("as described at its head").case
}

fn recorded(name: &str) -> PathBuf {
    corpus().join("recorded").join(name)
}

/// Causes found for one variant of a recorded run (and those of the run), with their level.
fn found(name: &str, variant: &str) -> BTreeSet<(String, Level)> {
    let dir = recorded(name);
    let manifest = fs::read_to_string(dir.join("manifest.json")).unwrap_or_else(|e| panic!("{name}: {e}"));
    let manifest: Manifest = serde_json::from_str(&manifest).expect("a manifest");
    let facts = Facts::gather(&events(&dir.join("events.jsonl")).expect("events"));
    let all = findings(&facts, &by_variant(&facts), &context(&manifest, &[]));
    let ours = all.into_iter().filter(|f| f.variant.as_deref().is_none_or(|v| v == variant));
    ours.map(|f| (f.cause.id(), f.level())).collect()
}

fn problems(found: &BTreeSet<(String, Level)>) -> Vec<&str> {
    found.iter().filter(|(_, level)| *level == Level::Problem).map(|(kind, _)| kind.as_str()).collect()
}

#[test]
fn every_cause_is_found_and_goes_when_it_is_taken_away() {
    let mut wrong = Vec::new();
    let mut causes = 0;
    for case in cases() {
        let Some(kind) = &case.kind else { continue };
        causes += 1;
        if !recorded(&case.name).is_dir() {
            wrong.push(format!("{} is not recorded: explain-corpus/record {}", case.name, case.name));
            continue;
        }
        let with = found(&case.name, "cause");
        if !with.iter().any(|(k, _)| k == kind) {
            wrong.push(format!("{}: no {kind} in {with:?}", case.name));
        }
        let expected = |k: &&str| k == kind || case.also.iter().any(|a| a == k);
        let invented: Vec<&str> = problems(&with).into_iter().filter(|k| !expected(k)).collect();
        if !invented.is_empty() {
            wrong.push(format!("{}: {invented:?} beside {kind}", case.name));
        }
        let apart = format!("{}.removed", case.name);
        let without =
            if recorded(&apart).is_dir() { found(&apart, "removed") } else { found(&case.name, "removed") };
        if without.iter().any(|(k, _)| k == kind) {
            wrong.push(format!("{}: {kind} is still there when removed", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(causes >= 24, "{causes} cases");
}

#[test]
fn nothing_is_invented_about_healthy_functions() {
    let healthy: Vec<Case> = cases().into_iter().filter(|c| c.kind.is_none()).collect();
    assert!(healthy.len() >= 6);
    for case in healthy {
        let found = found(&case.name, "healthy");
        assert!(problems(&found).is_empty(), "{}: {found:?}", case.name);
    }
}

#[test]
fn parts_sum_to_the_whole_in_every_recorded_run() {
    let mut invocations = 0;
    for entry in fs::read_dir(corpus().join("recorded")).expect("the recordings").flatten() {
        let facts = Facts::gather(&events(&entry.path().join("events.jsonl")).expect("events"));
        for variant in by_variant(&facts) {
            for (i, w) in &variant.invocations {
                let whole = i.responded_ns - i.dispatched_ns;
                assert_eq!(Waterfall::total(w), whole, "{} {}", entry.path().display(), i.request_id);
                invocations += 1;
            }
        }
    }
    assert!(invocations > 400, "{invocations} invocations");
}
