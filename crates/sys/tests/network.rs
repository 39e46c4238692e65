//! The network of an env: its TUN is the only way out, and what danki has put beside it answers.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test code, but clippy knows only test functions"
)]

mod support;

use danki_sys::ExitStatus;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;
use support::*;

/// `virtio_net_hdr` before each packet.
const HEADER: usize = 10;

fn read_packet(tun: &OwnedFd) -> Vec<u8> {
    let mut buffer = vec![0; 70_000];
    assert!(readable(tun, PATIENCE), "no packet came");
    let length = rustix::io::read(tun, &mut buffer[..]).unwrap();
    buffer.truncate(length);
    buffer
}

#[test]
fn packets_leave_through_the_tun_and_come_back() {
    if !is_root("network") {
        return;
    }
    let keeper = keeper("tun");
    let mut sandbox = keeper.create(&plan(1)).unwrap();
    let tun = sandbox.take_tun().unwrap();
    let script = "exec 3<>/dev/tcp/198.18.1.1/443 && echo connected; echo $?";
    let spawned = sandbox.spawn(&program(&["/bin/bash", "-c", script])).unwrap();
    let packet = read_packet(&tun);
    let (ip, tcp) = (&packet[HEADER..], &packet[HEADER + 20..]);
    assert_eq!((ip[0], ip[9]), (0x45, 6), "TCP over IPv4, the first packet of all");
    assert_eq!(&ip[12..20], &[10, 0, 0, 1, 198, 18, 1, 1]);
    assert_eq!((&tcp[2..4], tcp[13]), (&443u16.to_be_bytes()[..], 2), "SYN");
    let reset = reset_for(ip);
    assert_eq!(rustix::io::write(&tun, &reset).unwrap(), reset.len());
    exit_of(&sandbox, spawned.inner_pid);
    let mut err = String::new();
    std::fs::File::from(spawned.stderr).read_to_string(&mut err).unwrap();
    assert!(err.contains("Connection refused"), "{err}");
}

/// RST to a SYN: addresses and ports swapped; the kernel is told that the checksum is fine.
fn reset_for(syn: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0];
    ip.extend(&syn[16..20]);
    ip.extend(&syn[12..16]);
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut tcp = [&syn[22..24], &syn[20..22], &[0; 4]].concat();
    tcp.extend((u32::from_be_bytes(syn[24..28].try_into().unwrap()).wrapping_add(1)).to_be_bytes());
    tcp.extend([0x50, 0x14, 0, 0, 0, 0, 0, 0]);
    let mut pseudo = [&ip[12..20], &[0, 6, 0, 20], &tcp].concat();
    let sum = checksum(&pseudo);
    pseudo.clear();
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    [vec![0; HEADER], ip, tcp].concat()
}

fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)])))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[test]
fn sockets_beside_the_env_are_served_by_danki() {
    if !is_root("network") {
        return;
    }
    let keeper = keeper("beside");
    let mut sandbox = keeper.create(&plan(1)).unwrap();
    let [tcp, udp] = <[OwnedFd; 2]>::try_from(sandbox.take_sockets()).unwrap();
    let (tcp, udp) = (TcpListener::from(tcp), UdpSocket::from(udp));
    assert_eq!(tcp.local_addr().unwrap().to_string(), "169.254.100.1:9001");
    assert_eq!(udp.local_addr().unwrap().to_string(), "169.254.100.1:53");
    let script = "echo question > /dev/udp/169.254.100.1/53; exec 3<>/dev/tcp/169.254.100.1/9001; cat <&3";
    let spawned = sandbox.spawn(&program(&["/bin/bash", "-c", script])).unwrap();
    assert!(readable(&udp, PATIENCE));
    let mut buffer = [0; 100];
    let (length, from) = udp.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..length], from.ip().to_string().as_str()), (&b"question\n"[..], "169.254.100.1"));
    assert!(readable(&tcp, PATIENCE));
    let (mut stream, _) = tcp.accept().unwrap();
    stream.write_all(b"answer").unwrap();
    drop(stream);
    assert_eq!(exit_of(&sandbox, spawned.inner_pid), ExitStatus::Code(0));
    let mut out = String::new();
    std::fs::File::from(spawned.stdout).read_to_string(&mut out).unwrap();
    assert_eq!(out, "answer");
}

#[test]
fn the_hosts_loopback_is_out_of_reach() {
    if !is_root("network") {
        return;
    }
    let keeper = keeper("reach");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let any = TcpListener::bind("0.0.0.0:0").unwrap();
    let mut sandbox = keeper.create(&plan(1)).unwrap();
    let tun = sandbox.take_tun().unwrap();
    for port in [listener.local_addr().unwrap().port(), any.local_addr().unwrap().port()] {
        let (_, out, _) = output(
            &sandbox,
            &program(&["/bin/bash", "-c", &format!("exec 3<>/dev/tcp/127.0.0.1/{port} || echo refused")]),
        );
        assert_eq!(out, "refused\n");
    }
    let (_, out, _) = output(&sandbox, &program(&["/bin/bash", "-c", "cat /proc/net/dev"]));
    let devices: Vec<&str> =
        out.lines().filter_map(|l| l.split_once(':')).map(|(name, _)| name.trim()).collect();
    assert!(devices.contains(&"lo") && devices.contains(&"tun0"));
    assert!(!devices.iter().any(|name| name.starts_with("eth") || name.starts_with("en")), "{devices:?}");
    for listener in [listener, any] {
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "nobody has come");
    }
    assert!(!readable(&tun, Duration::from_millis(1)), "nothing was sent outside");
}

#[test]
fn a_region_is_a_network_without_processes() {
    if !is_root("network") {
        return;
    }
    let keeper = keeper("region");
    let mut planned = plan(0);
    planned.root = None;
    let region = std::net::Ipv4Addr::new(198, 18, 0, 0);
    planned.net.local_any = Some((region, 15));
    planned.net.loopback.clear();
    planned.net.tun.as_mut().unwrap().address = std::net::Ipv4Addr::new(198, 18, 0, 1);
    planned.net.sockets =
        vec![danki_sys::plan::SocketPlan::Tcp { addr: "0.0.0.0:443".parse().unwrap(), backlog: 8 }];
    let mut sandbox = keeper.create(&planned).unwrap();
    let listener = TcpListener::from(sandbox.take_sockets().remove(0));
    let netns = sandbox.netns().unwrap();
    let connected = std::thread::spawn(move || {
        use rustix::fd::AsFd;
        rustix::thread::move_into_link_name_space(netns.as_fd(), None).unwrap();
        std::net::TcpStream::connect("198.19.200.3:443").map(|s| s.peer_addr().unwrap().to_string())
    });
    assert!(readable(&listener, PATIENCE));
    let (stream, _) = listener.accept().unwrap();
    assert_eq!(
        stream.local_addr().unwrap().to_string(),
        "198.19.200.3:443",
        "every address of the region is its own"
    );
    assert_eq!(connected.join().unwrap().unwrap(), "198.19.200.3:443");
}
