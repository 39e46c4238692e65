//! A driver of imagined environments: performs the fleet's actions in any order and with any luck, and checks each of them.

use danki_model::concurrency::{
    Action, Fleet, Forced, Input, Rules, SlotState, StatusReason, Ticket, VersionId,
};
use danki_model::{EnvId, InitializationType};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const S: u64 = 1_000_000_000;

#[derive(Clone, Debug)]
enum Step {
    Arrive {
        version: usize,
        forced: Option<Forced>,
        asynchronous: bool,
    },
    /// The `n`th environment that is at work ends it.
    Finish {
        n: usize,
        lucky: bool,
    },
    Lose(usize),
    Wait(u64),
    Reserve(usize, Option<u32>),
    Provision(usize, u32),
    Deprovision(usize),
    Retire(usize),
    Expire(usize),
}

fn forced() -> impl Strategy<Value = Option<Forced>> {
    prop_oneof![
        6 => Just(None),
        1 => Just(Some(Forced::Cold)),
        1 => Just(Some(Forced::Warm)),
        1 => Just(Some(Forced::Expired)),
        1 => (1..200u64).prop_map(|s| Some(Forced::IdleGap(s * S))),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..4usize, forced(), any::<bool>())
            .prop_map(|(version, forced, asynchronous)| Step::Arrive { version, forced, asynchronous }),
        10 => (0..50usize, prop::bool::weighted(0.9)).prop_map(|(n, lucky)| Step::Finish { n, lucky }),
        1 => (0..50usize).prop_map(Step::Lose),
        3 => (0..100 * S).prop_map(Step::Wait),
        1 => (0..2usize, prop::option::of(0..6u32)).prop_map(|(f, n)| Step::Reserve(f, n)),
        1 => (0..4usize, 0..5u32).prop_map(|(v, n)| Step::Provision(v, n)),
        1 => (0..4usize).prop_map(Step::Deprovision),
        1 => (0..40usize).prop_map(Step::Retire),
        1 => (0..4usize).prop_map(Step::Expire),
    ]
}

/// What a driver knows of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Env {
    Preparing,
    Resting,
    Running(Ticket),
    Ending,
}

struct World {
    fleet: Fleet,
    rules: Rules,
    now_ns: u64,
    versions: Vec<VersionId>,
    envs: BTreeMap<EnvId, (VersionId, Env)>,
    /// Invocations without a verdict, each with its version.
    open: BTreeMap<Ticket, VersionId>,
    /// Invocations that had theirs: run, throttled or failed.
    closed: BTreeSet<Ticket>,
    next: u64,
}

const FUNCTIONS: [&str; 2] = ["f", "g"];

impl World {
    fn new() -> World {
        let rules = Rules {
            account_limit: 110,
            max_envs: 12,
            idle_ttl_ns: 300 * S,
            settle_ns: 80 * S,
            provisioned_age_ns: 1_000 * S,
        };
        let mut fleet = Fleet::new(rules, 0);
        let versions = (0..4).map(|v| fleet.deploy(FUNCTIONS[v % 2], 0)).collect();
        let (envs, open, closed) = Default::default();
        World { fleet, rules, now_ns: 0, versions, envs, open, closed, next: 0 }
    }

