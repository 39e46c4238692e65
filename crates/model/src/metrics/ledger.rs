//! Values of metrics by subject and minute.

use super::{Distribution, Metric, RESOLUTION_S, Subject};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Minutes kept of each metric of a subject: a day; the oldest go first. CloudWatch keeps 15 days of them.
const MINUTES: usize = 24 * 60;
/// Subjects kept; the one that was silent for longest goes first.
const SUBJECTS: usize = 10_000;

/// What was recorded. Time is an argument, ms of the epoch.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    subjects: BTreeMap<Subject, Kept>,
}

/// All that is known of one subject.
#[derive(Clone, Debug, Default)]
struct Kept {
    last_minute: u64,
    metrics: BTreeMap<Metric, VecDeque<(u64, Distribution)>>,
}

/// A stretch of time and the values in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its beginning, s of the epoch.
    pub at_s: u64,
    /// Never of nothing.
    pub values: Distribution,
}

impl Ledger {
    /// Records values of a subject.
    pub fn record(&mut self, at_ms: u64, subject: &Subject, values: &[(Metric, f64)]) {
        if !self.subjects.contains_key(subject) {
            self.make_room();
            self.subjects.insert(subject.clone(), Kept::default());
        }
        let kept = self.subjects.get_mut(subject).expect("it was inserted above");
        let minute = at_ms / 1_000 / RESOLUTION_S;
        kept.last_minute = kept.last_minute.max(minute);
        for (metric, value) in values {
            let minutes = kept.metrics.entry(*metric).or_default();
            // A clock that was set back adds to the newest minute.
            if minutes.back().is_none_or(|(newest, _)| *newest < minute) {
                minutes.push_back((minute, Distribution::default()));
            }
            minutes.back_mut().expect("it was pushed above").1.add(*value);
            if minutes.len() > MINUTES {
                minutes.pop_front();
            }
        }
    }

    /// Every metric under every set of dimensions that shows it, of subjects that were heard of since then, s of the epoch.
    pub fn metrics(&self, since_s: u64) -> BTreeSet<(Metric, Subject)> {
        let mut all = BTreeSet::new();
        let heard = |kept: &Kept| (kept.last_minute + 1) * RESOLUTION_S > since_s;
        for (subject, kept) in self.subjects.iter().filter(|(_, kept)| heard(kept)) {
            for metric in kept.metrics.keys() {
                if metric.is_gauge() {
                    all.insert((*metric, subject.clone()));
                } else {
                    all.extend(subject.widened().into_iter().map(|wide| (*metric, wide)));
                }
            }
        }
        all
    }

    /// Points that begin in `from_s..to_s`, each `period_s` long and beginning at a multiple of it; oldest first. A period below the
    /// resolution is a minute.
    pub fn points(
        &self,
        metric: Metric,
        subject: &Subject,
        from_s: u64,
        to_s: u64,
        period_s: u64,
    ) -> Vec<Point> {
        let period_s = period_s.max(RESOLUTION_S).next_multiple_of(RESOLUTION_S);
        let mut points: BTreeMap<u64, Distribution> = BTreeMap::new();
        for minutes in self.kept(metric, subject) {
            for (minute, values) in minutes {
                let at_s = minute * RESOLUTION_S / period_s * period_s;
                if (from_s..to_s).contains(&at_s) {
                    *points.entry(at_s).or_default() += values;
                }
            }
        }
        points.into_iter().map(|(at_s, values)| Point { at_s, values }).collect()
    }

    /// All values that are kept of a metric.
    pub fn total(&self, metric: Metric, subject: &Subject) -> Distribution {
        let mut total = Distribution::default();
        self.kept(metric, subject).flatten().for_each(|(_, values)| total += values);
        total
    }

