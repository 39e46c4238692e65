//! `danki bench --verify-advice`: remedies that danki can apply by itself, run as variants beside what they are to improve.

use crate::args::RunOptions;
use crate::exit::Failure;
use crate::session::{RunInto, Session};
use crate::{progress, terminal};
use danki_lab::{Experiment, Results, Variant};
use danki_model::MemoryMb;
use danki_record::{Change, Finding, Summary};
use danki_report::{Align, Table, number_or_dash};
use serde::Serialize;

/// A finding's remedy as a variant.
struct Trial {
    /// What it is to improve.
    base: String,
    /// The variant with the remedy.
    variant: Variant,
    cause: String,
    predicted_ms: f64,
}

/// Remedies tried at most.
const TRIALS: usize = 8;

/// Runs each remedy beside its variant, and prints predicted against measured savings at the median.
pub fn verify(
    session: &Session,
    experiment: &Experiment,
    results: &Results,
    options: &RunOptions,
) -> Result<(), Failure> {
    let trials: Vec<Trial> =
        results.summary.findings.iter().filter_map(|f| trial(experiment, f)).take(TRIALS).collect();
    if trials.is_empty() {
        terminal::print("verify-advice: no finding has a remedy that danki can apply by itself\n");
        return Ok(());
    }
    let mut again = experiment.clone();
    again.name = format!("{}-advice", experiment.name);
    again.expect.clear();
    again.variants.retain(|v| trials.iter().any(|t| t.base == v.name));
    again.variants.extend(trials.iter().map(|t| t.variant.clone()));
    let dir = results.dir.join("advice");
    let into = RunInto { dir, force: options.force, keep_raw: false };
    let measured = session.run(&again, into, progress::watcher(&again.name))?;
    danki_runview::write_html(&measured.dir)?;
    let tried: Vec<Tried> = trials.iter().map(|trial| Tried::of(trial, &measured.summary)).collect();
    let path = results.dir.join("advice.json");
    let json = serde_json::to_string_pretty(&tried).expect("plain data with string keys");
    std::fs::write(&path, json)
        .map_err(|e| Failure::machine(format!("cannot write {}: {e}", path.display())))?;
    terminal::print(&table(&tried));
    Ok(())
}

/// What a remedy was said to save, and what it saved: medians of Duration, ms. Absent: nothing ran.
#[derive(Debug, Serialize)]
struct Tried {
    variant: String,
    cause: String,
    remedy: String,
    before_ms: Option<f64>,
    after_ms: Option<f64>,
    predicted_ms: f64,
    measured_ms: Option<f64>,
}

impl Tried {
    fn of(trial: &Trial, summary: &Summary) -> Tried {
        let p50 = |name: &str| summary.variants.iter().find(|v| v.name == name)?.duration_ms.p50;
        let (before_ms, after_ms) = (p50(&trial.base), p50(&trial.variant.name));
        Tried {
            variant: trial.base.clone(),
            cause: trial.cause.clone(),
            remedy: trial.variant.name.clone(),
            before_ms,
            after_ms,
            predicted_ms: trial.predicted_ms,
            measured_ms: before_ms.zip(after_ms).map(|(before, after)| before - after),
        }
    }
}

fn trial(experiment: &Experiment, finding: &Finding) -> Option<Trial> {
    let remedy = finding.remedy.as_ref()?;
    let base = finding.variant.clone()?;
    let mut variant = experiment.variants.iter().find(|v| v.name == base)?.clone();
    let what = match remedy.change.as_ref()? {
        Change::Memory { mb } => {
            variant.function.memory = MemoryMb::try_from(*mb).ok()?;
            format!("{mb}mb")
        }
        Change::Environment { name, value } => {
            variant.function.environment.insert(name.clone(), value.clone());
            "env".to_owned()
        }
    };
    variant.name = format!("{base}-{what}");
    Some(Trial { base, variant, cause: finding.kind.clone(), predicted_ms: remedy.saves_ms? })
}

fn table(tried: &[Tried]) -> String {
    let style = terminal::style();
    let mut table = Table::new(&[("variant", Align::Left), ("cause", Align::Left), ("remedy", Align::Left)]);
    ["before, ms", "after, ms", "predicted saving", "measured", "predicted / measured"]
        .iter()
        .for_each(|title| table.column(title, Align::Right));
    for t in tried {
        let ratio = t.measured_ms.filter(|saved| *saved > 0.0).map(|saved| t.predicted_ms / saved);
        let mut cells = vec![t.variant.clone(), t.cause.clone(), t.remedy.clone()];
        cells.extend(
            [t.before_ms, t.after_ms, Some(t.predicted_ms), t.measured_ms, ratio].map(number_or_dash),
        );
        table.row(cells);
    }
    format!(
        "\n{}\n{}",
        style.bold("Advice, predicted and measured (medians of Duration, ms)"),
        table.render(&style)
    )
}
