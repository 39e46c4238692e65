//! What reservations leave over, and which of them are refused.

use super::UNRESERVED_MIN;

/// How an account's concurrency is divided at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// All of it.
    pub limit: u32,
    /// What reservations leave: limit less all reserved concurrency.
    pub unreserved: u32,
    /// Invocations under way, and reservations and PC of functions without one whether used or not (`ClaimedAccountConcurrency`).
    pub claimed: u32,
    /// Invocations under way.
    pub concurrent: u32,
    /// Those of functions without a reservation.
    pub unreserved_concurrent: u32,
}

/// A setting that AWS refuses. Displayed in AWS's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too little would be left for all other functions.
    #[error(
        "Specified ConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below its minimum value of [{UNRESERVED_MIN}]."
    )]
    BelowUnreservedMinimum,
    /// More PC than the function's reserved concurrency.
    #[error(
        "Requested Provisioned Concurrency should not be greater than the reservedConcurrentExecution for function"
    )]
    AboveReserved,
    /// Less reserved concurrency than the function's PC.
    #[error(
        " ReservedConcurrentExecutions  {reserved} should not be lower than function's total provisioned concurrency [{provisioned}]."
    )]
    BelowProvisioned {
        /// What was asked for.
        reserved: u32,
        /// PC of all versions.
        provisioned: u32,
    },
    /// PC belongs to a version.
    #[error("Provisioned Concurrency Configs cannot be applied to unpublished function versions.")]
    Latest,
    /// More environments than this machine may hold: not AWS's limit.
    #[error(
        "this machine may hold {max_envs} environments. hint: a smaller amount, or a larger max_envs of the host"
    )]
    Machine {
        /// How many it may hold.
        max_envs: usize,
    },
    /// The version is being removed.
    #[error("The function version is being deleted.")]
    Gone,
    /// PC is at least one.
    #[error(
        "1 validation error detected: Value '0' at 'provisionedConcurrentExecutions' failed to satisfy constraint: Member must have value greater than or equal to 1"
    )]
    Zero,
}

/// A reservation of `reserved`: `others` is what all other functions have reserved or, without reservation, provisioned.
pub(super) fn reserve(limit: u32, others: u32, provisioned: u32, reserved: u32) -> Result<(), Refused> {
    if reserved < provisioned {
        return Err(Refused::BelowProvisioned { reserved, provisioned });
    }
    leaves_enough(limit, others, reserved)
}

/// PC of `requested`: `siblings` is the PC of the function's other versions.
pub(super) fn provision(
    limit: u32,
    others: u32,
    reserved: Option<u32>,
    siblings: u32,
    requested: u32,
) -> Result<(), Refused> {
    let all = siblings.saturating_add(requested);
    match reserved {
        _ if requested == 0 => Err(Refused::Zero),
        Some(reserved) if all > reserved => Err(Refused::AboveReserved),
        Some(_) => Ok(()),
        None => leaves_enough(limit, others, all),
    }
}

fn leaves_enough(limit: u32, others: u32, asked: u32) -> Result<(), Refused> {
    let left = i64::from(limit) - i64::from(others) - i64::from(asked);
    if asked > 0 && left < i64::from(UNRESERVED_MIN) { Err(Refused::BelowUnreservedMinimum) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_stay_unreserved() {
        assert_eq!(reserve(1_000, 0, 0, 900), Ok(()));
        assert_eq!(reserve(1_000, 0, 0, 901), Err(Refused::BelowUnreservedMinimum));
        assert_eq!(reserve(1_000, 400, 0, 501), Err(Refused::BelowUnreservedMinimum));
        assert_eq!(reserve(50, 0, 0, 0), Ok(()), "a function can always be switched off");
        assert_eq!(provision(1_000, 0, None, 100, 801), Err(Refused::BelowUnreservedMinimum));
        assert_eq!(provision(1_000, 0, None, 100, 800), Ok(()));
    }

    #[test]
    fn reserved_and_provisioned_bound_each_other() {
        let low = reserve(1_000, 0, 2, 1).expect_err("too low");
        let words = " ReservedConcurrentExecutions  1 should not be lower than function's total provisioned concurrency [2].";
        assert_eq!(low.to_string(), words);
        assert_eq!(provision(1_000, 0, Some(2), 1, 2), Err(Refused::AboveReserved));
        assert_eq!(provision(1_000, 999, Some(2), 1, 1), Ok(()), "what is reserved is there");
        assert_eq!(provision(1_000, 0, None, 0, 0), Err(Refused::Zero));
    }
}
