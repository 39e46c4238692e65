//! What is left to chance for a request, drawn from one seeded source per endpoint in order of arrival.

use crate::behaviour::{Endpoint, Fault, FaultKind, Timing};
use crate::kind::Kind;
use crate::{Config, Distribution};
use danki_secretstore::Effort;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Redraws of a sum that exceeds its bound, before the bound itself is taken.
const REDRAWS: u32 = 32;

/// Request ids of DynamoDB are 26 characters that differ and 26 that do not (seen in aws-sdk-js issue 862 and in any
/// support ticket).
const REQUEST_ID_TAIL: &str = "VV4KQNSO5AEMVJF66Q9ASUAAJG";

/// An endpoint's chance.
pub(crate) struct Draws {
    kind: Kind,
    timing: Timing,
    faults: Vec<Fault>,
    state: Mutex<State>,
}

struct State {
    rng: SmallRng,
    requests: u64,
    /// Requests that may still come at once, and when that was so.
    tokens: f64,
    tokens_ns: u64,
}

/// What was drawn for one request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Drawn {
    /// How long it takes at least, from the whole request read.
    pub(crate) service_ns: u64,
    /// What a key of KMS costs on top, if one is needed.
    pub(crate) kms_ns: u64,
    /// What goes wrong.
    pub(crate) fault: Option<(FaultKind, Duration)>,
    /// It is one too many in this second.
    pub(crate) over_rate: bool,
    /// `x-amzn-RequestId`.
    pub(crate) request_id: String,
}

impl Draws {
    pub(crate) fn new(config: &Config, kind: Kind, endpoint: &Endpoint) -> Draws {
        let timing = endpoint.timing(kind);
        let rng = SmallRng::seed_from_u64(config.seed);
        let tokens = timing.rate_per_s.unwrap_or_default().max(1.0);
        Draws {
            kind,
            timing,
            faults: endpoint.faults.clone(),
            state: Mutex::new(State { rng, requests: 0, tokens, tokens_ns: 0 }),
        }
    }

    pub(crate) fn next(&self, first_on_connection: bool, effort: Effort, now_ns: u64) -> Drawn {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        state.requests += 1;
        let service_ms = self.service_ms(first_on_connection, effort, &mut state.rng);
        let over_rate = self.timing.rate_per_s.is_some_and(|rate| !state.take_token(rate, now_ns));
        let (requests, rng) = (state.requests, &mut state.rng);
        let strikes = |f: &&Fault| {
            // Drawn before the other conditions: whether a fault is spared must not shift later draws.
            let hit = f.ratio.is_some_and(|ratio| rng.random::<f64>() < ratio);
            let nth = requests.checked_sub(f.after).filter(|n| *n > 0);
            nth.is_some_and(|n| hit || f.every.is_some_and(|every| n % every == 0))
        };
        let fault = self.faults.iter().find(strikes).map(|f| (f.kind, Duration::from_millis(f.stall_ms)));
        let kms = self.timing.kms.filter(|_| effort.kms);
        let kms_ns = kms.map_or(0, |kms| nanos(kms.draw_ms(&mut state.rng)));
        let request_id = match self.kind {
            Kind::DynamoDb => dynamodb_request_id(&mut state.rng),
            Kind::SecretsManager | Kind::Ssm => uuid(&mut state.rng),
        };
        Drawn { service_ns: nanos(service_ms), kms_ns, fault, over_rate, request_id }
    }

    fn service_ms(&self, first_on_connection: bool, effort: Effort, rng: &mut SmallRng) -> f64 {
        let service_time = if effort.writes { self.timing.write } else { self.timing.read };
        let Some(service_time) = service_time else {
            return self.extra_ms(first_on_connection, rng);
        };
        let bound = service_time.max_ms();
        let mut sum = || service_time.draw_ms(rng) + self.extra_ms(first_on_connection, rng);
        (0..REDRAWS)
            .map(|_| sum())
            .find(|ms| *ms <= bound || bound_excludes_extra(service_time))
            .unwrap_or(bound)
    }

    fn extra_ms(&self, first_on_connection: bool, rng: &mut SmallRng) -> f64 {
        match self.timing.first_request_extra {
            Some(extra) if first_on_connection => extra.draw_ms(rng),
            _ => 0.0,
        }
    }
}

/// A constant service time is its own bound: an extra is wanted on top.
fn bound_excludes_extra(service_time: Distribution) -> bool {
    !matches!(service_time, Distribution::LogNormal { max_ms: Some(_), .. })
}

impl State {
    /// Takes one of the requests that may come now: `rate` more of them each second, at most a second's worth at once.
    fn take_token(&mut self, rate: f64, now_ns: u64) -> bool {
        let passed = Duration::from_nanos(now_ns.saturating_sub(self.tokens_ns)).as_secs_f64();
        self.tokens = (self.tokens + passed * rate).min(rate.max(1.0));
        self.tokens_ns = self.tokens_ns.max(now_ns);
        let there = self.tokens >= 1.0;
        if there {
            self.tokens -= 1.0;
        }
        there
    }
}

fn nanos(ms: f64) -> u64 {
    Duration::from_secs_f64(ms / 1e3).as_nanos().try_into().unwrap_or(u64::MAX)
}

