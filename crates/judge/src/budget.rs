//! A budget file: limits for all variants, and for single ones.

use serde::Deserialize;
use std::collections::BTreeMap;

/// `[budget]` for all variants, `[variant.NAME]` for one; the latter's limits win.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// A run directory to be compared with; `regression_pct` needs one.
    pub baseline: Option<String>,
    /// For every variant.
    #[serde(default)]
    pub budget: Limits,
    /// For single variants.
    #[serde(default)]
    pub variant: BTreeMap<String, Limits>,
}

/// Upper limits; what is absent is not checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Median `Duration`, ms.
    pub p50_ms: Option<f64>,
    /// 90th percentile, ms.
    pub p90_ms: Option<f64>,
    /// 95th percentile, ms.
    pub p95_ms: Option<f64>,
    /// 99th percentile, ms.
    pub p99_ms: Option<f64>,
    /// Longest `Init Duration`, ms.
    pub init_ms: Option<f64>,
    /// TLS handshakes per invocation.
    pub handshakes_per_invocation: Option<f64>,
    /// Connections per invocation.
    pub connections_per_invocation: Option<f64>,
    /// Cold starts.
    pub cold_starts: Option<f64>,
    /// Failed invocations.
    pub errors: Option<f64>,
    /// Share of Durations throttled.
    pub throttled_ratio: Option<f64>,
    /// Connections open at a database at once.
    pub db_connections_max: Option<f64>,
    /// USD per million invocations, requests included.
    pub usd_per_million: Option<f64>,
    /// The median may be this many per cent above the baseline's.
    pub regression_pct: Option<f64>,
}

/// What can be wrong with a budget.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    /// Not TOML, or a key that there is not.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// A limit that is no number of 0 or more.
    #[error("{0} = {1}: a limit is a number of 0 or more")]
    Range(&'static str, f64),
    /// Nothing is limited.
    #[error("the budget has no limits")]
    Empty,
}

impl Budget {
    /// Reads a budget.
    pub fn parse(text: &str) -> Result<Budget, BudgetError> {
        let budget: Budget = toml::from_str(text)?;
        let all: Vec<_> =
            std::iter::once(&budget.budget).chain(budget.variant.values()).flat_map(Limits::list).collect();
        if all.is_empty() {
            return Err(BudgetError::Empty);
        }
        match all.into_iter().find(|(_, limit)| !limit.is_finite() || *limit < 0.0) {
            Some((name, limit)) => Err(BudgetError::Range(name, limit)),
            None => Ok(budget),
        }
    }

    /// The limits of one variant.
    pub fn of(&self, variant: &str) -> Limits {
        let own = self.variant.get(variant).copied().unwrap_or_default();
        let all = self.budget;
        Limits {
            p50_ms: own.p50_ms.or(all.p50_ms),
            p90_ms: own.p90_ms.or(all.p90_ms),
            p95_ms: own.p95_ms.or(all.p95_ms),
            p99_ms: own.p99_ms.or(all.p99_ms),
            init_ms: own.init_ms.or(all.init_ms),
            handshakes_per_invocation: own.handshakes_per_invocation.or(all.handshakes_per_invocation),
            connections_per_invocation: own.connections_per_invocation.or(all.connections_per_invocation),
            cold_starts: own.cold_starts.or(all.cold_starts),
            errors: own.errors.or(all.errors),
            throttled_ratio: own.throttled_ratio.or(all.throttled_ratio),
            db_connections_max: own.db_connections_max.or(all.db_connections_max),
            usd_per_million: own.usd_per_million.or(all.usd_per_million),
            regression_pct: own.regression_pct.or(all.regression_pct),
        }
    }
}

impl Limits {
    /// Limits that are set, by name.
    pub fn list(&self) -> Vec<(&'static str, f64)> {
        let all = [
            ("p50_ms", self.p50_ms),
            ("p90_ms", self.p90_ms),
            ("p95_ms", self.p95_ms),
            ("p99_ms", self.p99_ms),
            ("init_ms", self.init_ms),
            ("handshakes_per_invocation", self.handshakes_per_invocation),
            ("connections_per_invocation", self.connections_per_invocation),
            ("cold_starts", self.cold_starts),
            ("errors", self.errors),
            ("throttled_ratio", self.throttled_ratio),
            ("db_connections_max", self.db_connections_max),
            ("usd_per_million", self.usd_per_million),
            ("regression_pct", self.regression_pct),
        ];
        all.into_iter().filter_map(|(name, limit)| Some((name, limit?))).collect()
    }
}
