//! A function asks its resolver anything. An answer is a DNS message that is an answer, with the question's number, and never long enough
//! to be of use for amplification.
#![no_main]

use hickory_proto::op::{Message, MessageType};
use libfuzzer_sys::fuzz_target;

// The region's crate brings SQLite: minutes of compiling. These two files of it are all that a datagram meets.
#[path = "../../crates/region/src/dns/answer.rs"]
mod answer;
#[allow(dead_code, reason = "the region uses what is not used here")]
#[path = "../../crates/region/src/names.rs"]
mod names;

fuzz_target!(|datagram: &[u8]| {
    let hosts = vec![("db.cluster-x.us-east-1.rds.amazonaws.com".to_owned(), std::net::Ipv4Addr::new(198, 18, 4, 1))];
    let known = answer::Known { services: vec!["dynamodb", "ssm"], hosts };
    let Some(answered) = answer::answer(datagram, &known) else { return };
    let message = Message::from_vec(&answered.bytes).expect("what is answered can be read");
    assert_eq!(message.metadata.message_type, MessageType::Response);
    assert_eq!(message.metadata.id.to_be_bytes(), datagram[..2]);
    assert!(message.answers.len() <= 1 && answered.bytes.len() <= datagram.len() + 64);
});
