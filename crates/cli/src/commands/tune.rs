//! `danki tune`: the memory size, measured.

use super::bench;
use super::choice;
use crate::args::Tune;
use crate::exit::{Exit, Failure};
use crate::session::{Session, Speed};
use crate::terminal;
use danki_judge::{Optimum, Size, sizes, tuned};
use danki_lab::{Experiment, Options, Versions, single};
use danki_load::Load;
use danki_model::MemoryMb;
use danki_report::{Align, Table, number, number_or_dash, percent};
use danki_runview::Run;

/// Sweeps memory sizes and names the best.
pub fn tune(args: &Tune) -> Result<Exit, Failure> {
    let asked = experiment(args, &bench::options(&args.run, Versions::default()))?;
    let session = Session::start(Speed::for_run(&asked))?;
    let experiment = experiment(args, &bench::options(&args.run, session.interpreters.versions))?;
    let results = bench::run(&session, &experiment, &args.run)?;
    danki_runview::write_html(&results.dir)?;
    let run = Run::read(&results.dir)?;
    let sizes = sizes(&run);
    let Some(best) = tuned(&sizes) else {
        return Err(Failure::usage("no size had an invocation that found a warm env".to_owned())
            .hint("raise --count, and look at the run's errors"));
    };
    terminal::print(&table(&sizes, best));
    for caveat in &run.summary.caveats {
        terminal::note(&format!("caveat: {caveat}"));
    }
    terminal::print(&format!("report: {}\n", results.dir.join("report.html").display()));
    Ok(Exit::Fine)
}

fn experiment(args: &Tune, options: &Options) -> Result<Experiment, Failure> {
    if args.target.is_dir() {
        return Ok(single(&choice(&args.target, &args.function, &args.memory, args.count)?, options)?);
    }
    let mut experiment = Experiment::read(&bench::find(&args.target)?, options)?;
    experiment.name = format!("tune-{}", experiment.name);
    experiment.expect.clear();
    let first =
        experiment.variants.first().cloned().ok_or_else(|| Failure::usage("no variant".to_owned()))?;
    let mut variants = Vec::new();
    for mb in &args.memory {
        let mut variant = first.clone();
        variant.name = format!("{mb}mb");
        variant.function.memory = MemoryMb::try_from(*mb).map_err(|e| Failure::usage(e.to_string()))?;
        variants.push(variant);
    }
    experiment.variants = variants;
    experiment.load =
        Load::Sequence { count: if options.quick { 5 } else { args.count.max(2) }, gaps_ms: vec![0.0] };
    Ok(experiment)
}

fn table(sizes: &[Size], best: Optimum) -> String {
    let style = terminal::style();
    let mut table = Table::new(&[]);
    ["MB", "p50", "95 % interval", "p99", "init", "USD/million", "throttled"]
        .iter()
        .for_each(|title| table.column(title, Align::Right));
    table.column("best for", Align::Left);
    for (at, s) in sizes.iter().enumerate() {
        let interval = s
            .p50_interval
            .map_or("n too small".to_owned(), |[a, b]| format!("{} … {}", number(a), number(b)));
        let named = [(best.cost, "cost"), (best.speed, "speed"), (best.balanced, "both")];
        let for_what: Vec<&str> = named.iter().filter(|(n, _)| *n == at).map(|(_, what)| *what).collect();
        table.row([
            s.memory_mb.to_string(),
            number(s.p50),
            interval,
            number(s.p99),
            number_or_dash(s.init),
            format!("{:.3}", s.usd_per_million),
            percent(s.throttled),
            for_what.join(", "),
        ]);
    }
    let text = "Warm Durations in ms; init apart; cost of warm invocations, requests included. Speed: the smallest size within \
                3 % of the fastest; both: least p50 × cost.";
    format!("{}{}\n", table.render(&style), style.fold(text, 0))
}
