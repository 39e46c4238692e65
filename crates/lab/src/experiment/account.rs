//! `danki up`: what is around the functions of an account that comes to life request by request.

use super::function_dir::REGION;
use super::keys::HostKeys;
use super::{Experiment, Region};
use danki_link::Path as LinkPath;
use danki_load::Load;

impl Experiment {
    /// A region with DynamoDB and no variant: others deploy and invoke.
    pub fn account(region: Option<&str>, time_scale: f64, seed: u64) -> Experiment {
        Experiment {
            name: "up".to_owned(),
            description: String::new(),
            seed,
            repetitions: 1,
            time_scale,
            region: Region {
                name: region.unwrap_or(REGION).to_owned(),
                path: LinkPath::default(),
                dynamodb: Some(danki_region::DynamoDb::default()),
                secretsmanager: Some(danki_region::SecretsManager::default()),
                ssm: Some(danki_region::Ssm::default()),
                database: None,
                paths: Default::default(),
            },
            xray_sampling: None,
            host: HostKeys::default(),
            variants: Vec::new(),
            load: Load::Sequence { count: 1, gaps_ms: vec![0.0] },
            expect: Vec::new(),
            quick: false,
            notes: Vec::new(),
        }
    }
}
