//! A function reaches the region and nothing else.

#![allow(clippy::unwrap_used, reason = "test code, but clippy knows only test functions")]

use danki_testkit::{Lab, Settings, skipped};
use serde_json::json;
use std::net::{TcpListener, UdpSocket};

const CONNECT: &str = "
import errno, os, socket, time
def handler(event, context):
    tried = {}
    for kind, host, port in event.get('to', []):
        s = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET, socket.SOCK_STREAM if kind == 'tcp' else socket.SOCK_DGRAM)
        s.settimeout(0.4)
        begin = time.monotonic()
        try:
            s.connect((host, port))
            if kind == 'udp':
                s.send(b'?')
                s.recv(10)
            result = 'reached'
        except socket.timeout:
            result = 'timeout'
        except OSError as e:
            result = errno.errorcode[e.errno]
        tried['%s %s:%d' % (kind, host, port)] = [result, time.monotonic() - begin]
        s.close()
    interfaces = sorted(os.listdir('/sys/class/net')) if os.path.isdir('/sys/class/net') else None
    links = [l.split(':')[0].strip() for l in open('/proc/net/dev') if ':' in l]
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.connect(('198.18.1.1', 1))
    return {'tried': tried, 'links': sorted(links), 'address': own.getsockname()[0], 'interfaces': interfaces}
";

#[test]
fn no_way_to_the_host_to_other_envs_or_outside() {
    if skipped("isolation") {
        return;
    }
    let tcp = TcpListener::bind("0.0.0.0:0").unwrap();
    let udp = UdpSocket::bind("0.0.0.0:0").unwrap();
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    let lab = Lab::start("isolation", Settings::default()).unwrap();
    let code = lab.write("lambda_function.py", CONNECT).unwrap();
    let mut spec = code;
    (spec.timeout_ms, spec.memory) = (30_000, 1_769.try_into().unwrap());
    let other = lab.deploy(spec.clone()).unwrap();
    let neighbour = other.invoke(&json!({})).unwrap().json()["address"].as_str().unwrap().to_owned();
    assert!(neighbour.starts_with("10."), "{neighbour}");
    let mut to = vec![
        json!(["tcp", "127.0.0.1", tcp_port]),
        json!(["udp", "127.0.0.1", udp_port]),
        json!(["tcp", "192.0.2.1", 80]),
        json!(["tcp", "1.1.1.1", 443]),
        json!(["udp", "1.1.1.1", 53]),
        json!(["tcp", "169.254.169.254", 80]),
        json!(["tcp", "::1", tcp_port]),
        json!(["tcp", "2606:4700:4700::1111", 443]),
        json!(["tcp", "198.18.0.1", 22]),
        // The neighbour's Runtime API and an address where it might listen.
        json!(["tcp", neighbour, 9001]),
        json!(["tcp", neighbour, 22]),
    ];
    to.extend(host_addresses().iter().map(|address| json!(["tcp", address, tcp_port])));
    let function = lab.deploy(spec).unwrap();
    let reply = function.invoke(&json!({ "to": to })).unwrap();
    assert_eq!(reply.function_error, None, "{}", reply.text());
    let seen = reply.json();
    assert_ne!(seen["address"], json!(neighbour));
    for (target, result) in seen["tried"].as_object().unwrap() {
        assert_ne!(result[0], "reached", "{target}");
        assert!(result[1].as_f64().unwrap() < 1.0, "{target} took {result}");
    }
    assert_eq!(seen["links"].as_array().unwrap().len(), 2, "its own lo and one card: {}", seen["links"]);
    assert_eq!(tcp.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "nobody came");
    assert_eq!(udp.recv(&mut [0; 8]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "nothing came");
    let recorded = lab.stop().unwrap();
    assert!(recorded.link.dropped_no_route > 0, "the link saw the packets and had nowhere to send them");
    assert_eq!(recorded.left, Vec::<String>::new());
}

/// Addresses of the machine's own interfaces.
fn host_addresses() -> Vec<String> {
    let out = |to: &str| -> Option<String> {
        let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
        socket.connect(to).ok()?;
        Some(socket.local_addr().ok()?.ip().to_string())
    };
    out("192.0.2.1:9").into_iter().filter(|address| !address.starts_with("127.")).collect()
}

#[test]
fn names_outside_of_the_region_do_not_exist() {
    if skipped("names") {
        return;
    }
    let lab = Lab::start("names", Settings::default()).unwrap();
    let code = "
import socket
def handler(event, context):
    found = {}
    for name in event['names']:
        try:
            found[name] = sorted({a[4][0] for a in socket.getaddrinfo(name, 443, type=socket.SOCK_STREAM)})
        except socket.gaierror as e:
            found[name] = e.strerror
    return found
";
    let resolver = lab.deploy(lab.write("lambda_function.py", code).unwrap()).unwrap();
    let names = ["dynamodb.eu-west-3.amazonaws.com", "example.com", "localhost"];
    let found = resolver.invoke(&json!({ "names": names })).unwrap().json();
    assert_eq!(found[names[0]], json!(["198.18.1.1"]));
    assert_eq!(found[names[1]], "Name or service not known");
    assert_eq!(found[names[2]], json!(["127.0.0.1"]));
    assert_eq!(lab.stop().unwrap().left, Vec::<String>::new());
}
