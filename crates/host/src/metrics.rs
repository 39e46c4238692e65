//! What happened, in CloudWatch's words: facts of invocations as values of `model::metrics`.

use crate::call::Call;
use crate::deployed::Deployed;
use crate::invoke::Outcome;
use danki_model::concurrency::{Account, Held};
use danki_model::metrics::{Ledger, Metric, Subject};
use danki_sys::clock;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The ledger of all functions.
#[derive(Debug, Default)]
pub(crate) struct Book(Mutex<Ledger>);

/// What is known when an invocation begins, itself included.
pub(crate) struct Began {
    /// A provisioned env took it.
    pub provisioned: bool,
    /// All provisioned envs were taken.
    pub spillover: bool,
    pub account: Account,
    pub function: Held,
    pub version: Held,
}

/// Whom an invocation's values belong to.
pub(crate) fn subject(deployed: &Deployed, call: &Call) -> Subject {
    let arn = call.caller.function_arn.as_deref().unwrap_or_default();
    // arn:aws:lambda:REGION:ACCOUNT:function:NAME:QUALIFIER
    Subject::invoked(&deployed.spec.name, arn.split(':').nth(7), &deployed.version)
}

impl Book {
    pub fn look(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn throttled(&self, subject: &Subject) {
        self.look().record(now_ms(), subject, &[(Metric::Throttles, 1.0)]);
    }

    pub fn began(&self, subject: &Subject, began: &Began) {
        let now_ms = now_ms();
        let mut ledger = self.look();
        let mut counts = vec![(Metric::Invocations, 1.0), (Metric::Throttles, 0.0)];
        if began.provisioned {
            counts.push((Metric::ProvisionedConcurrencyInvocations, 1.0));
        }
        if began.spillover {
            counts.push((Metric::ProvisionedConcurrencySpilloverInvocations, 1.0));
        }
        ledger.record(now_ms, subject, &counts);
        let account = [
            (Metric::ConcurrentExecutions, f64::from(began.account.concurrent)),
            (Metric::UnreservedConcurrentExecutions, f64::from(began.account.unreserved_concurrent)),
            (Metric::ClaimedAccountConcurrency, f64::from(began.account.claimed)),
        ];
        ledger.record(now_ms, &Subject::default(), &account);
        let name = subject.function.as_deref().unwrap_or_default();
        let mut of_function = vec![(Metric::ConcurrentExecutions, f64::from(began.function.concurrent))];
        of_function.extend(provisioned(&began.function));
        ledger.record(now_ms, &Subject::function(name), &of_function);
        let of_resource = provisioned(&began.version);
        if !of_resource.is_empty() {
            ledger.record(now_ms, &Subject { version: None, ..subject.clone() }, &of_resource);
        }
    }

    pub fn ended(&self, subject: &Subject, outcome: &Outcome) {
        let failed = f64::from(u8::from(outcome.function_error.is_some()));
        let mut values = vec![(Metric::Errors, failed), (Metric::Duration, outcome.invocation.duration_ms)];
        values.extend(outcome.extensions_ms.map(|ms| (Metric::PostRuntimeExtensionsDuration, ms)));
        self.look().record(now_ms(), subject, &values);
    }
}

/// Nothing without provisioned concurrency.
fn provisioned(held: &Held) -> Vec<(Metric, f64)> {
    if held.available == 0 {
        return Vec::new();
    }
    let busy = f64::from(held.provisioned);
    vec![
        (Metric::ProvisionedConcurrentExecutions, busy),
        (Metric::ProvisionedConcurrencyUtilization, busy / f64::from(held.available)),
    ]
}

fn now_ms() -> u64 {
    clock::epoch_ns() / 1_000_000
}
