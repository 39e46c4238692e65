//! What a user may say about the region. Defaults are sourced; `time_scale` divides idle cut-offs and nothing else.

use crate::Error;
use crate::behaviour::Endpoint;
use crate::kind::Kind;
use crate::seeds::{Parameter, Secret, SecretsManager, Ssm};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// The region as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// AWS region, e.g. `ap-northeast-1`. Names of every region resolve; this one's certificate is made ahead.
    pub region_name: String,
    /// DynamoDB; without it its name does not exist.
    pub dynamodb: Option<DynamoDb>,
    /// Secrets Manager; without it its name does not exist.
    pub secretsmanager: Option<SecretsManager>,
    /// Parameter Store; without it its name does not exist.
    pub ssm: Option<Ssm>,
    /// Further names and their addresses, behind which somebody else serves.
    #[serde(skip)]
    pub hosts: Vec<(String, Ipv4Addr)>,
    /// Seed of everything drawn here.
    pub seed: u64,
    /// Divides idle cut-offs, 1 to 10.
    pub time_scale: f64,
    /// Directory that keeps the CA's keys from run to run, because RSA keys take long to make. None: made anew.
    pub ca_dir: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            region_name: "us-east-1".to_owned(),
            dynamodb: None,
            secretsmanager: None,
            ssm: None,
            hosts: Vec::new(),
            seed: 1,
            time_scale: 1.0,
            ca_dir: None,
        }
    }
}

/// DynamoDB: what is in it, and how its endpoint behaves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DynamoDb {
    /// Tables that exist from the start; not used with an upstream.
    pub tables: Vec<Table>,
    /// The endpoint.
    pub endpoint: Endpoint,
}

/// A table that exists from the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Partition key: attribute and type, `["id", "N"]`.
    pub hash_key: (String, KeyType),
    /// Sort key: attribute and type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_key: Option<(String, KeyType)>,
    /// Secondary indexes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<Index>,
    /// Items in plain JSON: numbers become `N`, strings `S`, objects `M`, arrays `L`.
    #[serde(default)]
    pub items: Vec<serde_json::Value>,
}

/// A secondary index of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// A local one: its partition key is the table's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
    /// Partition key: attribute and type.
    pub hash_key: (String, KeyType),
    /// Sort key: attribute and type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_key: Option<(String, KeyType)>,
    /// Attributes that it has beside the keys; absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include: Option<Vec<String>>,
}

/// Type of a key attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyType {
    /// String.
    S,
    /// Number.
    N,
    /// Binary.
    B,
}

