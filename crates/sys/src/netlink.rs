//! Just enough rtnetlink: addresses, routes and links of a new network namespace, all in one request. Messages are bytes made by pure
//! functions (rtnetlink(7)); each is acknowledged by the kernel.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use std::net::Ipv4Addr;

/// Index of `lo` in every network namespace: it is the first device.
pub(crate) const LOOPBACK: u32 = 1;

/// Something to do, and its words for an error.
pub(crate) struct Request {
    pub what: String,
    bytes: Vec<u8>,
}

/// NETLINK_ROUTE is 0, the default.
const ROUTE: Option<Protocol> = None;
const HEADER: usize = 16;
/// Offset of `nlmsg_seq`.
const SEQUENCE: usize = 8;
const NLMSG_ERROR: u16 = 2;
/// NLM_F_REQUEST | NLM_F_ACK
const CHANGE: u16 = 0x1 | 0x4;
/// CHANGE | NLM_F_CREATE | NLM_F_EXCL
const CREATE: u16 = CHANGE | 0x400 | 0x200;
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const IFLA_MTU: u16 = 4;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const AF_INET: u8 = 2;
const IFF_UP: u32 = 1;
const TABLE_MAIN: u8 = 254;
const TABLE_LOCAL: u8 = 255;
const PROTOCOL_STATIC: u8 = 4;
const SCOPE_LINK: u8 = 253;
const SCOPE_HOST: u8 = 254;
const TYPE_UNICAST: u8 = 1;
const TYPE_LOCAL: u8 = 2;

/// `ip link set dev INDEX [mtu MTU] up`
pub(crate) fn link_up(index: u32, mtu: Option<u32>) -> Request {
    let mut body = vec![0; 4];
    body.extend(index.to_ne_bytes());
    body.extend(IFF_UP.to_ne_bytes());
    body.extend(IFF_UP.to_ne_bytes());
    if let Some(mtu) = mtu {
        attribute(&mut body, IFLA_MTU, &mtu.to_ne_bytes());
    }
    message(format!("set link {index} up with mtu {mtu:?}"), (RTM_NEWLINK, CHANGE), &body)
}

/// `ip address add ADDRESS/PREFIX dev INDEX`
pub(crate) fn add_address(index: u32, address: Ipv4Addr, prefix: u8) -> Request {
    let scope = if index == LOOPBACK { SCOPE_HOST } else { 0 };
    let mut body = vec![AF_INET, prefix, 0, scope];
    body.extend(index.to_ne_bytes());
    attribute(&mut body, IFA_LOCAL, &address.octets());
    attribute(&mut body, IFA_ADDRESS, &address.octets());
    message(format!("add address {address}/{prefix} to link {index}"), (RTM_NEWADDR, CREATE), &body)
}

/// `ip route add NET/PREFIX dev INDEX`
pub(crate) fn add_route(index: u32, net: Ipv4Addr, prefix: u8) -> Request {
    route(
        format!("add route {net}/{prefix}"),
        index,
        net,
        prefix,
        [TABLE_MAIN, PROTOCOL_STATIC, SCOPE_LINK, TYPE_UNICAST],
    )
}

/// `ip route add local NET/PREFIX dev lo`
pub(crate) fn add_local(net: Ipv4Addr, prefix: u8) -> Request {
    let kind = [TABLE_LOCAL, PROTOCOL_STATIC, SCOPE_HOST, TYPE_LOCAL];
    route(format!("make {net}/{prefix} local"), LOOPBACK, net, prefix, kind)
}

fn route(what: String, index: u32, net: Ipv4Addr, prefix: u8, kind: [u8; 4]) -> Request {
    let mut body = vec![AF_INET, prefix, 0, 0];
    body.extend(kind);
    body.extend([0; 4]);
    if prefix > 0 {
        attribute(&mut body, RTA_DST, &net.octets());
    }
    attribute(&mut body, RTA_OIF, &index.to_ne_bytes());
    message(what, (RTM_NEWROUTE, CREATE), &body)
}

fn attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(4 + value.len()).expect("attributes here have 4 bytes");
    body.extend(length.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
}

