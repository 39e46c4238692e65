//! The keys of `[load]`: read, checked against each other and their ranges, told in the user's words when wrong.

use crate::{Arrivals, Load, Step, Stop};
use serde::Deserialize;

/// Invocations of one variant and repetition that may be asked for.
const COUNT_MAX: u32 = 1_000_000;
/// Longest load or gap: a day.
const SECONDS_MAX: f64 = 86_400.0;
/// Clients of a closed loop, and invocations under way at once in an open one.
const CONCURRENT_MAX: u32 = 1_000;
/// Steps of one variant, repetitions of them included.
const STEPS_MAX: f64 = 10_000.0;
/// Invocations of one step, so that their sum cannot overflow.
const STEP_INVOKE_MAX: u32 = 100_000;
/// Arrivals per second of an open loop.
const RATE_MAX: f64 = 10_000.0;

/// A load that cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadLoad {
    /// The kind is not known.
    #[error("load kind {0:?} is not one of \"sequence\", \"steps\", \"closed\", \"open\"")]
    Kind(String),
    /// A key belongs to another kind.
    #[error("a {kind} load has no key {key:?}")]
    Foreign {
        /// The kind asked for.
        kind: &'static str,
        /// The key that does not belong there.
        key: &'static str,
    },
    /// A value is out of range.
    #[error("{key} = {value} is outside {range}")]
    Range {
        /// Which key.
        key: &'static str,
        /// Its value.
        value: f64,
        /// What is allowed.
        range: String,
    },
    /// Exactly one of two keys must be given.
    #[error("a {kind} load needs either {one} or {other}")]
    Either {
        /// The kind asked for.
        kind: &'static str,
        /// One key.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A step says nothing, too much, or nothing that is known.
    #[error("step {0} is not one of {{ invoke = 1 }}, {{ wait = \"65s\" }}, {{ until = \"pc-ready\" }}")]
    Step(usize),
    /// Steps must lead to an invocation.
    #[error("a steps load needs steps, and the last of them must be {{ invoke = .. }}")]
    NoSteps,
    /// A key is missing.
    #[error("an open load needs rate_per_s")]
    NoRate,
}

/// The keys of all kinds, so that a mistake is told in the user's words.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    kind: String,
    count: Option<u32>,
    gap_ms: Option<f64>,
    gaps_ms: Option<Vec<f64>>,
    repeat: Option<u32>,
    steps: Option<Vec<StepKeys>>,
    clients: Option<u32>,
    invocations: Option<u32>,
    seconds: Option<f64>,
    rate_per_s: Option<f64>,
    arrivals: Option<Arrivals>,
    max_in_flight: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepKeys {
    invoke: Option<u32>,
    wait: Option<String>,
    until: Option<String>,
}

#[derive(Deserialize)]
#[serde(try_from = "Keys")]
pub struct Checked(Load);

impl From<Checked> for Load {
    fn from(checked: Checked) -> Load {
        checked.0
    }
}

impl TryFrom<Keys> for Checked {
    type Error = BadLoad;
    fn try_from(keys: Keys) -> Result<Checked, BadLoad> {
        match keys.kind.as_str() {
            "sequence" => keys.sequence(),
            "steps" => keys.steps(),
            "closed" => keys.closed(),
            "open" => keys.open(),
            _ => Err(BadLoad::Kind(keys.kind)),
        }
        .map(Checked)
    }
}

impl Keys {
    fn sequence(self) -> Result<Load, BadLoad> {
        self.only("sequence", &["count", "gap_ms", "gaps_ms", "repeat"])?;
        let either = BadLoad::Either { kind: "sequence", one: "count", other: "gaps_ms" };
        let gaps_ms = match (&self.gaps_ms, self.gap_ms) {
            (Some(_), Some(_)) => {
                return Err(BadLoad::Either { kind: "sequence", one: "gap_ms", other: "gaps_ms" });
            }
            (Some(gaps), None) => gaps.clone(),
            (None, gap) => vec![gap.unwrap_or(0.0)],
        };
        for gap in &gaps_ms {
            within("gap_ms", *gap, 0.0, SECONDS_MAX * 1_000.0)?;
        }
        let count = match (self.count, self.gaps_ms) {
            (Some(count), None) if self.repeat.is_none() => count,
            (None, Some(gaps)) => {
                let n = u32::try_from(gaps.len()).unwrap_or(u32::MAX);
                n.saturating_mul(self.repeat.unwrap_or(1)).saturating_add(1)
            }
            _ => return Err(either),
        };
        if gaps_ms.is_empty() {
            return Err(either);
        }
        Ok(Load::Sequence { count: within_count("count", count, COUNT_MAX)?, gaps_ms })
    }

