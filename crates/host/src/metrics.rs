//! What happened, in CloudWatch's words (namespace `AWS/Lambda`).

use crate::invoke::Outcome;
use danki_model::concurrency::Throttle;
use std::collections::BTreeMap;

/// Figures of all functions, by name, and of the account.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// By function name; versions together.
    pub functions: BTreeMap<String, FunctionMetrics>,
    /// The account's.
    pub account: AccountMetrics,
}

/// Figures of one function since it was first deployed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionMetrics {
    /// Invocations that ran.
    pub invocations: u64,
    /// Those that ended in an error of the function or the platform.
    pub errors: u64,
    /// Invocations that were not taken: in neither of the two above.
    pub throttles: u64,
    /// Throttles by reason.
    pub throttled: BTreeMap<Throttle, u64>,
    /// Invocations that a provisioned env took.
    pub provisioned_concurrency_invocations: u64,
    /// Invocations that found all provisioned envs taken.
    pub provisioned_concurrency_spillover_invocations: u64,
    /// `Duration`, without init.
    pub duration_ms: Spread,
    /// Invocations under way now.
    pub concurrent_executions: u32,
    /// Provisioned envs that hold an invocation now.
    pub provisioned_concurrent_executions: u32,
    /// Their share of those that may serve.
    pub provisioned_concurrency_utilization: f64,
}

/// Figures of the account now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountMetrics {
    /// Invocations under way.
    pub concurrent_executions: u32,
    /// Those of functions without reserved concurrency.
    pub unreserved_concurrent_executions: u32,
    /// They, and what is reserved or provisioned, used or not.
    pub claimed_account_concurrency: u32,
}

/// A sum with its extremes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Mean; 0 of nothing.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    fn add(&mut self, value: f64) {
        let first = self.count == 0;
        self.min = if first { value } else { self.min.min(value) };
        self.max = if first { value } else { self.max.max(value) };
        self.sum += value;
        self.count += 1;
    }
}

impl FunctionMetrics {
    pub(crate) fn throttled(&mut self, reason: Throttle) {
        self.throttles += 1;
        *self.throttled.entry(reason).or_default() += 1;
    }

    pub(crate) fn began(&mut self, provisioned: bool, spillover: bool) {
        self.invocations += 1;
        self.provisioned_concurrency_invocations += u64::from(provisioned);
        self.provisioned_concurrency_spillover_invocations += u64::from(spillover);
    }

    pub(crate) fn ended(&mut self, outcome: &Outcome) {
        self.errors += u64::from(outcome.function_error.is_some());
        self.duration_ms.add(outcome.invocation.duration_ms);
    }

    /// By CloudWatch's names; `Duration` is the mean in ms.
    pub fn named(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("Invocations", self.invocations as f64),
            ("Errors", self.errors as f64),
            ("Throttles", self.throttles as f64),
            ("Duration", self.duration_ms.mean()),
            ("ProvisionedConcurrencyInvocations", self.provisioned_concurrency_invocations as f64),
            (
                "ProvisionedConcurrencySpilloverInvocations",
                self.provisioned_concurrency_spillover_invocations as f64,
            ),
            ("ConcurrentExecutions", f64::from(self.concurrent_executions)),
            ("ProvisionedConcurrentExecutions", f64::from(self.provisioned_concurrent_executions)),
            ("ProvisionedConcurrencyUtilization", self.provisioned_concurrency_utilization),
        ]
    }
}

impl AccountMetrics {
    /// By CloudWatch's names.
    pub fn named(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("ConcurrentExecutions", f64::from(self.concurrent_executions)),
            ("UnreservedConcurrentExecutions", f64::from(self.unreserved_concurrent_executions)),
            ("ClaimedAccountConcurrency", f64::from(self.claimed_account_concurrency)),
        ]
    }
}
