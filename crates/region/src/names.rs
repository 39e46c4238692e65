//! AWS's host names, and the address that each service has here.

use std::net::Ipv4Addr;

/// Services by their endpoint prefix, and their address: one /24 of 198.18.0.0/15 (RFC 2544, never routed) each.
const SERVICES: [(&str, Ipv4Addr); 3] = [
    ("dynamodb", Ipv4Addr::new(198, 18, 1, 1)),
    ("secretsmanager", Ipv4Addr::new(198, 18, 2, 1)),
    ("ssm", Ipv4Addr::new(198, 18, 3, 1)),
];

/// Domains of the commercial regions, of China, and of dual-stack endpoints.
const DOMAINS: [&str; 3] = [".amazonaws.com", ".amazonaws.com.cn", ".api.aws"];

/// The address of a service in the region.
pub(crate) fn address(service: &str) -> Option<Ipv4Addr> {
    SERVICES.iter().find(|(name, _)| *name == service).map(|(_, address)| *address)
}

/// The service that has this address.
pub(crate) fn service_at(address: Ipv4Addr) -> Option<&'static str> {
    SERVICES.iter().find(|(_, a)| *a == address).map(|(name, _)| *name)
}

/// The service that a host name belongs to, in whichever region: `dynamodb.eu-west-1.amazonaws.com`, its FIPS and
/// streams variants, and the account endpoints of newer SDKs, `111122223333.ddb.eu-west-1.amazonaws.com`.
pub(crate) fn service_of(host: &str) -> Option<&'static str> {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let rest = DOMAINS.iter().find_map(|domain| host.strip_suffix(domain))?;
    let labels: Vec<&str> = rest.split('.').collect();
    let (service, region) = match labels[..] {
        [service, region] => (service.strip_suffix("-fips").unwrap_or(service), region),
        ["streams", "dynamodb", region] => ("dynamodb", region),
        [account, "ddb" | "ddb-fips", region] if is_account(account) => ("dynamodb", region),
        _ => return None,
    };
    let known = SERVICES.iter().find(|(name, _)| *name == service)?;
    is_region(region).then_some(known.0)
}

fn is_account(label: &str) -> bool {
    label.len() == 12 && label.bytes().all(|b| b.is_ascii_digit())
}

/// `us-east-1`, `us-gov-west-1`: letters in at least two parts, then a number.
fn is_region(label: &str) -> bool {
    let parts: Vec<&str> = label.split('-').collect();
    let Some((number, words)) = parts.split_last() else {
        return false;
    };
    let word = |w: &&str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_lowercase());
    words.len() >= 2
        && words.iter().all(word)
        && !number.is_empty()
        && number.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names() {
        let check = |host: &str, expect: Option<&str>| assert_eq!(service_of(host), expect, "{host}");
        check("dynamodb.ap-northeast-1.amazonaws.com", Some("dynamodb"));
        check("DynamoDB.us-gov-west-1.amazonaws.com.", Some("dynamodb"));
        check("dynamodb-fips.us-east-1.amazonaws.com", Some("dynamodb"));
        check("streams.dynamodb.eu-west-1.amazonaws.com", Some("dynamodb"));
        check("123456789012.ddb.eu-west-1.amazonaws.com", Some("dynamodb"));
        check("dynamodb.cn-north-1.amazonaws.com.cn", Some("dynamodb"));
        check("dynamodb.us-west-2.api.aws", Some("dynamodb"));
        check("ssm.us-west-2.amazonaws.com", Some("ssm"));
        check("secretsmanager.us-west-2.amazonaws.com", Some("secretsmanager"));
        for none in [
            "",
            ".",
            "amazonaws.com",
            ".amazonaws.com",
            "dynamodb.amazonaws.com",
            "dynamodb.moon.amazonaws.com",
            "dynamodb.us-east-.amazonaws.com",
            "sts.us-east-1.amazonaws.com",
            "12345.ddb.eu-west-1.amazonaws.com",
            "dynamodb.us-east-1.amazonaws.com.evil.example",
            "example.com",
        ] {
            check(none, None);
        }
    }

    #[test]
    fn addresses_and_services_are_one_to_one() {
        for (service, _) in SERVICES {
            assert_eq!(address(service).and_then(service_at), Some(service));
        }
        assert_eq!(address("s3"), None);
    }
}