fn uuid(rng: &mut SmallRng) -> String {
    let hex = format!("{:032x}", rng.random::<u128>());
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

fn dynamodb_request_id(rng: &mut SmallRng) -> String {
    const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let head = (0..26).map(|_| char::from(DIGITS[rng.random_range(0..DIGITS.len())]));
    head.chain(REQUEST_ID_TAIL.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Effort = Effort { writes: false, kms: false };
    const WRITE: Effort = Effort { writes: true, kms: false };

    fn draws(endpoint: Endpoint) -> Draws {
        Draws::new(&Config::default(), Kind::DynamoDb, &endpoint)
    }

    fn fault(kind: FaultKind, ratio: Option<f64>, every: Option<u64>, after: u64) -> Fault {
        Fault { kind, ratio, every, after, stall_ms: 1 }
    }

    #[test]
    fn by_default_a_request_takes_less_than_ten_ms_also_the_first() {
        let d = draws(Endpoint::default());
        let mut ns: Vec<u64> = (0..5_000).map(|i| d.next(i % 2 == 0, READ, 0).service_ns).collect();
        ns.sort_unstable();
        assert!(ns[0] > 100_000 && ns[4_999] < 10_000_000, "{} .. {}", ns[0], ns[4_999]);
    }

    #[test]
    fn a_write_takes_longer_than_a_read_and_kms_comes_on_top() {
        let median = |d: &Draws, effort| {
            let mut ns: Vec<u64> = (0..1_001).map(|_| d.next(false, effort, 0).service_ns).collect();
            ns.sort_unstable();
            ns[500]
        };
        let d = draws(Endpoint::default());
        assert!(median(&d, WRITE) > median(&d, READ) * 3 / 2);
        let one = Endpoint { service_time: Some(Distribution::Constant { ms: 2.0 }), ..Endpoint::default() };
        assert_eq!(median(&draws(one.clone()), WRITE), 2_000_000, "what is said of all holds for writes");
        let two = Endpoint { write_service_time: Some(Distribution::Constant { ms: 7.0 }), ..one };
        assert_eq!((median(&draws(two.clone()), WRITE), median(&draws(two), READ)), (7_000_000, 2_000_000));
        let kms = Endpoint { kms_time: Some(Distribution::Constant { ms: 5.0 }), ..Endpoint::default() };
        let secrets = Draws::new(&Config::default(), Kind::SecretsManager, &kms);
        let drawn = |kms| secrets.next(false, Effort { writes: false, kms }, 0).kms_ns;
        assert_eq!((drawn(true), drawn(false)), (5_000_000, 0));
    }

    #[test]
    fn a_rate_is_kept_from_second_to_second() {
        let d = draws(Endpoint { rate_per_s: Some(10.0), ..Endpoint::default() });
        let taken = |now_ns| (0..30).filter(|_| !d.next(false, READ, now_ns).over_rate).count();
        assert_eq!([taken(0), taken(500_000_000), taken(9_000_000_000)], [10, 5, 10]);
        let ssm = Draws::new(&Config::default(), Kind::Ssm, &Endpoint::default());
        let taken = (0..100).filter(|_| !ssm.next(false, READ, 0).over_rate).count();
        assert_eq!(taken, 40, "Parameter Store's quota");
    }

    #[test]
    fn the_first_request_costs_extra() {
        let extra = |d: &Draws, first| (0..500).map(|_| d.next(first, READ, 0).service_ns).sum::<u64>() / 500;
        let d = draws(Endpoint::default());
        assert!(extra(&d, true) > extra(&d, false) + 1_000_000);
        let constant = Endpoint {
            service_time: Some(Distribution::Constant { ms: 2.0 }),
            first_request_extra: Some(Distribution::Constant { ms: 1.0 }),
            ..Endpoint::default()
        };
        let d = draws(constant);
        assert_eq!(
            (d.next(true, READ, 0).service_ns, d.next(false, READ, 0).service_ns),
            (3_000_000, 2_000_000)
        );
    }

    #[test]
    fn faults_strike_each_nth_or_by_chance() {
        let every = draws(Endpoint {
            faults: vec![fault(FaultKind::Reset, None, Some(3), 2)],
            ..Endpoint::default()
        });
        let struck: Vec<usize> = (1..=12).filter(|_| every.next(false, READ, 0).fault.is_some()).collect();
        assert_eq!(struck, [5, 8, 11]);
        let ratio = draws(Endpoint {
            faults: vec![fault(FaultKind::Throttle, Some(0.2), None, 0)],
            ..Endpoint::default()
        });
        let struck = (0..5_000).filter(|_| ratio.next(false, READ, 0).fault.is_some()).count();
        assert!((900..1_100).contains(&struck), "{struck} of 5000");
        let never = draws(Endpoint {
            faults: vec![fault(FaultKind::Throttle, Some(0.0), None, 0)],
            ..Endpoint::default()
        });
        assert!((0..1_000).all(|_| never.next(false, READ, 0).fault.is_none()));
    }

    #[test]
    fn request_ids_look_like_dynamodbs_and_differ() {
        let d = draws(Endpoint::default());
        let (a, b) = (d.next(false, READ, 0).request_id, d.next(false, READ, 0).request_id);
        assert_eq!(a.len(), 52);
        assert!(a.ends_with(REQUEST_ID_TAIL) && a != b);
    }
}
