//! `danki bench --verify-advice`: remedies that danki can apply by itself, run as variants beside what they are to improve.

use crate::args::RunOptions;
use crate::exit::Failure;
use crate::session::{RunInto, Session};
use crate::{progress, terminal};
use danki_lab::{Experiment, Results, Variant, fits, remedied};
use danki_record::{Change, Finding, Summary, VariantSummary};
use danki_report::{Align, Table, number_or_dash};
use serde::Serialize;

/// A finding's remedy as a variant.
struct Trial {
    /// What it is to improve.
    base: String,
    /// The variant with the remedy.
    variant: Variant,
    measure: Measure,
    cause: String,
    predicted_ms: Option<f64>,
}

/// What a saving is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Measure {
    /// Median of Duration.
    P50,
    /// Mean of what the caller waits: what a remedy takes from a few is not seen at the median.
    ClientMean,
}

impl Measure {
    fn of(change: &Change) -> Measure {
        match change {
            Change::Memory { .. } | Change::Environment { .. } | Change::KeepAlive => Measure::P50,
            Change::ProvisionedConcurrency { .. }
            | Change::NoDbProxy
            | Change::DbProxy
            | Change::Ping { .. } => Measure::ClientMean,
        }
    }

    fn take(self, variant: &VariantSummary) -> Option<f64> {
        match self {
            Measure::P50 => variant.duration_ms.p50,
            Measure::ClientMean => variant.client_ms.mean,
        }
    }
}

/// Remedies tried at most.
const TRIALS: usize = 8;

/// Runs each remedy beside its variant, and prints predicted against measured savings.
pub fn verify(
    session: &Session,
    experiment: &Experiment,
    results: &Results,
    options: &RunOptions,
) -> Result<(), Failure> {
    let all = results.summary.findings.iter().filter_map(|f| trial(experiment, f));
    let (mut trials, too_large): (Vec<Trial>, Vec<Trial>) =
        all.partition(|trial| options.force || fits(experiment, &trial.variant));
    for trial in too_large {
        terminal::note(&format!(
            "{} is not tried: this machine has too few CPUs (--force)",
            trial.variant.name
        ));
    }
    trials.truncate(TRIALS);
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

/// What a remedy was said to save, and what it saved, ms. Absent: nothing was said, or nothing ran.
#[derive(Debug, Serialize)]
struct Tried {
    variant: String,
    cause: String,
    remedy: String,
    measure: Measure,
    before_ms: Option<f64>,
    after_ms: Option<f64>,
    predicted_ms: Option<f64>,
    measured_ms: Option<f64>,
}

impl Tried {
    fn of(trial: &Trial, summary: &Summary) -> Tried {
        let of = |name: &str| trial.measure.take(summary.variants.iter().find(|v| v.name == name)?);
        let (before_ms, after_ms) = (of(&trial.base), of(&trial.variant.name));
        Tried {
            variant: trial.base.clone(),
            cause: trial.cause.clone(),
            remedy: trial.variant.name.clone(),
            measure: trial.measure,
            before_ms,
            after_ms,
            predicted_ms: trial.predicted_ms,
            measured_ms: before_ms.zip(after_ms).map(|(before, after)| before - after),
        }
    }
}

fn trial(experiment: &Experiment, finding: &Finding) -> Option<Trial> {
    let remedy = finding.remedy.as_ref()?;
    let (base, change) = (finding.variant.clone()?, remedy.change.as_ref()?);
    let variant = remedied(experiment, &base, change)?;
    let measure = Measure::of(change);
    Some(Trial { base, variant, measure, cause: finding.kind.clone(), predicted_ms: remedy.saves_ms })
}

fn table(tried: &[Tried]) -> String {
    let style = terminal::style();
    let mut table = Table::new(&[("variant", Align::Left), ("cause", Align::Left), ("remedy", Align::Left)]);
    ["before, ms", "after, ms", "predicted saving", "measured", "predicted / measured"]
        .iter()
        .for_each(|title| table.column(title, Align::Right));
    for t in tried {
        let measured = t.measured_ms.filter(|saved| *saved > 0.0);
        let ratio = t.predicted_ms.zip(measured).map(|(said, saved)| said / saved);
        let mut cells = vec![t.variant.clone(), t.cause.clone(), t.remedy.clone()];
        cells.extend([t.before_ms, t.after_ms, t.predicted_ms, t.measured_ms, ratio].map(number_or_dash));
        table.row(cells);
    }
    format!(
        "\n{}\n{}",
        style.bold("Advice, predicted and measured (ms: medians of Duration; where only some invocations gain, means of what callers waited)"),
        table.render(&style)
    )
}