    fn steps(self) -> Result<Load, BadLoad> {
        self.only("steps", &["steps", "repeat"])?;
        let repeat = within_count("repeat", self.repeat.unwrap_or(1), COUNT_MAX)?;
        let keys = self.steps.unwrap_or_default();
        let once: Result<Vec<Step>, BadLoad> =
            keys.iter().enumerate().map(|(n, step)| step.read(n + 1)).collect();
        let once = once?;
        let all = once.len().saturating_mul(repeat as usize);
        within("steps", all as f64, 1.0, STEPS_MAX).map_err(|_| BadLoad::NoSteps)?;
        let Some(Step::Invoke(_)) = once.last() else { return Err(BadLoad::NoSteps) };
        let load = Load::Steps { steps: once.iter().copied().cycle().take(all).collect() };
        within_count("invoke, summed", load.count().unwrap_or(0), COUNT_MAX)?;
        Ok(load)
    }

    fn closed(self) -> Result<Load, BadLoad> {
        self.only("closed", &["clients", "invocations", "seconds"])?;
        let clients = within_count("clients", self.clients.unwrap_or(1), CONCURRENT_MAX)?;
        Ok(Load::Closed { clients, stop: stop("closed", "invocations", self.invocations, self.seconds)? })
    }

    fn open(self) -> Result<Load, BadLoad> {
        self.only("open", &["rate_per_s", "count", "seconds", "arrivals", "max_in_flight"])?;
        let rate_per_s = within("rate_per_s", self.rate_per_s.ok_or(BadLoad::NoRate)?, 0.001, RATE_MAX)?;
        let stop = stop("open", "count", self.count, self.seconds)?;
        let max_in_flight = within_count("max_in_flight", self.max_in_flight.unwrap_or(100), CONCURRENT_MAX)?;
        let load =
            Load::Open { rate_per_s, stop, arrivals: self.arrivals.unwrap_or_default(), max_in_flight };
        within_count("rate_per_s · seconds", load.count().unwrap_or(0), COUNT_MAX)?;
        Ok(load)
    }

    fn only(&self, kind: &'static str, allowed: &[&str]) -> Result<(), BadLoad> {
        let given = [
            ("count", self.count.is_some()),
            ("gap_ms", self.gap_ms.is_some()),
            ("gaps_ms", self.gaps_ms.is_some()),
            ("repeat", self.repeat.is_some()),
            ("steps", self.steps.is_some()),
            ("clients", self.clients.is_some()),
            ("invocations", self.invocations.is_some()),
            ("seconds", self.seconds.is_some()),
            ("rate_per_s", self.rate_per_s.is_some()),
            ("arrivals", self.arrivals.is_some()),
            ("max_in_flight", self.max_in_flight.is_some()),
        ];
        match given.into_iter().find(|(key, is_given)| *is_given && !allowed.contains(key)) {
            Some((key, _)) => Err(BadLoad::Foreign { kind, key }),
            None => Ok(()),
        }
    }
}

impl StepKeys {
    fn read(&self, n: usize) -> Result<Step, BadLoad> {
        match (self.invoke, &self.wait, self.until.as_deref()) {
            (Some(count), None, None) => Ok(Step::Invoke(within_count("invoke", count, STEP_INVOKE_MAX)?)),
            (None, Some(text), None) => {
                let seconds = seconds(text).ok_or(BadLoad::Step(n))?;
                Ok(Step::WaitMs(within("wait, s", seconds, 0.0, SECONDS_MAX)? * 1_000.0))
            }
            (None, None, Some("pc-ready")) => Ok(Step::UntilPcReady),
            _ => Err(BadLoad::Step(n)),
        }
    }
}

/// `500ms`, `65s`, `2m` in seconds; none if it is no such time.
pub fn seconds(text: &str) -> Option<f64> {
    let (number, factor) = [("ms", 0.001), ("s", 1.0), ("m", 60.0)]
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    number.trim().parse::<f64>().ok().map(|n| n * factor)
}

fn stop(
    kind: &'static str,
    key: &'static str,
    count: Option<u32>,
    seconds: Option<f64>,
) -> Result<Stop, BadLoad> {
    match (count, seconds) {
        (Some(count), None) => Ok(Stop::Count(within_count(key, count, COUNT_MAX)?)),
        (None, Some(seconds)) => Ok(Stop::Seconds(within("seconds", seconds, 0.001, SECONDS_MAX)?)),
        _ => Err(BadLoad::Either { kind, one: key, other: "seconds" }),
    }
}

