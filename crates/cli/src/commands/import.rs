//! `danki import aws-logs`: what AWS itself recorded, beside a run.

use super::runs;
use crate::args::Import;
use crate::exit::{Exit, Failure};
use crate::terminal;
use danki_judge::{Validity, read_aws_logs, validity};
use danki_report::{Align, Table, number};
use danki_runview::Run;
use danki_stats::Comparison;
use std::fs;

/// Prints ratios danki / AWS.
pub fn import(args: &Import) -> Result<Exit, Failure> {
    let Import::AwsLogs { file, run } = args;
    let text = fs::read_to_string(file)
        .map_err(|e| Failure::usage(format!("cannot read {}: {e}", file.display())))?;
    let (reports, others) = read_aws_logs(&text);
    if reports.is_empty() {
        return Err(Failure::usage(format!(
            "{} has no REPORT line and no platform.report record",
            file.display()
        ))
        .hint("`aws logs tail /aws/lambda/NAME --since 1d > FILE` writes such a file"));
    }
    let run = Run::read(&runs::find(run)?)?;
    terminal::note(&format!("{} reports; {others} other lines", reports.len()));
    let rows = validity(&run, &reports);
    if rows.iter().all(|r| r.n_aws == 0) {
        let mut sizes: Vec<u32> = reports.iter().map(|r| r.memory_mb).collect();
        sizes.sort_unstable();
        sizes.dedup();
        return Err(Failure::usage(format!(
            "AWS's reports are of {sizes:?} MB, and no variant of the run is"
        ))
        .hint("run the function at that size: danki bench DIR --memory MB"));
    }
    terminal::print(&table(&rows));
    Ok(Exit::Fine)
}

fn table(rows: &[Validity]) -> String {
    let mut table = Table::new(&[("variant", Align::Left), ("what", Align::Left)]);
    ["MB", "AWS n", "AWS, ms", "danki, ms", "danki / AWS", "99 % interval"]
        .iter()
        .for_each(|title| table.column(title, Align::Right));
    for r in rows {
        for (what, answer) in [("Duration p50, warm", &r.duration), ("Init Duration p50", &r.init)] {
            let mut cells =
                vec![r.variant.clone(), what.to_owned(), r.memory_mb.to_string(), r.n_aws.to_string()];
            cells.extend(numbers(answer.as_ref()));
            table.row(cells);
        }
    }
    table.render(&terminal::style())
}

fn numbers(answer: Option<&Comparison>) -> Vec<String> {
    match answer {
        Some(c) => {
            vec![number(c.a), number(c.b), format!("{:.2}", c.ratio), format!("{:.2} … {:.2}", c.low, c.high)]
        }
        None => vec!["–".to_owned(); 4],
    }
}
