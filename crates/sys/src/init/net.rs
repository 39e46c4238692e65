//! The network of an env, from inside of its namespace.

use crate::message::{Failure, Step};
use crate::plan::{NetPlan, SocketPlan, TunPlan};
use crate::{netlink, tun};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// What danki gets.
pub(super) struct Made {
    pub tun: Option<OwnedFd>,
    pub sockets: Vec<OwnedFd>,
}

pub(super) fn apply(plan: &NetPlan) -> Result<Made, Failure> {
    // Without this the kernel sends router solicitations into the link. Kernels without IPv6 have no such file.
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").ok();
    let mut requests = vec![netlink::link_up(netlink::LOOPBACK, None)];
    requests
        .extend(plan.loopback.iter().map(|address| netlink::add_address(netlink::LOOPBACK, *address, 32)));
    requests.extend(plan.local_any.map(|(net, prefix)| netlink::add_local(net, prefix)));
    let tun = match &plan.tun {
        None => None,
        Some(wanted) => {
            let device = tun::create(wanted).step(|| "create a TUN on /dev/net/tun".to_owned())?;
            requests.extend(on_tun(wanted, &plan.routes)?);
            Some(device)
        }
    };
    netlink::apply(&requests).map_err(|(step, errno)| Failure { step, errno: errno.raw_os_error() })?;
    let sockets = plan.sockets.iter().map(socket).collect::<Result<_, _>>()?;
    Ok(Made { tun, sockets })
}

fn on_tun(plan: &TunPlan, routes: &[(Ipv4Addr, u8)]) -> Result<Vec<netlink::Request>, Failure> {
    let any = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let index = any
        .and_then(|socket| rustix::net::netdevice::name_to_index(&socket, tun::NAME))
        .step(|| "find the TUN".to_owned())?;
    let mut requests =
        vec![netlink::add_address(index, plan.address, plan.prefix), netlink::link_up(index, Some(plan.mtu))];
    requests.extend(routes.iter().map(|(net, prefix)| netlink::add_route(index, *net, *prefix)));
    if plan.default_route {
        requests.push(netlink::add_route(index, Ipv4Addr::UNSPECIFIED, 0));
    }
    Ok(requests)
}

fn socket(plan: &SocketPlan) -> Result<OwnedFd, Failure> {
    match plan {
        SocketPlan::Tcp { addr, backlog } => bound(SocketType::STREAM, addr)
            .and_then(|socket| {
                listen(&socket, *backlog)?;
                Ok(socket)
            })
            .step(|| format!("listen on TCP {addr}")),
        SocketPlan::Udp { addr } => bound(SocketType::DGRAM, addr).step(|| format!("bind UDP {addr}")),
    }
}

fn bound(kind: SocketType, addr: &SocketAddr) -> Result<OwnedFd, rustix::io::Errno> {
    let family = if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, addr)?;
    Ok(socket)
}
