//! What is left to chance for a request, drawn from one seeded source per endpoint in order of arrival.

use crate::config::{Endpoint, Fault, FaultKind};
use crate::{Config, Distribution};
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
    service_time: Option<Distribution>,
    first_request_extra: Option<Distribution>,
    faults: Vec<Fault>,
    state: Mutex<State>,
}

struct State {
    rng: SmallRng,
    requests: u64,
}

/// What was drawn for one request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Drawn {
    /// How long it takes at least, from the whole request read.
    pub(crate) service_ns: u64,
    /// What goes wrong.
    pub(crate) fault: Option<(FaultKind, Duration)>,
    /// `x-amzn-RequestId`.
    pub(crate) request_id: String,
}

impl Draws {
    pub(crate) fn new(config: &Config, endpoint: &Endpoint) -> Draws {
        Draws {
            service_time: endpoint.effective_service_time(),
            first_request_extra: endpoint.effective_first_request_extra(),
            faults: endpoint.faults.clone(),
            state: Mutex::new(State { rng: SmallRng::seed_from_u64(config.seed), requests: 0 }),
        }
    }

    pub(crate) fn next(&self, first_on_connection: bool) -> Drawn {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        state.requests += 1;
        let service_ms = self.service_ms(first_on_connection, &mut state.rng);
        let (requests, rng) = (state.requests, &mut state.rng);
        let strikes = |f: &&Fault| {
            // Drawn before the other conditions: whether a fault is spared must not shift later draws.
            let hit = f.ratio.is_some_and(|ratio| rng.random::<f64>() < ratio);
            let nth = requests.checked_sub(f.after).filter(|n| *n > 0);
            nth.is_some_and(|n| hit || f.every.is_some_and(|every| n % every == 0))
        };
        let fault = self.faults.iter().find(strikes).map(|f| (f.kind, Duration::from_millis(f.stall_ms)));
        Drawn { service_ns: nanos(service_ms), fault, request_id: request_id(&mut state.rng) }
    }

    fn service_ms(&self, first_on_connection: bool, rng: &mut SmallRng) -> f64 {
        let Some(service_time) = self.service_time else {
            return self.extra_ms(first_on_connection, rng);
        };
        let bound = service_time.max_ms();
        let mut sum = || service_time.draw_ms(rng) + self.extra_ms(first_on_connection, rng);
        (0..REDRAWS).map(|_| sum()).find(|ms| *ms <= bound || self.bound_excludes_extra()).unwrap_or(bound)
    }

    /// A constant service time is its own bound: an extra is wanted on top.
    fn bound_excludes_extra(&self) -> bool {
        !matches!(self.service_time, Some(Distribution::LogNormal { max_ms: Some(_), .. }))
    }

    fn extra_ms(&self, first_on_connection: bool, rng: &mut SmallRng) -> f64 {
        match self.first_request_extra {
            Some(extra) if first_on_connection => extra.draw_ms(rng),
            _ => 0.0,
        }
    }
}

fn nanos(ms: f64) -> u64 {
    Duration::from_secs_f64(ms / 1e3).as_nanos().try_into().unwrap_or(u64::MAX)
}

fn request_id(rng: &mut SmallRng) -> String {
    const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let head = (0..26).map(|_| char::from(DIGITS[rng.random_range(0..DIGITS.len())]));
    head.chain(REQUEST_ID_TAIL.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(endpoint: Endpoint) -> Draws {
        Draws::new(&Config::default(), &endpoint)
    }

    fn fault(kind: FaultKind, ratio: Option<f64>, every: Option<u64>, after: u64) -> Fault {
        Fault { kind, ratio, every, after, stall_ms: 1 }
    }

    #[test]
    fn by_default_a_request_takes_less_than_ten_ms_also_the_first() {
        let d = draws(Endpoint::default());
        let mut ns: Vec<u64> = (0..5_000).map(|i| d.next(i % 2 == 0).service_ns).collect();
        ns.sort_unstable();
        assert!(ns[0] > 100_000 && ns[4_999] < 10_000_000, "{} .. {}", ns[0], ns[4_999]);
    }

    #[test]
    fn the_first_request_costs_extra() {
        let extra = |d: &Draws, first| (0..500).map(|_| d.next(first).service_ns).sum::<u64>() / 500;
        let d = draws(Endpoint::default());
        assert!(extra(&d, true) > extra(&d, false) + 1_000_000);
        let constant = Endpoint {
            service_time: Some(Distribution::Constant { ms: 2.0 }),
            first_request_extra: Some(Distribution::Constant { ms: 1.0 }),
            ..Endpoint::default()
        };
        let d = draws(constant);
        assert_eq!((d.next(true).service_ns, d.next(false).service_ns), (3_000_000, 2_000_000));
    }

    #[test]
    fn faults_strike_each_nth_or_by_chance() {
        let every = draws(Endpoint {
            faults: vec![fault(FaultKind::Reset, None, Some(3), 2)],
            ..Endpoint::default()
        });
        let struck: Vec<usize> = (1..=12).filter(|_| every.next(false).fault.is_some()).collect();
        assert_eq!(struck, [5, 8, 11]);
        let ratio = draws(Endpoint {
            faults: vec![fault(FaultKind::Throttle, Some(0.2), None, 0)],
            ..Endpoint::default()
        });
        let struck = (0..5_000).filter(|_| ratio.next(false).fault.is_some()).count();
        assert!((900..1_100).contains(&struck), "{struck} of 5000");
        let never = draws(Endpoint {
            faults: vec![fault(FaultKind::Throttle, Some(0.0), None, 0)],
            ..Endpoint::default()
        });
        assert!((0..1_000).all(|_| never.next(false).fault.is_none()));
    }

    #[test]
    fn request_ids_look_like_dynamodbs_and_differ() {
        let d = draws(Endpoint::default());
        let (a, b) = (d.next(false).request_id, d.next(false).request_id);
        assert_eq!(a.len(), 52);
        assert!(a.ends_with(REQUEST_ID_TAIL) && a != b);
    }
}
