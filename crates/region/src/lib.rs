//! The region: what a function finds on the other side of its network, under AWS's own names.
//!
//! One listener for HTTPS (bound to every address of the region's network namespace), one DNS socket beside each env,
//! and a CA that signs a certificate for whatever name is asked for. Behind the listener stand endpoints: DynamoDB,
//! Secrets Manager and Parameter Store by engines in this process, or any other server that speaks their protocol (`upstream`). An endpoint decides *when*
//! it answers ([`Endpoint`]): a seeded service time, extra for the first request on a connection, an idle cut-off,
//! injected faults. Each request and each DNS query becomes a fact in the recorder.
//!
//! ```no_run
//! # async fn f(recorder: danki_record::Recorder) -> Result<(), danki_region::Error> {
//! use danki_region::{Config, DynamoDb, Region, Sockets};
//! let https = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
//! let config = Config { dynamodb: Some(DynamoDb::default()), ..Config::default() };
//! let region = Region::start(config, Sockets { https }, recorder).await?;
//! println!("{}", region.root_pem());
//! region.stop().await;
//! # Ok(()) }
//! ```

mod behaviour;
mod ca;
mod config;
mod distribution;
mod dns;
mod draws;
mod dynamodb;
mod endpoint;
mod error;
mod keys;
mod kind;
mod names;
mod region;
mod seeds;
mod store;
mod upstream;
mod xray;

pub use behaviour::{Endpoint, Fault, FaultKind, TlsSettings, TlsVersion};
pub use ca::Ca;
pub use config::{Config, DynamoDb, Index, KeyType, Table};
pub use distribution::{Distribution, DistributionInvalid};
pub use dns::DnsGuard;
pub use error::Error;
pub use region::{Region, Sockets};
pub use seeds::{Parameter, ParameterType, Secret, SecretsManager, Ssm};
pub use xray::XRayGuard;
