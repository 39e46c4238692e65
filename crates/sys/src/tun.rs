//! TUN devices. A TUN that is closed is torn down while the caller waits (31 ms measured); one that is persistent stays until its network
//! namespace goes, which the kernel does in the background. So each is made persistent at once.

use crate::plan::TunPlan;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd};

/// Name of the device inside.
pub(crate) const NAME: &str = "tun0";

// linux/if_tun.h
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETPERSIST: libc::c_ulong = 0x4004_54cb;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const TUN_F_CSUM: libc::c_ulong = 0x01;
const TUN_F_TSO4: libc::c_ulong = 0x02;
const TUN_F_TSO6: libc::c_ulong = 0x04;

/// Makes the device in the calling thread's network namespace. Packets come without `tun_pi`; reads do not block.
pub(crate) fn create(plan: &TunPlan) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let tun = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
    // SAFETY: an all-zero `ifreq` is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(NAME.bytes()) {
        *to = from.cast_signed();
    }
    let header = if plan.offload { libc::IFF_VNET_HDR } else { 0 };
    request.ifr_ifru.ifru_flags =
        i16::try_from(libc::IFF_TUN | libc::IFF_NO_PI | header).expect("the flags fit into 15 bits");
    // SAFETY: TUNSETIFF reads and writes one `ifreq`.
    check(unsafe { libc::ioctl(tun.as_raw_fd(), TUNSETIFF, &raw mut request) })?;
    if plan.offload {
        // SAFETY: TUNSETOFFLOAD takes an integer.
        check(unsafe { libc::ioctl(tun.as_raw_fd(), TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) })?;
    }
    // SAFETY: TUNSETPERSIST takes an integer.
    check(unsafe { libc::ioctl(tun.as_raw_fd(), TUNSETPERSIST, 1 as libc::c_ulong) })?;
    Ok(tun)
}

fn check(result: i32) -> Result<(), Errno> {
    match result {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ => Ok(()),
    }
}