impl Config {
    /// Checks what the types cannot.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        if !(1.0..=10.0).contains(&self.time_scale) {
            let (key, value) = ("time_scale".to_owned(), self.time_scale.to_string());
            return Err(Error::Setting { key, value, allowed: "1 to 10" });
        }
        self.endpoints().try_for_each(|(kind, endpoint)| endpoint.validate(kind.name()))?;
        let secrets = self.secretsmanager.iter().flat_map(|s| &s.secrets).map(Secret::validate);
        let parameters = self.ssm.iter().flat_map(|s| &s.parameters).map(Parameter::validate);
        secrets.chain(parameters).collect()
    }

    /// The services that there are, and how their endpoints behave.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = (Kind, &Endpoint)> {
        let dynamodb = self.dynamodb.as_ref().map(|s| (Kind::DynamoDb, &s.endpoint));
        let secretsmanager = self.secretsmanager.as_ref().map(|s| (Kind::SecretsManager, &s.endpoint));
        let ssm = self.ssm.as_ref().map(|s| (Kind::Ssm, &s.endpoint));
        [dynamodb, secretsmanager, ssm].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TlsVersion;

    #[test]
    fn an_experiments_section() {
        let text = r#"
            [[tables]]
            name = "test"
            hash_key = ["id", "N"]
            items = [{ id = 1, name = "one" }]
            [endpoint]
            idle_cutoff_ms = 1000
            service_time = { median_ms = 3, p99_ms = 8 }
            tls = { max = "1.2" }
            faults = [{ kind = "throttle", ratio = 0.1 }, { kind = "reset", every = 5, after = 2 }]
        "#;
        let read: DynamoDb = toml::from_str(text).expect("valid");
        assert_eq!(read.tables[0].hash_key, ("id".to_owned(), KeyType::N));
        assert_eq!(read.tables[0].items, [serde_json::json!({"id": 1, "name": "one"})]);
        assert_eq!(read.endpoint.faults[1].after, 2);
        assert_eq!(read.endpoint.tls.min, TlsVersion::V12);
        let config = Config { dynamodb: Some(read.clone()), ..Config::default() };
        config.validate().expect("valid");
        let written = toml::to_string(&read).expect("written");
        assert_eq!(toml::from_str::<DynamoDb>(&written).expect("read again"), read);
    }

    #[test]
    fn defaults_are_dynamodbs() {
        let read: DynamoDb = toml::from_str("").expect("empty is valid");
        assert_eq!(read, DynamoDb::default());
        let timing = read.endpoint.timing(Kind::DynamoDb);
        assert_eq!(timing.idle_cutoff_ms, 62_500);
        assert!([timing.read, timing.write].into_iter().flatten().all(|d| d.max_ms() < 10.0));
        let upstream = Endpoint { upstream: Some("http://127.0.0.1:8000".to_owned()), ..Endpoint::default() };
        assert_eq!(upstream.timing(Kind::DynamoDb).read, None);
    }

    #[test]
    fn stores_are_seeded_and_rotated() {
        let text = r#"
            [secretsmanager]
            [[secretsmanager.secrets]]
            name = "db"
            value = { user = "u", password = "p" }
            rotate_after_s = 5
            rotate_to = "text"
            [ssm.endpoint]
            rate_per_s = 10
            [[ssm.parameters]]
            name = "/a"
            value = "b"
            type = "SecureString"
        "#;
        let config: Config = toml::from_str(text).expect("valid");
        config.validate().expect("valid");
        let secret = &config.secretsmanager.as_ref().expect("there").secrets[0];
        assert_eq!(secret.text().as_deref(), Some(r#"{"password":"p","user":"u"}"#));
        let written = toml::to_string(&config).expect("written");
        assert_eq!(toml::from_str::<Config>(&written).expect("read again"), config);
    }

    #[test]
    fn refused_settings_are_named() {
        let check = |text: &str, expect: &str| {
            let said = match toml::from_str::<Config>(text) {
                Err(error) => error.to_string(),
                Ok(config) => config.validate().expect_err("must be refused").to_string(),
            };
            assert!(said.contains(expect), "{text}: {said}");
        };
        check("time_scale = 11", "time_scale");
        check("time_scale = nan", "time_scale");
        check("regoin_name = 'x'", "regoin_name");
        check("[dynamodb.endpoint]\nfaults = [{ kind = 'reset' }]", "exactly one of ratio and every");
        check("[dynamodb.endpoint]\nfaults = [{ kind = 'reset', every = 0 }]", "faults[0].every");
        check("[dynamodb.endpoint]\nfaults = [{ kind = 'reset', ratio = 2 }]", "faults[0].ratio");
        check("[dynamodb.endpoint]\nfaults = [{ kind = 'melt', ratio = 1 }]", "melt");
        check("[dynamodb.endpoint.tls]\nmin = '1.3'\nmax = '1.2'", "tls.min");
        check("[ssm.endpoint]\nrate_per_s = 0", "ssm.endpoint.rate_per_s");
        check("[[secretsmanager.secrets]]\nname = 'a'", "exactly one of value and binary");
        check("[[secretsmanager.secrets]]\nname = 'a'\nvalue = 'b'\nrotate_to = 'c'", "rotate_after_s");
        check("[[ssm.parameters]]\nname = '/a'\nvalue = 'b'\ntype = 'Strong'", "Strong");
        check("[dynamodb.endpoint]\nservice_time = { mean_ms = 1 }", "mean_ms");
    }
}