    fn tell(&mut self, input: Input) {
        let actions = self.fleet.step(self.now_ns, input);
        self.perform(actions);
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Run { ticket, env, new, .. } => self.run(ticket, env, new),
                Action::Prepare { env, version, initialization } => {
                    let of_provisioned = self.fleet.provisioned_of(version).map_or(0, |p| p.requested);
                    let before = self.envs.insert(env, (version, Env::Preparing));
                    assert_eq!(before, None, "an id is used once");
                    let provisioned = initialization == InitializationType::ProvisionedConcurrency;
                    assert!(!provisioned || of_provisioned > 0);
                }
                Action::Throttle(ticket, _) | Action::Fail(ticket) => self.close(ticket),
                Action::End(env, _) => {
                    let (_, state) = self.envs.get_mut(&env).expect("what ends is there");
                    assert!(matches!(state, Env::Resting), "only idle environments end: {state:?}");
                    *state = Env::Ending;
                }
            }
        }
        self.check();
    }

    fn run(&mut self, ticket: Ticket, env: EnvId, new: bool) {
        let version = self.open[&ticket];
        self.close(ticket);
        if new {
            assert_eq!(self.envs.insert(env, (version, Env::Running(ticket))), None, "an id is used once");
            return;
        }
        let (of, state) = self.envs.get_mut(&env).expect("it is there");
        assert_eq!((*of, *state), (version, Env::Resting), "its own version's, and idle");
        *state = Env::Running(ticket);
        let view = self.fleet.envs().find(|view| view.env == env).expect("it is there");
        assert!(view.usable, "a provisioned environment serves only when all are there");
    }

    fn close(&mut self, ticket: Ticket) {
        assert!(self.open.remove(&ticket).is_some(), "{ticket:?} has one verdict");
        assert!(self.closed.insert(ticket));
    }

    /// What holds at any time.
    fn check(&self) {
        let live = self.envs.values().filter(|(_, state)| *state != Env::Ending).count();
        assert!(live <= self.rules.max_envs, "{live} environments");
        let views: BTreeMap<EnvId, _> = self.fleet.envs().map(|view| (view.env, view)).collect();
        assert_eq!(views.len(), self.envs.len(), "the fleet knows every environment");
        let account = self.fleet.account();
        assert!(account.concurrent <= account.limit && account.unreserved_concurrent <= account.concurrent);
        for ticket in self.open.keys() {
            let kept = views.values().any(|view| match view.state {
                SlotState::Waiting { ticket: t, .. } => t == *ticket,
                SlotState::Preparing(_) => true,
                _ => false,
            });
            assert!(kept, "{ticket:?} waits for something");
        }
        for version in &self.versions {
            let Some(provisioned) = self.fleet.provisioned_of(*version) else { continue };
            assert!(provisioned.available <= provisioned.allocated);
            assert!(provisioned.allocated <= provisioned.requested);
        }
    }

    /// After an admission: the reservation was not exceeded by it.
    fn check_admitted(&self, version: VersionId) {
        let function = FUNCTIONS[self.versions.iter().position(|v| *v == version).expect("ours") % 2];
        let Some(reserved) = self.fleet.reserved(function) else { return };
        let siblings = self.versions.iter().enumerate().filter(|(n, _)| FUNCTIONS[n % 2] == function);
        let siblings: Vec<VersionId> = siblings.map(|(_, id)| *id).collect();
        let holding = self.fleet.envs().filter(|view| siblings.contains(&view.version)).filter(|view| {
            matches!(
                view.state,
                SlotState::Busy(_) | SlotState::Waiting { .. } | SlotState::Preparing(Some(_))
            )
        });
        assert!(holding.count() <= reserved as usize, "more than {reserved} at once");
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Arrive { version, forced, asynchronous } => self.arrive(version, forced, asynchronous),
            Step::Finish { n, lucky } => self.finish(n, lucky),
            Step::Lose(n) => {
                if let Some(env) = self.envs.keys().nth(n).copied() {
                    self.envs.remove(&env);
                    self.tell(Input::Lost(env));
                }
            }
            Step::Wait(ns) => self.wait(ns),
            Step::Reserve(f, n) => drop(self.fleet.reserve(self.now_ns, FUNCTIONS[f], n)),
            Step::Provision(v, n) => {
                if let Ok((_, actions)) = self.fleet.provision(self.now_ns, self.versions[v], n) {
                    self.perform(actions);
                }
            }
            Step::Deprovision(v) => {
                let actions = self.fleet.deprovision(self.now_ns, self.versions[v]);
                self.perform(actions.unwrap_or_default());
            }
            // Most numbers stand for no version, so that few are retired.
            Step::Retire(v) => {
                if let Some(version) = self.versions.get(v).copied() {
                    self.tell(Input::Retire(version));
                }
            }
            Step::Expire(v) => self.tell(Input::Expire(self.versions[v], 0)),
        }
    }

    fn arrive(&mut self, version: usize, forced: Option<Forced>, asynchronous: bool) {
        let (ticket, version) = (Ticket(self.next), self.versions[version]);
        self.next += 1;
        self.open.insert(ticket, version);
        let actions = self.fleet.step(self.now_ns, Input::Arrive { ticket, version, forced, asynchronous });
        let admitted = !actions.iter().any(|a| matches!(a, Action::Throttle(..) | Action::Fail(_)));
        self.perform(actions);
        if admitted {
            self.check_admitted(version);
        }
    }

    fn finish(&mut self, n: usize, lucky: bool) {
        let at_work = self.envs.iter().filter(|(_, (_, state))| *state != Env::Resting);
        let Some((env, state)) = at_work.map(|(env, (_, state))| (*env, *state)).nth(n) else { return };
        match state {
            Env::Preparing => {
                let failure = (!lucky).then_some(StatusReason::InitFailure);
                self.rest(env);
                self.tell(Input::Prepared { env, failure });
            }
            Env::Running(_) if lucky => {
                self.rest(env);
                self.tell(Input::Freed(env));
            }
            Env::Running(_) | Env::Ending => {
                self.envs.remove(&env);
                self.tell(Input::Lost(env));
            }
            Env::Resting => unreachable!("filtered"),
        }
    }

    fn rest(&mut self, env: EnvId) {
        self.envs.get_mut(&env).expect("it is there").1 = Env::Resting;
    }

    fn wait(&mut self, ns: u64) {
        let end_ns = self.now_ns + ns;
        while let Some(due_ns) = self.fleet.wake_ns()
            && due_ns <= end_ns
        {
            // What is due but cannot be done now asks again a little later.
            self.now_ns = due_ns.max(self.now_ns + S / 100).min(end_ns);
            self.tell(Input::Tick);
            if self.now_ns == end_ns {
                return;
            }
        }
        self.now_ns = end_ns;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn under_arbitrary_traffic_every_promise_holds(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for step in &steps {
            world.apply(step);
        }
        // Let everything come to its end: nobody is forgotten.
        for _ in 0..1_000 {
            if world.open.is_empty() {
                break;
            }
            let before = world.envs.len();
            world.finish(0, true);
            if world.envs.len() == before {
                world.wait(S);
            }
        }
        prop_assert!(world.open.is_empty(), "{:?} wait for ever", world.open);
        prop_assert_eq!(world.closed.len() as u64, world.next);
        let holding = world.fleet.account().concurrent as usize;
        let running = world.envs.values().filter(|(_, state)| matches!(state, Env::Running(_))).count();
        prop_assert_eq!(holding, running, "concurrency is what runs");
    }
}
