//! The two services, as seen from a thread that may wait: one POST each, signed, over a connection that the thread keeps. Every wait
//! ends at the deadline of its request.

mod answer;
mod batch;
mod call;
mod credentials;
mod failure;
mod line;
mod sign;
mod stream;
mod trust;

pub use answer::{Answer, Framing, read as read_answer};
pub use batch::{batches, fetch_batch};
pub use call::fetch;
pub use credentials::{Credentials, Keys, Source};
pub use failure::Failure;
pub use line::{Endpoint, Line};
pub use sign::{Request, sign};
pub use trust::Trust;

use crate::settings::Settings;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

/// What all threads share.
pub struct Upstream {
    /// Where Secrets Manager is.
    pub secrets: Endpoint,
    /// Where Parameter Store is.
    pub parameters: Endpoint,
    /// AWS region, part of each signature.
    pub region: String,
    /// Who we are.
    pub credentials: Credentials,
    /// Whom we believe.
    pub trust: Trust,
    /// What to add to our clock to get upstream's, in seconds; learnt from a refused signature.
    pub skew_s: AtomicI64,
}

/// No upstream call takes longer, whatever the timeouts say: a wait without an end would hold a connection for good.
pub const LONGEST: Duration = Duration::from_secs(60);
/// What the network may do within that: connect, then speak TLS.
pub const CONNECT: Duration = Duration::from_secs(10);

impl Upstream {
    /// From the settings.
    pub fn new(settings: &Settings) -> Arc<Upstream> {
        Arc::new(Upstream {
            secrets: settings.secrets.clone(),
            parameters: settings.parameters.clone(),
            region: settings.region.clone(),
            credentials: Credentials::new(settings.credentials.clone()),
            trust: Trust::new(settings.ca_bundle.clone()),
            skew_s: AtomicI64::new(0),
        })
    }
}
