//! A run against a budget: a list of checks, and how other tools want to read it.

use crate::budget::Budget;
use crate::compare::{Measure, by_env, question};
use crate::tune::usd_per_million;
use danki_record::VariantSummary;
use danki_runview::Run;
use danki_stats::{Verdict, compare};
use std::fmt::Write as _;

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
    /// It is kept.
    pub kept: bool,
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
    Check { variant: v.name.clone(), name, limit, measured, kept: measured.is_some_and(|m| m <= limit), note }
}

/// Missed only if it is slower beyond the limit and beyond the noise.
fn regression(run: &Run, v: &VariantSummary, baseline: Option<&Run>, limit: f64) -> Check {
    let measure = Measure::DurationP50;
    let answer = baseline.and_then(|old| {
        let (a, b) = (by_env(old, &v.name, measure), by_env(run, &v.name, measure));
        compare(&a, &b, &question(measure, run.manifest.seed))
    });
    let (measured, kept, note) = match answer {
        None if baseline.is_none() => (None, false, "no baseline was given".to_owned()),
        None => (None, false, "the baseline has no such variant".to_owned()),
        Some(c) => {
            let pct = (c.ratio - 1.0) * 100.0;
            let missed = c.verdict == Verdict::Slower && pct > limit;
            let interval =
                format!("{}, ratio {:.3} ({:.3} to {:.3})", c.verdict.words(), c.ratio, c.low, c.high);
            (Some(pct), !missed, interval)
        }
    };
    Check { variant: v.name.clone(), name: "regression_pct", limit, measured, kept, note }
}

/// JUnit's XML, one test case per check.
pub fn junit(name: &str, checks: &[Check]) -> String {
    let missed = checks.iter().filter(|c| !c.kept).count();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{missed}\">\n",
        xml_text(name),
        checks.len()
    );
    for c in checks {
        let head = format!("<testcase classname=\"{}\" name=\"{}\"", xml_text(&c.variant), c.name);
        let tail = if c.kept {
            "/>\n".to_owned()
        } else {
            format!("><failure message=\"{}\"/></testcase>\n", xml_text(&words(c)))
        };
        write!(xml, "{head}{tail}").expect("a String takes all");
    }
    xml + "</testsuite>\n</testsuites>\n"
}

fn words(c: &Check) -> String {
    let measured = c.measured.map_or("nothing measured".to_owned(), |m| format!("{m:.3}"));
    let note = if c.note.is_empty() { String::new() } else { format!(" ({})", c.note) };
    format!("{measured} > {}{note}", c.limit)
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
    let missed = checks.iter().filter(|c| !c.kept).count();
    let verdict = if missed == 0 { "all kept".to_owned() } else { format!("**{missed} missed**") };
    let mut text = format!("### danki: {name}: {} limits, {verdict}\n\n", checks.len());
    text.push_str("| | variant | limit | at most | measured | |\n|---|---|---|---:|---:|---|\n");
    for c in checks {
        let mark = if c.kept { "✓" } else { "✗" };
        let measured = c.measured.map_or("–".to_owned(), |m| format!("{m:.3}"));
        let note = c.note.replace('|', "\\|");
        writeln!(text, "| {mark} | {} | `{}` | {} | {measured} | {note} |", c.variant, c.name, c.limit)
            .expect("a String takes all");
    }
    text
}
