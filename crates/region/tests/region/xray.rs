//! The daemon beside an env, as an SDK uses it.

use crate::common::{Lab, ca_dir};
use danki_model::EnvId;
use danki_record::Event;
use danki_region::Config;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};

const DOCUMENT: &str = r#"{"id":"53995c3f42cd8ad8","name":"hit","trace_id":"1-581cf771-a006649127e371903a2de979","start_time":1.4E9,"end_time":1.5E9,"type":"subsegment","parent_id":"6b55dcc497934f1a"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn documents_become_facts_and_sampling_rules_are_answered() {
    let lab = Lab::start(Config { ca_dir: Some(ca_dir()), ..Config::default() }).await;
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let (to_udp, to_tcp) = (udp.local_addr().expect("bound"), tcp.local_addr().expect("bound"));
    let guard = lab.region.serve_xray(EnvId(3), udp, tcp).expect("served");

    let asked = tokio::task::spawn_blocking(move || {
        let client = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        client.send_to(b"nonsense", to_udp).expect("sent");
        let datagram = format!("{{\"format\":\"json\",\"version\":1}}\n{DOCUMENT}");
        client.send_to(datagram.as_bytes(), to_udp).expect("sent");
        let mut http = TcpStream::connect(to_tcp).expect("connected");
        let request =
            "POST /GetSamplingRules HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        http.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        http.read_to_string(&mut answer).expect("answered");
        answer
    });
    let answer = asked.await.expect("no panic");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"RuleName\":\"Default\""), "{answer}");
    let events = lab.events_until(|event| matches!(event, Event::Segment(_))).await;
    drop(guard);
    let caveat = events.iter().any(
        |e| matches!(e, Event::Caveat { text } if text.contains("env-3") && text.contains("header line")),
    );
    assert!(caveat, "{events:?}");
    let Some(Event::Segment(segment)) = events.last() else { panic!("{events:?}") };
    assert_eq!((segment.env, segment.document["name"].as_str()), (EnvId(3), Some("hit")));
}
