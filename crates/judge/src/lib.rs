//! Runs judged: against another run, against a budget, against what AWS itself logged.
//!
//! Everything here reads finished runs and answers in values; printing and exit codes are the command line's.

mod aws_logs;
mod budget;
mod compare;
mod gate;
mod tune;

pub use aws_logs::{AwsReport, Validity, read_aws_logs, validity};
pub use budget::{Budget, BudgetError, Limits};
pub use compare::{ALPHA, Measure, Row, compare_runs};
pub use gate::{Check, Outcome, check, junit, markdown};
pub use tune::{Optimum, Size, sizes, tuned};
