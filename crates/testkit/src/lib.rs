//! A running lab in three lines, for tests.
//!
//! ```no_run
//! # fn main() -> Result<(), danki_testkit::Error> {
//! let lab = danki_testkit::Lab::start("hello", danki_testkit::Settings::default())?;
//! let hello = lab.deploy(danki_testkit::function("hello-python")?)?;
//! assert_eq!(hello.invoke(&serde_json::json!({}))?.json()["body"], "hello");
//! assert_eq!(lab.stop()?.left, Vec::<String>::new());
//! # Ok(())
//! # }
//! ```
//! It is the world that experiments run in ([`danki_lab::World`]) with its own keeper, without load and run directory. Calls block
//! and have a deadline; what was recorded can be read at any time. [`Lab::stop`] also says what was left behind: nothing should be.
//! Each lab has its own namespaces, cgroups and directories, so tests need no care for each other: no port can be in use.

mod error;
mod function;
mod image;
mod lab;
mod remains;
mod skip;

pub use danki_host::StreamEnd;
pub use error::Error;
pub use function::{Function, Pending, Reply, Streamed};
pub use image::bash_image;
pub use lab::{Lab, Recorded, Settings};
pub use remains::{Process, descendants, eventually, traces};
pub use skip::skipped;

use danki_model::FunctionSpec;
use std::path::{Path, PathBuf};

/// The root of the source tree.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A sample function, by its folder's name in `functions/`; runtime and handler guessed, the rest as Lambda's defaults.
///
/// # Errors
/// No function is found there.
pub fn function(name: &str) -> Result<FunctionSpec, Error> {
    function_in(&repository().join("functions").join(name))
}

/// The function of a directory; runtime and handler guessed, the rest as Lambda's defaults.
///
/// # Errors
/// No function is found there.
pub fn function_in(dir: &Path) -> Result<FunctionSpec, Error> {
    let choice = danki_lab::FunctionChoice { dir: dir.to_path_buf(), ..Default::default() };
    let experiment = danki_lab::single(&choice, &danki_lab::Options::default())?;
    let variant = experiment.variants.into_iter().next();
    Ok(variant.ok_or_else(|| Error::NoFunction(dir.to_path_buf()))?.function)
}
