//! How much of this machine's CPU time its hypervisor gave to others, from a file that stays open.

use rustix::io::pread;
use rustix::param::clock_ticks_per_second;
use std::fs::File;

/// The lines of some hundred CPUs; what follows them is not needed.
const BUFFER: usize = 16 * 1024;

/// Time that some CPU was withheld. The kernel tells it in steps of 10 ms.
#[derive(Debug)]
pub struct Stolen {
    stat: File,
    /// Ticks of each CPU so far.
    ticks: Vec<u64>,
    total_ns: u64,
}

impl Stolen {
    /// Begins at 0. `None` where the kernel does not say.
    pub fn watch() -> Option<Stolen> {
        let mut stolen = Stolen { stat: File::open("/proc/stat").ok()?, ticks: Vec::new(), total_ns: 0 };
        stolen.ticks = stolen.read()?;
        Some(stolen)
    }

    /// So far, ns: of each span between two calls, what the CPU lost that lost most. A thread runs on one.
    pub fn total_ns(&mut self) -> u64 {
        if let Some(now) = self.read() {
            let most = now.iter().zip(&self.ticks).map(|(now, then)| now.saturating_sub(*then)).max();
            self.total_ns += most.unwrap_or(0) * (1_000_000_000 / clock_ticks_per_second().max(1));
            self.ticks = now;
        }
        self.total_ns
    }

    fn read(&self) -> Option<Vec<u64>> {
        let mut buffer = vec![0; BUFFER];
        let length = pread(&self.stat, &mut buffer[..], 0).ok()?;
        Some(parse(std::str::from_utf8(&buffer[..length]).ok()?))
    }
}

/// Of each CPU: user nice system idle iowait irq softirq *steal*.
fn parse(stat: &str) -> Vec<u64> {
    let cpus = stat.lines().skip(1).take_while(|line| line.starts_with("cpu"));
    cpus.map(|line| line.split_whitespace().nth(8).and_then(|n| n.parse().ok()).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eighth_number_of_each_cpu_is_what_it_lost() {
        let stat = "cpu  9 9 9 9 9 9 9 99 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4 5 6 7 80 0 0\nintr 1\n";
        assert_eq!(parse(stat), [8, 80]);
        assert_eq!(parse("cpu  1 2\ncpu0 1 2\n"), [0]);
        assert_eq!(parse(""), [0; 0]);
    }

    #[test]
    fn it_only_grows() {
        let Some(mut stolen) = Stolen::watch() else { return };
        let first = stolen.total_ns();
        assert!(stolen.total_ns() >= first);
    }
}
