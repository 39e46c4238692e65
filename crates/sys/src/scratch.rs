//! A directory that goes with whoever made it: when dropped, or, if this process is killed, at the next start's sweep.

use crate::Error;
use crate::run::Run;
use std::path::Path;

/// A temporary directory, readable by its owner only.
#[derive(Debug)]
pub struct Scratch(Run);

impl Scratch {
    /// Makes one.
    pub fn create(label: &str) -> Result<Scratch, Error> {
        Run::create(label, Path::new(crate::sweep::BASE)).map(Scratch)
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.0.dir
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.0.remove();
    }
}
