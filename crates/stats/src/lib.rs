//! Numbers about numbers: quantiles with a named method and an honest interval, histograms, distances.
//!
//! No distribution is assumed anywhere: latencies under a CPU quota come in steps of 20 ms, so nothing here is normal.

mod compare;
mod histogram;
mod interval;
mod lattice;
mod quantile;
mod ratio;
mod sample;

pub use compare::{Comparison, Over, Question, Verdict, compare};
pub use histogram::Histogram;
pub use interval::{Interval, quantile_interval, smallest_n};
pub use lattice::{LATTICE_MS, lattice_residual};
pub use quantile::Method;
pub use ratio::Ratio;
pub use sample::{Error, Sample, Summary};
