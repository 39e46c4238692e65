//! The places to listen: loopback in IPv4, in IPv6 where there is one (`localhost` may mean either), and a Unix socket if asked for.

use crate::error::Error;
use rustix::net::{SocketFlags, accept_with, listen, sockopt};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Connections that the kernel completes before they are accepted; beyond them, clients try again.
const BACKLOG: i32 = 1024;

/// All listening sockets.
pub struct Listeners {
    all: Vec<OwnedFd>,
    port: u16,
    unix: Option<PathBuf>,
}

impl Listeners {
    /// Opens them. Port 0 takes a free one.
    pub fn bind(port: u16, unix: Option<&Path>) -> Result<Listeners, Error> {
        let failed = |error| Error::Listen { place: format!("port {port}"), error };
        let (first, port) = bind_tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).map_err(failed)?;
        let mut all = vec![first];
        // Without IPv6, `localhost` is the other one.
        all.extend(bind_tcp(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).map(|(listener, _)| listener));
        if let Some(path) = unix {
            let failed = |error| Error::Listen { place: path.display().to_string(), error };
            all.push(bind_unix(path).map_err(failed)?);
        }
        Ok(Listeners { all, port, unix: unix.map(Path::to_path_buf) })
    }

    /// The TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Each of them.
    pub fn all(&self) -> impl Iterator<Item = &OwnedFd> {
        self.all.iter()
    }

    /// The next connection of one of them, if there is one.
    pub fn accept(&self, index: usize) -> Option<OwnedFd> {
        // What cannot be accepted (the other side has gone, no descriptor is left) is as good as not there.
        accept_with(self.all.get(index)?, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC).ok()
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        if let Some(path) = &self.unix {
            // Whoever removed it before us has done our work.
            let _ = fs::remove_file(path);
        }
    }
}

fn bind_tcp(address: SocketAddr) -> io::Result<(OwnedFd, u16)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let listener = OwnedFd::from(listener);
    listen(&listener, BACKLOG)?;
    // Connections inherit both. An answer is one write, so there is nothing to gather; and with a TTL of 1 no router would carry a
    // packet that got out (the kernel may not know the option for this family).
    sockopt::set_tcp_nodelay(&listener, true)?;
    let _ = sockopt::set_ip_ttl(&listener, 1);
    Ok((listener, port))
}

fn bind_unix(path: &Path) -> io::Result<OwnedFd> {
    // Left behind by one that was killed; anything but a socket stays, and makes `bind` fail.
    if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(OwnedFd::from(listener))
}
