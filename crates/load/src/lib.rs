//! When to invoke.
//!
//! A [`Load`] is what the user asks for; a [`Schedule`] turns it into [`Turn`]s, one after the other, for all variants of an
//! experiment; [`run`] drives a schedule in real time. The schedule is pure: it is told what time it is and when invocations
//! ended, and it *computes* when each should have been sent, so that a load that falls behind shows as lateness and does not
//! vanish (coordinated omission). Variants are interleaved, so that a drift of the machine hits all of them alike.

mod closed;
mod keys;
mod load;
mod open;
mod run;
mod schedule;
mod sequence;
mod steps;

pub use keys::{BadLoad, seconds};
pub use load::{Arrivals, Load, Step, Stop};
pub use run::run;
pub use schedule::{Fire, Schedule, Turn};
