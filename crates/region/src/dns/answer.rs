//! One datagram in, one out. Pure; `fuzz/targets/dns.rs` compiles this file with `names`, without the rest of the region.

use crate::names;
use hickory_proto::op::{Edns, Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{DNSClass, RData, Record, RecordType};
use std::net::Ipv4Addr;

/// Seconds for which AWS's answers for service endpoints may be cached: up to 60.
const TTL_S: u32 = 60;

/// Names that there are.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Services, in any region.
    pub(crate) services: Vec<&'static str>,
    /// Single hosts, in lower case.
    pub(crate) hosts: Vec<(String, Ipv4Addr)>,
}

impl Known {
    fn address(&self, host: &str) -> Option<Ipv4Addr> {
        let service = names::service_of(host).filter(|service| self.services.contains(service));
        let single = || {
            let host = host.strip_suffix('.').unwrap_or(host);
            self.hosts.iter().find(|(name, _)| name.eq_ignore_ascii_case(host)).map(|(_, address)| *address)
        };
        service.and_then(names::address).or_else(single)
    }
}

/// An answer, and what is to be recorded of it.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) bytes: Vec<u8>,
    pub(crate) name: String,
    pub(crate) qtype: String,
    pub(crate) rcode: &'static str,
}

/// Answers one datagram; none if it is not a query at all.
pub(crate) fn answer(datagram: &[u8], known: &Known) -> Option<Answered> {
    let Ok(query) = Message::from_vec(datagram) else {
        return malformed(datagram);
    };
    if query.metadata.message_type != MessageType::Query {
        return None;
    }
    let mut response = Message::response(query.metadata.id, query.metadata.op_code);
    response.metadata.recursion_desired = query.metadata.recursion_desired;
    response.metadata.recursion_available = true;
    if query.edns.is_some() {
        response.edns = Some(Edns::new());
    }
    let (rcode, name, qtype) = match &query.queries[..] {
        _ if query.metadata.op_code != OpCode::Query => (ResponseCode::NotImp, String::new(), String::new()),
        [question] => {
            let host = question.name().to_ascii();
            let address = known.address(&host);
            if let (Some(address), RecordType::A) = (address, question.query_type()) {
                let data = RData::A(A(address));
                response.add_answer(Record::from_rdata(question.name().clone(), TTL_S, data));
            }
            response.add_query(question.clone());
            let rcode = rcode(address, question.query_class());
            let name = host.strip_suffix('.').unwrap_or(&host).to_owned();
            (rcode, name, question.query_type().to_string())
        }
        _ => (ResponseCode::FormErr, String::new(), String::new()),
    };
    response.metadata.response_code = rcode;
    let bytes = response.to_vec().ok()?;
    Some(Answered { bytes, name, qtype, rcode: rcode_name(rcode) })
}

fn rcode(address: Option<Ipv4Addr>, class: DNSClass) -> ResponseCode {
    match (class, address) {
        (DNSClass::IN, Some(_)) => ResponseCode::NoError,
        (DNSClass::IN, None) => ResponseCode::NXDomain,
        _ => ResponseCode::Refused,
    }
}

/// FORMERR for a datagram that has at least the header of a query.
fn malformed(datagram: &[u8]) -> Option<Answered> {
    let [high, low, flags, ..] = datagram[..] else { return None };
    if datagram.len() < 12 || flags & 0x80 != 0 {
        return None;
    }
    let id = u16::from_be_bytes([high, low]);
    let bytes = Message::error_msg(id, OpCode::Query, ResponseCode::FormErr).to_vec().ok()?;
    Some(Answered { bytes, name: String::new(), qtype: String::new(), rcode: "FORMERR" })
}

fn rcode_name(rcode: ResponseCode) -> &'static str {
    match rcode {
        ResponseCode::NoError => "NOERROR",
        ResponseCode::NXDomain => "NXDOMAIN",
        ResponseCode::NotImp => "NOTIMP",
        ResponseCode::Refused => "REFUSED",
        _ => "FORMERR",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::op::Query;
    use hickory_proto::rr::Name;
    use proptest::prelude::*;

    fn known() -> Known {
        let database = ("db.cluster-x.us-east-1.rds.amazonaws.com".to_owned(), Ipv4Addr::new(198, 18, 4, 1));
        Known { services: vec!["dynamodb"], hosts: vec![database] }
    }

    fn query(name: &str, qtype: RecordType) -> Vec<u8> {
        let mut message = Message::query();
        message.add_query(Query::query(Name::from_ascii(name).expect("a name"), qtype));
        message.to_vec().expect("encodes")
    }

    #[test]
    fn answers() {
        let check = |name: &str, qtype: RecordType, rcode: &str, address: Option<Ipv4Addr>| {
            let answered = answer(&query(name, qtype), &known()).expect("answered");
            let message = Message::from_vec(&answered.bytes).expect("decodes");
            let found = message.answers.first().map(|record| {
                assert_eq!(record.ttl, 60);
                match record.data {
                    RData::A(A(address)) => address,
                    ref other => panic!("{other:?}"),
                }
            });
            assert_eq!((answered.rcode, found), (rcode, address), "{name} {qtype}");
            assert_eq!(message.queries[0].name().to_ascii(), name);
        };
        let here = Some(Ipv4Addr::new(198, 18, 1, 1));
        check("dynamodb.ap-northeast-1.amazonaws.com.", RecordType::A, "NOERROR", here);
        check("dYnAmOdB.eu-west-1.AMAZONAWS.com.", RecordType::A, "NOERROR", here);
        check("111122223333.ddb.us-east-1.amazonaws.com.", RecordType::A, "NOERROR", here);
        let database = Some(Ipv4Addr::new(198, 18, 4, 1));
        check("DB.cluster-x.us-east-1.rds.amazonaws.com.", RecordType::A, "NOERROR", database);
        check("x.cluster-x.us-east-1.rds.amazonaws.com.", RecordType::A, "NXDOMAIN", None);
        check("dynamodb.ap-northeast-1.amazonaws.com.", RecordType::AAAA, "NOERROR", None);
        check("ssm.ap-northeast-1.amazonaws.com.", RecordType::A, "NXDOMAIN", None);
        check("example.com.", RecordType::A, "NXDOMAIN", None);
        check("1.1.18.198.in-addr.arpa.", RecordType::PTR, "NXDOMAIN", None);
    }

    #[test]
    fn what_is_no_query_is_not_answered() {
        let mut response = query("example.com.", RecordType::A);
        response[2] |= 0x80;
        assert!(answer(&response, &known()).is_none());
        assert!(answer(&[0; 5], &known()).is_none());
        let mut broken = query("example.com.", RecordType::A);
        broken.truncate(20);
        assert_eq!(answer(&broken, &known()).map(|a| a.rcode), Some("FORMERR"));
    }

    proptest! {
        #[test]
        fn arbitrary_datagrams_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _answered = answer(&bytes, &known());
        }

        #[test]
        fn damaged_queries_never_panic(at in 0usize..50, to in any::<u8>()) {
            let mut bytes = query("dynamodb.ap-northeast-1.amazonaws.com.", RecordType::A);
            let at = at % bytes.len();
            bytes[at] = to;
            let _answered = answer(&bytes, &known());
        }
    }
}
