//! The load: every repetition of every variant, until it is done or something ends it.

use super::pings::{Idle, Pings};
use super::tally::Tally;
use crate::error::Error;
use crate::experiment::{Experiment, Variant};
use crate::world::World;
use bytes::Bytes;
use danki_host::{Call, Deployment, Function, ThawOrder};
use danki_load::{Load, Schedule};
use danki_sys::clock;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// All repetitions; each deploys anew, so that its envs are new. `false`: it was stopped.
pub async fn drive(
    experiment: &Experiment,
    world: &World,
    tally: &Arc<Tally>,
    stop: watch::Receiver<bool>,
) -> Result<bool, Error> {
    let (failing, failed) = watch::channel(false);
    let stop = either(stop, failed);
    let _watch = Watch::start(world, tally, failing.clone());
    for repetition in 0..experiment.repetitions {
        let functions = deploy(experiment, world)?;
        let seed = experiment.seed.wrapping_add(u64::from(repetition));
        let (variants, scale) = (experiment.variants.len(), experiment.time_scale);
        if !matches!(experiment.load, Load::Steps { .. }) {
            settled(&functions, stop.clone()).await;
        }
        let mut schedule = Schedule::new(&experiment.load, variants, seed, scale, clock::monotonic_ns());
        let before = tally.sent(variants);
        let dropped_before = world.link_stats().dropped_bound;
        let ready = allocations(experiment, &functions, tally, &failing);
        let idle: Vec<_> = functions.iter().map(|_| Idle::new()).collect();
        let (still, stopping) = watch::channel(false);
        let pings = ping(experiment, &functions, &idle, tally, &stopping);
        let done = danki_load::run(&mut schedule, clock::monotonic_ns, stop.clone(), ready, |fire| {
            let call = Call {
                payload: Bytes::from(experiment.variants[fire.variant].event.as_str().to_owned()),
                index: before[fire.variant] + fire.index,
                intended_ns: fire.intended_ns,
                forced: experiment.variants[fire.variant].forced,
                ..Call::default()
            };
            tally.fired(fire);
            let (function, idle) = (functions[fire.variant].clone(), Arc::clone(&idle[fire.variant]));
            invoke(function, call, idle, Arc::clone(tally), failing.clone())
        })
        .await;
        still.send_replace(true);
        pings.ended().await;
        // Later drops are the goodbyes of endpoints to envs that are gone.
        tally.dropped(world.link_stats().dropped_bound - dropped_before);
        for function in &functions {
            function.retire().await;
        }
        tally.failure()?;
        if !done {
            return Ok(false);
        }
    }
    Ok(true)
}

fn deploy(experiment: &Experiment, world: &World) -> Result<Vec<Function>, Error> {
    experiment.variants.iter().map(|variant| deploy_one(variant, world)).collect()
}

fn deploy_one(variant: &Variant, world: &World) -> Result<Function, Error> {
    let version = if variant.provisioned_concurrency.is_some() { "1" } else { danki_model::log::LATEST };
    let function = world.host.deploy_as(
        variant.function.clone(),
        Deployment {
            variant: variant.name.clone(),
            version: version.to_owned(),
            thaw_order: variant.event_first.map(ThawOrder::Mixed),
        },
    )?;
    if let Some(requested) = variant.provisioned_concurrency {
        let refused = |source| Error::Refused { variant: variant.name.clone(), source };
        function.provision(requested).map_err(refused)?;
    }
    Ok(function)
}

/// Begins to ping those that want it.
fn ping(
    experiment: &Experiment,
    functions: &[Function],
    idle: &[Arc<Idle>],
    tally: &Arc<Tally>,
    stop: &watch::Receiver<bool>,
) -> Pings {
    let mut pings = Pings::default();
    for ((function, variant), idle) in functions.iter().zip(&experiment.variants).zip(idle) {
        if let Some(ping_s) = variant.ping_s {
            let every = Duration::from_secs_f64(ping_s / experiment.time_scale);
            pings.add((function.clone(), variant), every, Arc::clone(idle), Arc::clone(tally), stop.clone());
        }
    }
    pings
}

/// Names each variant once its provisioned concurrency is READY, at once where it has none; a failed allocation ends the load.
fn allocations(
    experiment: &Experiment,
    functions: &[Function],
    tally: &Arc<Tally>,
    failing: &watch::Sender<bool>,
) -> mpsc::Receiver<usize> {
    let (tell, ready) = mpsc::channel(functions.len().max(1));
    for (n, (function, variant)) in functions.iter().zip(&experiment.variants).enumerate() {
        let (function, variant) = (function.clone(), variant.name.clone());
        let (tell, tally, failing) = (tell.clone(), Arc::clone(tally), failing.clone());
        tokio::spawn(async move {
            match function.provisioned_settled().await.and_then(|provisioned| provisioned.reason) {
                None => drop(tell.send(n).await),
                Some(reason) => {
                    tally.failed(Error::Unprovisioned { variant, reason: reason.as_str() });
                    failing.send_replace(true);
                }
            }
        });
    }
    ready
}

/// Loads that do not say when to begin begin when provisioned concurrency is READY.
async fn settled(functions: &[Function], mut stop: watch::Receiver<bool>) {
    let all = async {
        for function in functions {
            function.provisioned_settled().await;
        }
    };
    tokio::select! {
        () = all => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

/// One invocation; resolves to when its connections began to idle.
async fn invoke(
    function: Function,
    call: Call,
    idle: Arc<Idle>,
    tally: Arc<Tally>,
    failing: watch::Sender<bool>,
) -> u64 {
    let variant = function.deployed().variant.clone();
    idle.begins();
    let ended = function.invoke(call).await;
    idle.ends();
    match ended {
        Ok(outcome) => {
            let ended_ns = outcome.invocation.responded_ns;
            tally.ended(variant, outcome);
            ended_ns
        }
        Err(danki_host::Error::Throttled(_)) => {
            tally.throttled(variant);
            clock::monotonic_ns()
        }
        Err(source) => {
            tally.failed(Error::Invoke { variant, source });
            failing.send_replace(true);
            clock::monotonic_ns()
        }
    }
}

/// Ends the load with the region's last words if the region dies: an error that names itself, not a run of timeouts.
struct Watch(tokio::task::JoinHandle<()>);

impl Watch {
    fn start(world: &World, tally: &Arc<Tally>, failing: watch::Sender<bool>) -> Watch {
        let (died, tally) = (world.region_died(), Arc::clone(tally));
        Watch(tokio::spawn(async move {
            tally.failed(died.await);
            failing.send_replace(true);
        }))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Becomes true when one of the two does.
fn either(mut one: watch::Receiver<bool>, mut other: watch::Receiver<bool>) -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(*one.borrow() || *other.borrow());
    tokio::spawn(async move {
        let first = async { one.wait_for(|stop| *stop).await.is_ok() };
        let second = async { other.wait_for(|stop| *stop).await.is_ok() };
        tokio::select! {
            true = first => {}
            true = second => {}
            () = sender.closed() => return,
            else => return,
        }
        sender.send_replace(true);
    });
    receiver
}