fn message(what: String, (kind, flags): (u16, u16), body: &[u8]) -> Request {
    let length = u32::try_from(HEADER + body.len()).expect("messages here have less than 100 bytes");
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    Request { what, bytes }
}

/// Does all of them, in order. The first that is refused is returned with the reason.
pub(crate) fn apply(requests: &[Request]) -> Result<(), (String, Errno)> {
    let failed = |errno| ("talk to rtnetlink".to_owned(), errno);
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, ROUTE).map_err(failed)?;
    let mut batch = vec![];
    for (number, request) in requests.iter().enumerate() {
        let start = batch.len();
        batch.extend(&request.bytes);
        let sequence = u32::try_from(number).expect("a plan has few addresses");
        batch[start + SEQUENCE..start + SEQUENCE + 4].copy_from_slice(&sequence.to_ne_bytes());
    }
    send(&socket, &batch, SendFlags::empty()).map_err(failed)?;
    let mut left = requests.len();
    let mut buffer = [0; 8 * 1024];
    while left > 0 {
        let (length, _) = recv(&socket, &mut buffer[..], RecvFlags::empty()).map_err(failed)?;
        for (sequence, errno) in acknowledgements(&buffer[..length]) {
            left = left.saturating_sub(1);
            if errno != 0 {
                let what = requests.get(sequence as usize).map_or(String::new(), |r| r.what.clone());
                return Err((what, Errno::from_raw_os_error(errno)));
            }
        }
    }
    Ok(())
}

/// `(sequence, errno)` of every acknowledgement in what the kernel sent.
fn acknowledgements(mut bytes: &[u8]) -> Vec<(u32, i32)> {
    let mut found = vec![];
    while bytes.len() >= HEADER + 4 {
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let kind = u16::from_ne_bytes(bytes[4..6].try_into().expect("two bytes"));
        if kind == NLMSG_ERROR {
            found.push((word(SEQUENCE), -word(HEADER).cast_signed()));
        }
        let length = (word(0) as usize).next_multiple_of(4).max(HEADER);
        bytes = bytes.get(length..).unwrap_or_default();
    }
    found
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    fn check(request: &Request, expect: &str) {
        let hex: Vec<String> = request.bytes.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex.concat(), expect.replace(' ', ""), "{}", request.what);
    }

    #[test]
    fn messages_are_what_iproute2_sends() {
        check(
            &link_up(2, Some(1500)),
            "28000000 1000 0500 00000000 00000000 00000000 02000000 01000000 01000000 0800 0400 dc050000",
        );
        check(
            &add_address(1, Ipv4Addr::new(169, 254, 100, 1), 32),
            "28000000 1400 0506 00000000 00000000 02 20 00 fe 01000000 0800 0200 a9fe6401 0800 0100 a9fe6401",
        );
        check(
            &add_route(2, Ipv4Addr::UNSPECIFIED, 0),
            "24000000 1800 0506 00000000 00000000 02 00 00 00 fe 04 fd 01 00000000 0800 0400 02000000",
        );
        check(
            &add_local(Ipv4Addr::new(198, 18, 0, 0), 15),
            "2c000000 1800 0506 00000000 00000000 02 0f 00 00 ff 04 fe 02 00000000 0800 0100 c6120000 0800 0400 01000000",
        );
    }

    #[test]
    fn acknowledgements_are_read() {
        let ack = |sequence: u32, errno: i32| {
            let mut bytes = 36u32.to_ne_bytes().to_vec();
            bytes.extend(NLMSG_ERROR.to_ne_bytes());
            bytes.extend([0; 2]);
            bytes.extend(sequence.to_ne_bytes());
            bytes.extend([0; 4]);
            bytes.extend((-errno).to_ne_bytes());
            bytes.extend([0; 16]);
            bytes
        };
        assert_eq!(acknowledgements(&[ack(0, 0), ack(1, 17)].concat()), [(0, 0), (1, 17)]);
        assert_eq!(acknowledgements(&[1, 2, 3]), []);
        assert_eq!(acknowledgements(&[0; 40]), []);
    }
}
