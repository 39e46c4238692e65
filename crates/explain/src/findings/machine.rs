//! This machine was too busy: what follows is then not the function's fault.

use super::{Cause, Finding};
use crate::Context;

/// How the runner's caveats about a busy machine begin.
const SATURATED: &str = "saturated:";

pub(super) fn find(context: &Context) -> Option<Finding> {
    let told = context.caveats.iter().find_map(|c| c.strip_prefix(SATURATED))?;
    let text = format!(
        "Read times with care:{told}. Compare variants with each other, not with AWS, or run again on an idle machine."
    );
    Some(Finding::new(Cause::HostSaturated, None, text))
}
