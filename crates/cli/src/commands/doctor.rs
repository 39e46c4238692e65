//! `danki doctor` and `danki clean`.

use crate::args::Doctor;
use crate::exit::{Exit, Failure};
use crate::{paths, terminal};
use danki_lab::{Interpreters, cpus, machine, read_calibration};
use danki_sys::Controller;
use danki_sys::caps::Capabilities;
use std::path::Path;

/// Says what this machine can do, what it lacks, and what dead runs left behind.
pub fn doctor(args: &Doctor) -> Result<Exit, Failure> {
    let capabilities = danki_sys::caps::probe();
    let missing = capabilities.missing();
    let leftovers = danki_sys::leftovers();
    let exit = if can_run(&capabilities) { Exit::Fine } else { Exit::Machine };
    if args.json {
        let all = serde_json::json!({
            "machine": machine(),
            "capabilities": capabilities,
            "missing": missing,
            "leftovers": leftovers,
        });
        terminal::print(&format!("{all:#}\n"));
        return Ok(exit);
    }
    let style = terminal::style();
    let here = machine();
    let mut lines = vec![format!("Linux {}, {} CPUs ({})", here.kernel, cpus(), here.cpu_model)];
    lines.extend(interpreters());
    lines.extend(abilities(&capabilities));
    for m in &missing {
        lines.push(format!("{}: {} – {}", style.bad("missing"), m.what, m.consequence));
        lines.push(format!("  hint: {}", m.hint));
    }
    match leftovers.as_slice() {
        [] => lines.push("nothing was left behind by earlier runs".to_owned()),
        some => {
            lines.extend(some.iter().map(|what| format!("left behind: {what}")));
            lines.push("  hint: danki clean".to_owned());
        }
    }
    terminal::print(&(lines.join("\n") + "\n"));
    Ok(exit)
}

/// Without these no result would mean anything: an env, its network, its CPU share.
fn can_run(capabilities: &Capabilities) -> bool {
    let quota = capabilities.cgroups.iter().any(|c| c.controller == Controller::Cpu && c.version.is_some());
    capabilities.namespaces.works && capabilities.tun.works && quota
}

/// Removes what dead runs left behind, and says what.
pub fn clean() -> Result<Exit, Failure> {
    let removed = danki_sys::sweep();
    let text = if removed.is_empty() { "nothing to remove".to_owned() } else { removed.join("\nremoved ") };
    terminal::print(&format!("{}{text}\n", if removed.is_empty() { "" } else { "removed " }));
    Ok(Exit::Fine)
}

fn interpreters() -> Vec<String> {
    let found = Interpreters::find(&paths::search_path());
    let name = |path: &Option<std::path::PathBuf>| {
        path.as_deref().map_or("not found".to_owned(), |p| p.display().to_string())
    };
    let calibration = paths::cache().map(|cache| cache.join("calibration.json"));
    let factor =
        calibration.as_deref().and_then(|path: &Path| read_calibration(path)).and_then(|c| c.cpu_factor);
    vec![
        format!("node: {}", name(&found.node)),
        format!("python3: {}", name(&found.python)),
        format!("php: {}", name(&found.php)),
        match factor {
            Some(factor) => format!("one core here does the work of {factor:.2} Lambda vCPUs"),
            None => "CPU speed: not calibrated (danki calibrate)".to_owned(),
        },
    ]
}

/// What works, a line each; what does not is told with its consequence.
fn abilities(c: &Capabilities) -> Vec<String> {
    let versions = c.cgroups.iter().filter_map(|g| g.version.map(|v| format!("{:?} {v:?}", g.controller)));
    let trials = [
        ("namespaces", &c.namespaces),
        ("TUN", &c.tun),
        ("ext4 on loop", &c.disk),
        ("overlayfs", &c.overlay),
        ("real-time priority", &c.realtime),
    ];
    let works = trials.iter().filter(|(_, trial)| trial.works).map(|(what, _)| (*what).to_owned());
    let tick = c.hz.map_or("not known".to_owned(), |hz| format!("{hz} Hz"));
    let clock = c.clocksource.as_deref().unwrap_or("not known");
    vec![
        format!(
            "kernel tick: {tick}; clock source: {clock}, resolution {} ns; memory: {} MB",
            c.clock_resolution_ns, c.memory_mb
        ),
        format!("cgroups: {}", versions.collect::<Vec<_>>().join(", ").to_lowercase()),
        format!("works: {}", works.collect::<Vec<_>>().join(", ")),
    ]
}
