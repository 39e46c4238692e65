//! epoll, the timer before the next release, and the wake-up for commands.

use crate::Error;
use rustix::event::epoll;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    Command,
    Timer,
    Region,
    Env(u32),
    /// The env's TUN is going away. It must be removed, or it would be reported without end.
    Broken(u32),
}

const COMMAND: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const REGION: u64 = u64::MAX - 2;

/// Descriptors looked at per turn; the kernel rotates, so that all come round.
const EVENTS: usize = 64;

pub(crate) struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
    armed_ns: Option<u64>,
}

/// Turns an errno into an [`Error`] that says what was asked for.
pub(crate) fn os(what: &'static str) -> impl Fn(rustix::io::Errno) -> Error {
    move |errno| Error::Os { what, source: errno.into() }
}

impl Poller {
    pub(crate) fn new(wake: BorrowedFd<'_>) -> Result<Poller, Error> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(os("cannot create an epoll"))?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(os("cannot create a timer"))?;
        let poller = Poller { epoll, timer, armed_ns: None };
        poller.add(wake, COMMAND)?;
        poller.add(poller.timer.as_fd(), TIMER)?;
        Ok(poller)
    }

    pub(crate) fn add_region(&self, fd: BorrowedFd<'_>) -> Result<(), Error> {
        set_nonblocking(fd)?;
        self.add(fd, REGION)
    }

    pub(crate) fn add_env(&self, port: u32, fd: BorrowedFd<'_>) -> Result<(), Error> {
        set_nonblocking(fd)?;
        self.add(fd, u64::from(port))
    }

    /// Stops reporting a descriptor; one that is not reported is fine.
    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    fn add(&self, fd: BorrowedFd<'_>, token: u64) -> Result<(), Error> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), epoll::EventFlags::IN)
            .map_err(os("cannot watch a descriptor"))
    }

    /// What is ready now, or, with `block`, once something is. The timer fires at `wake_ns`.
    pub(crate) fn wait(
        &mut self,
        block: bool,
        wake_ns: Option<u64>,
        ready: &mut Vec<Ready>,
    ) -> Result<(), Error> {
        ready.clear();
        if block {
            self.arm(wake_ns)?;
        }
        let timeout = if block { None } else { Some(&Timespec { tv_sec: 0, tv_nsec: 0 }) };
        let mut events = [MaybeUninit::uninit(); EVENTS];
        let events = match epoll::wait(&self.epoll, &mut events[..], timeout) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(errno) => return Err(os("cannot wait")(errno)),
        };
        for event in events {
            let flags = event.flags; // a copy: the struct is packed
            ready.push(match event.data.u64() {
                COMMAND => Ready::Command,
                TIMER => Ready::Timer,
                REGION => Ready::Region,
                // A TUN that is being unregistered reports an error and nothing else (drivers/net/tun.c).
                port if !flags.contains(epoll::EventFlags::IN) => Ready::Broken(port as u32),
                port => Ready::Env(port as u32),
            });
        }
        if ready.contains(&Ready::Timer) {
            self.armed_ns = None;
            let _ = rustix::io::read(&self.timer, &mut [0; 8]);
        }
        Ok(())
    }

    fn arm(&mut self, wake_ns: Option<u64>) -> Result<(), Error> {
        if self.armed_ns == wake_ns {
            return Ok(());
        }
        // All zero disarms; a release at time 0 of the clock does not happen.
        let at_ns = wake_ns.unwrap_or(0) as i64;
        let it_value = Timespec { tv_sec: at_ns / 1_000_000_000, tv_nsec: at_ns % 1_000_000_000 };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once).map_err(os("cannot set a timer"))?;
        self.armed_ns = wake_ns;
        Ok(())
    }
}

fn set_nonblocking(fd: BorrowedFd<'_>) -> Result<(), Error> {
    let flags = fcntl_getfl(fd).map_err(os("cannot read a tun's flags"))?;
    fcntl_setfl(fd, flags | OFlags::NONBLOCK).map_err(os("cannot make a tun non-blocking"))
}
