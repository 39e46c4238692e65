//! The whole report.

use crate::style::Style;
use crate::table::{Align, Table, number, number_or_dash};
use crate::{invocations, variants};
use danki_lab::Results;
use danki_record::{Expectation, Finding, Summary};
use std::fmt::Write as _;

/// A run as text.
pub fn text(results: &Results, style: &Style) -> String {
    let summary = &results.summary;
    let mut out = String::new();
    out.push_str(&style.bold(&summary.name));
    if !results.description.is_empty() {
        out.push_str(&format!(" – {}", results.description));
    }
    out.push('\n');
    out.push_str(&style.faint(&style.fold(&set_up(results), 0)));
    out.push('\n');
    let mut section = |title: &str, body: Option<String>| {
        if let Some(body) = body.filter(|body| !body.is_empty()) {
            write!(out, "\n{}\n{body}", style.bold(title)).expect("a String takes all");
        }
    };
    section("Invocations", (!results.rows.is_empty()).then(|| invocations::table(results, style)));
    section("Variants (Duration, ms)", Some(variants::durations(summary, style)));
    section(
        "Requests (dispatch to response, ms, by percentage served, as ab prints them)",
        variants::requests(summary, style),
    );
    section("Connections to the database", variants::databases(summary, style));
    section("Calls", variants::calls(summary, style));
    section(
        "Where the time went (medians; a median of sums is not the sum of medians)",
        variants::waterfall(summary, style),
    );
    section(
        "Published and measured",
        (!summary.expect.is_empty()).then(|| expectations(&summary.expect, style)),
    );
    section("Findings", Some(sentences(summary.findings.iter().map(|f| finding(f, summary)), style)));
    section("Caveats", Some(sentences(summary.caveats.iter().cloned(), style)));
    write!(out, "\n{}\n", style.faint(&format!("run directory: {}", results.dir.display())))
        .expect("a String takes all");
    out
}

/// Published figures beside the measured ones.
pub fn expectations(expect: &[Expectation], style: &Style) -> String {
    let mut table = Table::new(&[("", Align::Left), ("figure", Align::Left)]);
    ["published", "measured", "ratio"].iter().for_each(|title| table.column(title, Align::Right));
    ["allowed", "source"].iter().for_each(|title| table.column(title, Align::Left));
    for e in expect {
        let mut cells = vec![mark(e.within).to_owned(), e.name.clone()];
        cells.extend([e.published, e.measured, e.ratio].map(number_or_dash));
        cells.extend([e.allowed.clone(), e.source.clone()]);
        table.row(cells);
    }
    let plain = table.render(style);
    let paint = |line: &str| match line.chars().next() {
        Some('✓') => line.replacen('✓', &style.good("✓"), 1),
        Some('✗') => line.replacen('✗', &style.bad("✗"), 1),
        _ => line.to_owned(),
    };
    let mut text: String = plain.lines().map(|line| paint(line) + "\n").collect();
    for (reason, names) in reasons(expect) {
        writeln!(text, "{}", style.fold(&format!("{}: {reason}", names.join(", ")), 2))
            .expect("a String takes all");
    }
    text
}

/// Why figures may differ, each reason once, in order.
fn reasons(expect: &[Expectation]) -> Vec<(&str, Vec<&str>)> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for e in expect.iter().filter(|e| !e.reason.is_empty()) {
        match reasons.iter_mut().find(|(reason, _)| *reason == e.reason) {
            Some((_, names)) => names.push(&e.name),
            None => reasons.push((&e.reason, vec![&e.name])),
        }
    }
    reasons
}

fn mark(within: bool) -> &'static str {
    if within { "✓" } else { "✗" }
}

fn sentences(texts: impl Iterator<Item = String>, style: &Style) -> String {
    texts.map(|text| format!("- {}\n", style.fold(&text, 2))).collect()
}

/// The sentence, with the variant that it is about where there are several, and what would change it.
fn finding(f: &Finding, summary: &Summary) -> String {
    let whose = match &f.variant {
        Some(variant) if summary.variants.len() > 1 => format!("{variant}: "),
        _ => String::new(),
    };
    let remedy = f.remedy.as_ref().map(|r| format!(" → {}{}", r.text, saving(r))).unwrap_or_default();
    format!("{whose}{}{remedy}", f.text)
}

/// What a remedy saves, where a number is known.
fn saving(r: &danki_record::Remedy) -> String {
    let ms = r.saves_ms.map(|ms| format!("{} ms per invocation", number(ms)));
    let usd = r.saves_usd_per_million.map(|usd| format!("USD {usd:.2} per million"));
    let both: Vec<String> = ms.into_iter().chain(usd).collect();
    if both.is_empty() { String::new() } else { format!(" (saves about {})", both.join(", ")) }
}

/// One line of what the numbers hang on.
fn set_up(results: &Results) -> String {
    let Summary { seed, time_scale, repetitions, .. } = &results.summary;
    let machine = &results.manifest.machine;
    let factor = match results.summary.calibration.cpu_factor {
        Some(factor) => format!("one core here = {factor:.2} Lambda vCPU"),
        None => "CPU speed not calibrated".to_owned(),
    };
    let mut parts =
        vec![format!("seed {seed}"), factor, format!("{} CPUs, Linux {}", machine.cpus, machine.kernel)];
    if *repetitions > 1 {
        parts.push(format!("{repetitions} repetitions pooled"));
    }
    if *time_scale > 1.0 {
        parts.push(format!("time ÷ {time_scale}"));
    }
    parts.push("quantiles by nearest rank".to_owned());
    if !results.summary.complete {
        parts.insert(0, "INTERRUPTED, what is there is shown".to_owned());
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests;