fn within(key: &'static str, value: f64, min: f64, max: f64) -> Result<f64, BadLoad> {
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(BadLoad::Range { key, value, range: format!("{min} to {max}") })
    }
}

fn within_count(key: &'static str, value: u32, max: u32) -> Result<u32, BadLoad> {
    within(key, f64::from(value), 1.0, f64::from(max)).map(|_| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_load_reads_or_says_why_not() {
        let check = |keys: serde_json::Value, expect: Result<Load, &str>| {
            let got = serde_json::from_value::<Load>(keys.clone()).map_err(|e| e.to_string());
            match (got, expect) {
                (Ok(got), Ok(expect)) => assert_eq!(got, expect, "{keys}"),
                (Err(got), Err(expect)) => assert!(got.contains(expect), "{keys}: {got}"),
                (got, expect) => panic!("{keys}: {got:?}, not {expect:?}"),
            }
        };
        let sequence = |count, gaps_ms: &[f64]| Ok(Load::Sequence { count, gaps_ms: gaps_ms.to_vec() });
        check(json!({"kind": "sequence", "count": 5}), sequence(5, &[0.0]));
        check(json!({"kind": "sequence", "count": 5, "gap_ms": 10}), sequence(5, &[10.0]));
        check(json!({"kind": "sequence", "gaps_ms": [30, 50], "repeat": 2}), sequence(5, &[30.0, 50.0]));
        check(json!({"kind": "sequence"}), Err("either count or gaps_ms"));
        check(json!({"kind": "sequence", "count": 3, "gaps_ms": [1]}), Err("either count or gaps_ms"));
        check(json!({"kind": "sequence", "gaps_ms": []}), Err("either count or gaps_ms"));
        check(json!({"kind": "sequence", "count": 0}), Err("count = 0 is outside 1 to 1000000"));
        check(json!({"kind": "sequence", "count": 3, "gap_ms": -1}), Err("gap_ms = -1 is outside"));
        check(json!({"kind": "sequence", "count": 3, "clients": 1}), Err("no key \"clients\""));
        let steps =
            json!([{"until": "pc-ready"}, {"invoke": 2}, {"wait": "65s"}, {"wait": "500 ms"}, {"invoke": 1}]);
        let read = [
            Step::UntilPcReady,
            Step::Invoke(2),
            Step::WaitMs(65_000.0),
            Step::WaitMs(500.0),
            Step::Invoke(1),
        ];
        check(json!({"kind": "steps", "steps": steps}), Ok(Load::Steps { steps: read.to_vec() }));
        let twice = json!({"kind": "steps", "steps": [{"wait": "1m"}, {"invoke": 1}], "repeat": 2});
        let read = [Step::WaitMs(60_000.0), Step::Invoke(1), Step::WaitMs(60_000.0), Step::Invoke(1)];
        check(twice, Ok(Load::Steps { steps: read.to_vec() }));
        check(json!({"kind": "steps"}), Err("needs steps"));
        check(json!({"kind": "steps", "steps": [{"invoke": 1}, {"wait": "1s"}]}), Err("the last of them"));
        for step in
            [json!({}), json!({"wait": "1h"}), json!({"until": "READY"}), json!({"invoke": 1, "wait": "1s"})]
        {
            check(json!({"kind": "steps", "steps": [step]}), Err("step 1 is not one of"));
        }
        check(json!({"kind": "steps", "steps": [{"invoke": 1}], "repeat": 20_000}), Err("needs steps"));
        check(json!({"kind": "steps", "steps": [{"invoke": 1}], "gap_ms": 1}), Err("no key \"gap_ms\""));
        let closed = Load::Closed { clients: 4, stop: Stop::Count(8) };
        check(json!({"kind": "closed", "clients": 4, "invocations": 8}), Ok(closed));
        check(json!({"kind": "closed"}), Err("either invocations or seconds"));
        check(json!({"kind": "open", "count": 8}), Err("needs rate_per_s"));
        check(json!({"kind": "open", "rate_per_s": 1e4, "seconds": 1e4}), Err("outside 1 to 1000000"));
        check(json!({"kind": "burst"}), Err("not one of"));
        check(json!({"kind": "open", "rte": 1}), Err("unknown field"));
    }
}
