//! A run against a budget: a list of checks, and how other tools want to read it.

use crate::budget::Budget;
use crate::compare::{Measure, by_env, question};
use crate::tune::usd_per_million;
use danki_record::VariantSummary;
use danki_runview::Run;
use danki_stats::{Over, Verdict, compare};
use std::fmt::Write as _;

/// What became of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is kept.
    Kept,
    /// It is missed.
    Missed,
    /// The run says too little to tell. A gate that lets this pass would pass whatever is measured badly enough.
    Unproven,
}

/// One limit of one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Whose.
    pub variant: String,
    /// Which limit.
    pub name: &'static str,
    /// The limit.
    pub limit: f64,
    /// What the run has; none: it has no such number, which is a miss.
    pub measured: Option<f64>,
    /// What became of it.
    pub outcome: Outcome,
    /// What is to be added.
    pub note: String,
}

/// All checks of a run, by variant.
pub fn check(run: &Run, budget: &Budget, baseline: Option<&Run>) -> Vec<Check> {
    run.summary
        .variants
        .iter()
        .flat_map(|v| {
            let limits = budget.of(&v.name).list();
            limits.into_iter().map(|(name, limit)| one(run, v, baseline, name, limit))
        })
        .collect()
}

fn one(run: &Run, v: &VariantSummary, baseline: Option<&Run>, name: &'static str, limit: f64) -> Check {
    if name == "regression_pct" {
        return regression(run, v, baseline, limit);
    }
    let d = &v.duration_ms;
    let measured = match name {
        "p50_ms" => d.p50,
        "p90_ms" => d.p90,
        "p95_ms" => d.p95,
        "p99_ms" => d.p99,
        "init_ms" => v.init_ms.iter().copied().reduce(f64::max),
        "handshakes_per_invocation" => Some(v.handshakes_per_invocation),
        "connections_per_invocation" => Some(v.connections_per_invocation),
        "cold_starts" => Some(v.cold_starts as f64),
        "errors" => Some(v.errors as f64),
        "throttled_ratio" => Some(v.throttled_ratio),
        "usd_per_million" => usd_per_million(run, v),
        _ => None,
    };
    let few = name == "p99_ms" && d.n < 100;
    let note = match measured {
        None => "the run has no such number".to_owned(),
        Some(_) if few => format!("the largest of {} values", d.n),
        Some(_) => String::new(),
    };
    let outcome = if measured.is_some_and(|m| m <= limit) { Outcome::Kept } else { Outcome::Missed };
    Check { variant: v.name.clone(), name, limit, measured, outcome, note }
}

/// Missed only if it is slower beyond the limit and beyond the noise; not proven if the noise hides a difference as large as the limit.
fn regression(run: &Run, v: &VariantSummary, baseline: Option<&Run>, limit: f64) -> Check {
    let measure = Measure::DurationP50;
    let answer = baseline.and_then(|old| {
        let (a, b) = (by_env(old, &v.name, measure), by_env(run, &v.name, measure));
        compare(&a, &b, &question(measure, run.manifest.seed))
    });
    let (measured, outcome, note) = match answer {
        None if baseline.is_none() => (None, Outcome::Missed, "no baseline was given".to_owned()),
        None => (None, Outcome::Missed, "the baseline has no such variant".to_owned()),
        Some(c) => {
            let pct = |ratio: f64| (ratio - 1.0) * 100.0;
            let mut note =
                format!("{}, ratio {:.3} ({:.3} to {:.3})", c.verdict.words(), c.ratio, c.low, c.high);
            if c.over == Over::Invocations {
                note.push_str("; a side has one env, whose own luck is in this");
            }
            let outcome = match c.verdict {
                Verdict::Slower if pct(c.ratio) > limit => Outcome::Missed,
                Verdict::NotEnoughData if pct(c.high) > limit => {
                    note.push_str("; more repetitions narrow it");
                    Outcome::Unproven
                }
                _ => Outcome::Kept,
            };
            (Some(pct(c.ratio)), outcome, note)
        }
    };
    Check { variant: v.name.clone(), name: "regression_pct", limit, measured, outcome, note }
}

/// JUnit's XML, one test case per check.
pub fn junit(name: &str, checks: &[Check]) -> String {
    let missed = checks.iter().filter(|c| c.outcome != Outcome::Kept).count();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{missed}\">\n",
        xml_text(name),
        checks.len()
    );
    for c in checks {
        let head = format!("<testcase classname=\"{}\" name=\"{}\"", xml_text(&c.variant), c.name);
        let kind = match c.outcome {
            Outcome::Kept => None,
            Outcome::Missed => Some("missed"),
            Outcome::Unproven => Some("unproven"),
        };
        let tail = kind.map_or("/>\n".to_owned(), |kind| {
            format!("><failure type=\"{kind}\" message=\"{}\"/></testcase>\n", xml_text(&words(c)))
        });
        write!(xml, "{head}{tail}").expect("a String takes all");
    }
    xml + "</testsuite>\n</testsuites>\n"
}

fn words(c: &Check) -> String {
    let measured = c.measured.map_or("nothing measured".to_owned(), |m| format!("{m:.3}"));
    let note = if c.note.is_empty() { String::new() } else { format!(" ({})", c.note) };
    match c.outcome {
        Outcome::Unproven => format!("not proven: at most {}{note}", c.limit),
        Outcome::Kept | Outcome::Missed => format!("{measured} > {}{note}", c.limit),
    }
}

fn xml_text(text: &str) -> String {
    let known = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        c if c.is_control() => " ".to_owned(),
        c => c.to_string(),
    };
    text.chars().map(known).collect()
}

/// A table for a pull request or `$GITHUB_STEP_SUMMARY`.
pub fn markdown(name: &str, checks: &[Check]) -> String {
    let count = |outcome: Outcome| checks.iter().filter(|c| c.outcome == outcome).count();
    let verdict = match (count(Outcome::Missed), count(Outcome::Unproven)) {
        (0, 0) => "all kept".to_owned(),
        (missed, 0) => format!("**{missed} missed**"),
        (missed, unproven) => format!("**{missed} missed, {unproven} not proven**"),
    };
    let mut text = format!("### danki: {name}: {} limits, {verdict}\n\n", checks.len());
    text.push_str("| | variant | limit | at most | measured | |\n|---|---|---|---:|---:|---|\n");
    for c in checks {
        let mark = match c.outcome {
            Outcome::Kept => "✓",
            Outcome::Missed => "✗",
            Outcome::Unproven => "?",
        };
        let measured = c.measured.map_or("–".to_owned(), |m| format!("{m:.3}"));
        let note = c.note.replace('|', "\\|");
        writeln!(text, "| {mark} | {} | `{}` | {} | {measured} | {note} |", c.variant, c.name, c.limit)
            .expect("a String takes all");
    }
    text
}
