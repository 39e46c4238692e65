//! Messages between danki, the keeper and the pid 1 of each env: JSON on SOCK_SEQPACKET sockets, file descriptors beside it. A message
//! that is too large for a packet travels in a memfd, the last descriptor.

use crate::plan::{EnvPlan, ProcessPlan};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, UCred, recvmsg, sendmsg, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Below the smallest send buffer of a socket that Linux is set up with (212,992 bytes).
const INLINE_MAX: usize = 64 * 1024;

/// Descriptors in one message (the kernel's own limit is 253).
pub(crate) const FDS_MAX: usize = 128;

/// danki → keeper; with the control and the event socket of the new env.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Create {
    pub id: u32,
}

/// danki → pid 1.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The first message.
    Plan { plan: Box<EnvPlan>, staging: PathBuf },
    /// The second one; with `doors` cgroup files of version 1, a directory of version 2 if `cgroup`, and a mount for each disk of the
    /// plan that is true.
    Parts { doors: usize, cgroup: bool, disks: Vec<bool> },
    /// With the ends of the pipes for stdout and stderr.
    Spawn(ProcessPlan),
    /// Send a signal to every process but pid 1; SIGKILL is answered when all are gone.
    Kill { signal: i32 },
    /// Send a signal to the process group of one process that danki has asked for, if it still runs.
    Signal { pid: i32, signal: i32 },
}

/// Keeper or pid 1 → danki, on the control socket.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// From the keeper, with a pidfd of pid 1.
    Started { pid: i32 },
    /// From the keeper: no process.
    NotStarted { errno: i32 },
    /// With the TUN, if planned, and the sockets.
    Ready { tun: bool, caveats: Vec<String> },
    /// The plan could not be applied.
    Failed(Failure),
    /// With credentials, which carry the pid as danki sees it.
    Spawned { pid: i32 },
    /// A step before the exec failed.
    NotSpawned(Failure),
    /// The exec failed.
    NotExecuted { errno: i32 },
    /// The signal has been sent; after SIGKILL, `left` says whether some would not die.
    Killed { left: bool },
}

/// A step that failed and the kernel's reason.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub step: String,
    pub errno: i32,
}

/// Pid 1 → danki, on the event socket.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Exited {
    pub pid: i32,
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

/// Adds the step to an error.
pub(crate) trait Step<T> {
    fn step(self, step: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| {
            let error: io::Error = error.into();
            Failure { step: step(), errno: error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()) }
        })
    }
}

/// A received message.
pub(crate) struct Received<T> {
    pub body: T,
    pub fds: Vec<OwnedFd>,
    pub credentials: Option<UCred>,
}

/// A pair of connected sockets for messages.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

pub(crate) fn send(socket: impl AsFd, body: &impl Serialize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    send_as(socket, body, fds, None)
}

/// Sends with credentials, in which the kernel translates the pid for the receiver.
pub(crate) fn send_as(
    socket: impl AsFd,
    body: &impl Serialize,
    fds: &[BorrowedFd<'_>],
    credentials: Option<UCred>,
) -> io::Result<()> {
    let body = serde_json::to_vec(body).map_err(io::Error::other)?;
    if body.len() <= INLINE_MAX {
        return send_raw(socket.as_fd(), b"i", &body, fds, credentials);
    }
    let file = File::from(memfd_create("danki-message", MemfdFlags::CLOEXEC)?);
    file.write_all_at(&body, 0)?;
    let mut fds = fds.to_vec();
    fds.push(file.as_fd());
    send_raw(socket.as_fd(), b"m", &[], &fds, credentials)
}

fn send_raw(
    socket: BorrowedFd<'_>,
    kind: &[u8],
    body: &[u8],
    fds: &[BorrowedFd<'_>],
    credentials: Option<UCred>,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX), ScmCredentials(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fits = (fds.is_empty()
        || (fds.len() <= FDS_MAX && control.push(SendAncillaryMessage::ScmRights(fds))))
        && credentials.is_none_or(|c| control.push(SendAncillaryMessage::ScmCredentials(c)));
    if !fits {
        return Err(Errno::TOOBIG.into());
    }
    let parts = [IoSlice::new(kind), IoSlice::new(body)];
    loop {
        match sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            other => return Ok(other.map(|_| ())?),
        }
    }
}

/// Waits as long as the socket's timeout says. `None` at the end of the stream.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<Received<T>>> {
    let mut buffer = vec![0; INLINE_MAX + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX), ScmCredentials(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let length = loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        match recvmsg(&socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            // A peer that ended with something of ours unread is reported once, before what it sent last.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            other => break other?.bytes,
        }
    };
    let (mut fds, mut credentials) = (vec![], None);
    for message in control.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(received) => fds.extend(received),
            RecvAncillaryMessage::ScmCredentials(received) => credentials = Some(received),
            _ => {}
        }
    }
    let Some((kind, inline)) = buffer[..length].split_first() else { return Ok(None) };
    let large = if *kind == b'm' { Some(read_memfd(fds.pop())?) } else { None };
    let body = serde_json::from_slice(large.as_deref().unwrap_or(inline)).map_err(io::Error::from)?;
    Ok(Some(Received { body, fds, credentials }))
}

fn read_memfd(fd: Option<OwnedFd>) -> io::Result<Vec<u8>> {
    let file = File::from(fd.ok_or(io::ErrorKind::InvalidData)?);
    let length = usize::try_from(file.metadata()?.len()).expect("a memfd fits into memory");
    let mut body = vec![0; length];
    file.read_exact_at(&mut body, 0)?;
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(text: &str) {
        let (a, b) = pair().unwrap();
        let (r, w) = rustix::pipe::pipe().unwrap();
        send(&a, &text, &[r.as_fd()]).unwrap();
        let got = receive::<String>(&b).unwrap().unwrap();
        assert_eq!(got.body, text);
        assert_eq!(got.fds.len(), 1);
        rustix::io::write(&w, b"x").unwrap();
        assert_eq!(rustix::io::read(&got.fds[0], &mut [0; 4][..]).unwrap(), 1);
        drop(a);
        assert!(receive::<String>(&b).unwrap().is_none());
    }

    #[test]
    fn the_last_words_of_a_peer_that_did_not_listen_are_heard() {
        let (a, b) = pair().unwrap();
        send(&a, &"unheard", &[]).unwrap();
        send(&b, &"last words", &[]).unwrap();
        drop(b);
        assert_eq!(receive::<String>(&a).unwrap().unwrap().body, "last words");
        assert!(receive::<String>(&a).unwrap().is_none());
    }

    #[test]
    fn small_and_large_messages_arrive_with_descriptors() {
        round_trip("small");
        round_trip(&"large ".repeat(100_000));
    }
}
