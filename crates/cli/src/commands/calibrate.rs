//! `danki calibrate`.

use crate::args::Calibrate;
use crate::exit::{Exit, Failure};
use crate::{paths, terminal};
use danki_lab::{Interpreters, write_calibration};
use danki_report::{Align, Table, number};

/// Measures, prints and keeps the speed of this machine's core.
pub fn calibrate(args: &Calibrate) -> Result<Exit, Failure> {
    let interpreters = Interpreters::find(&paths::search_path());
    let calibration = danki_lab::calibrate(&interpreters, args.runs)?;
    let path = paths::cache().map(|cache| cache.join("calibration.json"));
    if let Some(path) = &path {
        write_calibration(path, &calibration)?;
    }
    if args.json {
        let json = serde_json::to_string_pretty(&calibration).expect("plain data with string keys");
        terminal::print(&format!("{json}\n"));
        return Ok(Exit::Fine);
    }
    let mut table = Table::new(&[
        ("workload", Align::Left),
        ("here, ms", Align::Right),
        ("one Lambda vCPU, ms", Align::Right),
    ]);
    table.column("Lambda / here", Align::Right);
    table.column("source", Align::Left);
    for m in &calibration.measurements {
        let workload = format!("{} (median of {})", m.workload, m.runs);
        table.row([
            workload,
            number(m.here_ms),
            number(m.aws_ms),
            number(m.aws_ms / m.here_ms),
            m.source.clone(),
        ]);
    }
    let style = terminal::style();
    terminal::print(&table.render(&style));
    if let Some(factor) = calibration.cpu_factor {
        let kept = path.map_or_else(String::new, |path| format!(" Kept in {}.", path.display()));
        let text = format!("One core here does the work of {factor:.2} Lambda vCPUs (geometric mean).{kept}");
        terminal::print(&format!("\n{}\n", style.fold(&text, 0)));
    }
    Ok(Exit::Fine)
}