    fn kept<'l>(
        &'l self,
        metric: Metric,
        subject: &'l Subject,
    ) -> impl Iterator<Item = &'l VecDeque<(u64, Distribution)>> {
        let fits = move |other: &Subject| {
            if metric.is_gauge() { subject == other } else { subject.includes(other) }
        };
        let fitting = self.subjects.iter().filter(move |(other, _)| fits(other));
        fitting.filter_map(move |(_, kept)| kept.metrics.get(&metric))
    }

    fn make_room(&mut self) {
        if self.subjects.len() >= SUBJECTS {
            let silent = self.subjects.iter().min_by_key(|(_, kept)| kept.last_minute);
            let silent = silent.map(|(subject, _)| subject.clone());
            silent.and_then(|subject| self.subjects.remove(&subject));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two functions over three minutes.
    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        let (live, one) = (Subject::invoked("f", Some("live"), "1"), Subject::invoked("f", Some("1"), "1"));
        ledger.record(60_000, &live, &[(Metric::Invocations, 1.0), (Metric::Duration, 10.0)]);
        ledger.record(61_000, &one, &[(Metric::Invocations, 1.0), (Metric::Duration, 30.0)]);
        ledger.record(125_000, &one, &[(Metric::Invocations, 1.0), (Metric::Duration, 50.0)]);
        ledger.record(190_000, &Subject::invoked("g", None, "$LATEST"), &[(Metric::Invocations, 1.0)]);
        ledger.record(61_000, &Subject::function("f"), &[(Metric::ConcurrentExecutions, 2.0)]);
        ledger.record(61_000, &Subject::default(), &[(Metric::ConcurrentExecutions, 7.0)]);
        ledger
    }

    #[test]
    fn counts_add_up_over_what_is_left_open() {
        let check = |dimensions: &[(&str, &str)], expect: &[(u64, u64)]| {
            let subject = Subject::of(dimensions.iter().copied()).expect("Lambda's dimensions");
            let points = ledger().points(Metric::Invocations, &subject, 0, 1_000, 60);
            let counts: Vec<(u64, u64)> = points.iter().map(|p| (p.at_s, p.values.count)).collect();
            assert_eq!(counts, expect, "{dimensions:?}");
        };
        check(&[], &[(60, 2), (120, 1), (180, 1)]);
        check(&[("FunctionName", "f")], &[(60, 2), (120, 1)]);
        check(&[("FunctionName", "f"), ("Resource", "f:1")], &[(60, 1), (120, 1)]);
        check(&[("FunctionName", "f"), ("Resource", "f:live"), ("ExecutedVersion", "1")], &[(60, 1)]);
        check(&[("FunctionName", "h")], &[]);
    }

    #[test]
    fn gauges_do_not() {
        let max = |subject| ledger().total(Metric::ConcurrentExecutions, &subject).max;
        assert_eq!((max(Subject::default()), max(Subject::function("f"))), (7.0, 2.0));
        assert!(
            ledger().metrics(240).is_empty()
                && ledger().metrics(239).iter().all(|(_, s)| *s != Subject::function("f"))
        );
        let shown = ledger().metrics(0);
        assert!(shown.contains(&(Metric::ConcurrentExecutions, Subject::default())));
        assert!(shown.contains(&(Metric::Duration, Subject::default())));
        assert!(!shown.contains(&(Metric::ConcurrentExecutions, Subject::function("g"))));
    }

    #[test]
    fn periods_and_limits_of_time_hold() {
        let f = Subject::function("f");
        let points = |from_s, to_s, period_s| ledger().points(Metric::Duration, &f, from_s, to_s, period_s);
        let [all] = &points(0, 1_000, 300)[..] else { panic!("one point of five minutes") };
        assert_eq!((all.at_s, all.values.count, all.values.sum, all.values.max), (0, 3, 90.0, 50.0));
        assert_eq!(points(0, 120, 60).len(), 1);
        assert_eq!(points(61, 180, 60).len(), 1, "a point belongs to its beginning");
        assert_eq!(points(0, 1_000, 1).len(), 2, "a minute is the least");
    }

    #[test]
    fn it_is_bounded() {
        let mut ledger = Ledger::default();
        for minute in 0..MINUTES as u64 + 5 {
            ledger.record(minute * 60_000, &Subject::default(), &[(Metric::Errors, 0.0)]);
        }
        assert_eq!(ledger.total(Metric::Errors, &Subject::default()).count, MINUTES as u64);
        for n in 0..SUBJECTS as u64 + 5 {
            ledger.record(
                (10_000 + n) * 60_000,
                &Subject::function(&n.to_string()),
                &[(Metric::Errors, 0.0)],
            );
        }
        assert_eq!(ledger.subjects.len(), SUBJECTS);
        assert!(!ledger.subjects.contains_key(&Subject::default()), "the silent one is gone");
    }
}
