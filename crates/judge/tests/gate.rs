//! Budgets and comparisons over runs made by hand.

use danki_judge::{Budget, Check, Measure, Outcome, check, compare_runs, junit, markdown, sizes, tuned};
use danki_runview::Run;
use danki_stats::Verdict;

#[path = "../../runview/tests/support/mod.rs"]
mod support;

fn slower(mut run: Run, factor: f64) -> Run {
    for event in &mut run.events {
        if let danki_record::Event::Invocation(i) = event {
            i.duration_ms *= factor;
        }
    }
    run
}

#[test]
fn a_budget_is_kept_or_missed() {
    let run = support::run(300);
    let checked = |text: &str, baseline: Option<&Run>| -> Vec<Check> {
        check(&run, &Budget::parse(text).expect("fine"), baseline)
    };
    let kept = |text: &str| {
        checked(text, None)
            .iter()
            .map(|c| (c.variant.clone(), c.outcome == Outcome::Kept))
            .collect::<Vec<_>>()
    };
    let both = |off: bool, on: bool| vec![("off".to_owned(), off), ("on".to_owned(), on)];
    assert_eq!(kept("[budget]\np99_ms = 30"), both(false, true));
    assert_eq!(kept("[budget]\np50_ms = 500"), both(true, true));
    assert_eq!(kept("[budget]\nhandshakes_per_invocation = 0.1"), both(false, true));
    assert_eq!(kept("[budget]\np99_ms = 30\n[variant.off]\np99_ms = 100"), both(true, true));
    assert_eq!(kept("[budget]\nerrors = 0"), both(false, false));
    assert_eq!(kept("[budget]\nthrottled_ratio = 0.1"), both(false, true));
    assert_eq!(kept("[budget]\nusd_per_million = 0.25"), both(false, true));
    assert_eq!(
        kept("[budget]\ndb_connections_max = 5"),
        both(false, false),
        "a number that is not there is a miss"
    );
    assert_eq!(kept("[budget]\nregression_pct = 5"), both(false, false), "no baseline");
    let text = "[budget]\nregression_pct = 5";
    assert!(checked(text, Some(&run)).iter().all(|c| c.outcome == Outcome::Kept), "the same run");
    let faster_before = slower(run.clone(), 0.8);
    assert!(
        checked(text, Some(&faster_before)).iter().all(|c| c.outcome == Outcome::Missed),
        "a quarter slower"
    );
}

#[test]
fn a_regression_that_the_noise_may_hide_is_not_proven() {
    let (few, slow) = (support::run(16), slower(support::run(16), 1.3));
    let budget = Budget::parse("[variant.off]\nregression_pct = 5").expect("fine");
    let checks = check(&slow, &budget, Some(&few));
    assert_eq!(checks.iter().map(|c| c.outcome).collect::<Vec<_>>(), [Outcome::Unproven], "{checks:?}");
    let (xml, table) = (junit("run", &checks), markdown("run", &checks));
    assert!(xml.contains("failures=\"1\"") && xml.contains("type=\"unproven\""), "{xml}");
    assert!(table.contains("| ? | off") && table.contains("1 not proven"), "{table}");
    let loose = Budget::parse("[variant.off]\nregression_pct = 1000").expect("fine");
    assert_eq!(check(&slow, &loose, Some(&few))[0].outcome, Outcome::Kept, "no noise is that large");
}

#[test]
fn bad_budgets_are_told() {
    let check = |text: &str, expect: &str| {
        let error = Budget::parse(text).expect_err(text).to_string();
        assert!(error.contains(expect), "{error}");
    };
    check("", "no limits");
    check("[budget]\np98_ms = 1", "p98_ms");
    check("[budget]\np99_ms = -1", "p99_ms = -1");
    check("[budget]\np99_ms = \"a\"", "p99_ms");
}

#[test]
fn other_tools_can_read_it() {
    let run = support::run(40);
    let budget = Budget::parse("[budget]\np99_ms = 30\nerrors = 0").expect("fine");
    let checks = check(&run, &budget, None);
    let xml = junit("a <run> & more", &checks);
    let missed = checks.iter().filter(|c| c.outcome == Outcome::Missed).count();
    assert!(xml.contains(&format!("tests=\"4\" failures=\"{missed}\"")), "{xml}");
    assert!(xml.contains("a &lt;run&gt; &amp; more"), "{xml}");
    assert_eq!(xml.matches("<failure").count(), missed);
    let table = markdown("run", &checks);
    assert_eq!(
        (table.matches("| ✓ |").count(), table.matches("| ✗ |").count()),
        (4 - missed, missed),
        "{table}"
    );
}

#[test]
fn the_same_run_differs_by_nothing_and_a_slower_one_is_slower() {
    let run = support::run(200);
    let verdicts = |b: &Run| {
        let rows = compare_runs(&run, b);
        let primary = rows.iter().filter(|r| r.measure == Measure::DurationP50);
        primary.map(|r| r.answer.expect("values").verdict).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&run), [Verdict::NoDifference; 2]);
    assert_eq!(verdicts(&slower(run.clone(), 1.3)), [Verdict::Slower; 2]);
    assert_eq!(verdicts(&slower(run.clone(), 0.7)), [Verdict::Faster; 2]);
}

#[test]
fn the_best_size_for_cost_for_speed_and_for_both() {
    let mut run = support::run(60);
    // "off" is cheap and slow, "on" eight times as large and five times as fast.
    run.summary.variants[1].memory_mb = 1_024;
    let sizes = sizes(&run);
    let best = tuned(&sizes).expect("two sizes");
    assert_eq!(
        (sizes[best.cost].variant.as_str(), sizes[best.speed].variant.as_str()),
        ("off", "on"),
        "{sizes:?}"
    );
    assert_eq!(sizes[best.balanced].variant, "on", "{sizes:?}");
    assert_eq!(tuned(&[]), None);
}
