//! User namespaces, for a danki that is not root: the env's root is the caller, and the function gets its planned number in a namespace
//! inside of that, with no rights in either.

use crate::plan::UserPlan;
use crate::process;
use std::fs;
use std::io;

/// Numbers of the caller before it entered a user namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub uid: u32,
    pub gid: u32,
}

/// Makes the caller root of the namespace that this process was cloned into.
pub(super) fn map_root(caller: Caller) -> io::Result<()> {
    map(0, caller.uid, 0, caller.gid)
}

/// Enters a namespace in which root (the caller) has the planned number.
pub(super) fn nest(user: UserPlan) -> io::Result<()> {
    // SAFETY: this process has one thread and shares nothing that depends on its user namespace.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWUSER) }?;
    // The maps of a process that is hidden belong to the host's root.
    process::set_traceable(true);
    map(user.uid, 0, user.gid, 0)
}

fn map(uid: u32, outer_uid: u32, gid: u32, outer_gid: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {outer_uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {outer_gid} 1"))
}
