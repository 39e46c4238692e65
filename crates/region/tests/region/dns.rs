//! The resolver beside an env.

use crate::common::{Lab, config};
use danki_model::EnvId;
use danki_record::{Event, Recorder};
use danki_region::{Endpoint, Region, Sockets};
use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use std::net::{Ipv4Addr, UdpSocket};
use std::str::FromStr;
use std::time::Duration;

fn ask(server: std::net::SocketAddr, name: &str, qtype: RecordType) -> std::io::Result<Message> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(Duration::from_millis(500)))?;
    let mut query = Message::query();
    query.add_query(Query::query(Name::from_str(name).expect("a name"), qtype));
    socket.send_to(&query.to_vec().expect("encodes"), server)?;
    let mut buffer = [0; 512];
    let length = socket.recv(&mut buffer)?;
    let answer = Message::from_vec(&buffer[..length]).expect("decodes");
    assert_eq!(answer.metadata.id, query.metadata.id);
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_resolve_until_the_guard_is_dropped() {
    let (recorder, recording) = Recorder::bounded(100);
    let https = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let region =
        Region::start(config(Endpoint::default()), Sockets { https }, recorder).await.expect("starts");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("bound");
    let guard = region.serve_dns(EnvId(7), socket);

    let known = ask(address, "dynamodb.sa-east-1.amazonaws.com.", RecordType::A).expect("answered");
    let found = known.answers[0].data.ip_addr();
    assert_eq!(found, Region::service_address("dynamodb").map(std::net::IpAddr::V4));
    assert_eq!(found, Some(Ipv4Addr::new(198, 18, 1, 1).into()));
    let other = ask(address, "example.com.", RecordType::AAAA).expect("answered");
    assert_eq!(other.metadata.response_code, ResponseCode::NXDomain);

    drop(guard);
    // The task ends when it next waits; its socket goes with it.
    let mut gone = false;
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        gone = gone || ask(address, "example.com.", RecordType::A).is_err();
    }
    assert!(gone, "a dropped guard stops the resolver");

    region.stop().await;
    let seen: Vec<_> = recording
        .filter_map(|event| match event {
            Event::Dns(query) => Some((query.env, query.name, query.qtype, query.rcode)),
            _ => None,
        })
        .take(2)
        .collect();
    let row = |name: &str, qtype: &str, rcode: &str| {
        (EnvId(7), name.to_owned(), qtype.to_owned(), rcode.to_owned())
    };
    assert_eq!(seen[0], row("dynamodb.sa-east-1.amazonaws.com", "A", "NOERROR"));
    assert_eq!(seen[1], row("example.com", "AAAA", "NXDOMAIN"));
}

#[tokio::test]
async fn a_service_that_is_not_configured_has_no_name() {
    let lab = Lab::start(danki_region::Config { dynamodb: None, ..config(Endpoint::default()) }).await;
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("bound");
    let _guard = lab.region.serve_dns(EnvId(1), socket);
    let asked = tokio::task::spawn_blocking(move || {
        ask(address, "dynamodb.us-east-1.amazonaws.com.", RecordType::A).expect("answered")
    });
    assert_eq!(asked.await.expect("no panic").metadata.response_code, ResponseCode::NXDomain);
}
