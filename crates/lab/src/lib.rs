//! From an experiment file to a run directory and its summary.
//!
//! [`Experiment`] is what is asked, [`run`] does it, [`Results`] is what came out. [`calibrate`] compares this machine's
//! core with Lambda's, [`lattice_checks`] its CPU quota.

mod calibrate;
mod capture;
mod demand;
mod error;
mod experiment;
mod machine;
mod profiles;
mod remedy;
mod results;
mod rundir;
mod runner;
mod summarise;
mod validate;
mod world;

pub use calibrate::{Interpreters, calibrate, read_calibration, write_calibration};
pub use demand::fits;
pub use error::{BadInput, Error, Fault};
pub use experiment::{
    Allowed, Expect, Experiment, FunctionChoice, Guess, HostKeys, Metric, Operand, Options, Payload, Region,
    Variant, Versions, nearest, single,
};
pub use machine::{cpus, machine};
pub use profiles::ProfileVerdict;
pub use remedy::remedied;
pub use results::{Opened, Predecessor, Results, Row, RowCall};
pub use runner::{Progress, Setup, Watcher, new_run_dir, run};
pub use summarise::{Digest, Ingredients, Returned, summarise};
pub use validate::{assumptions, lattice_checks};
pub use world::World;
