//! AWS Lambda's API on this machine: any SDK, the AWS CLI and tools made for AWS talk to it, and functions run on `host` with
//! Lambda's behaviour in time.
//!
//! A request is one of Lambda's (REST-JSON 2015-03-31, table in `routes`) or, by the service in its signature's credential scope, one
//! of the few others that a deployment needs: IAM, STS, S3, CloudWatch and its Logs. What is not offered says so by name.

mod api;
mod arn;
mod asynchronous;
mod code;
mod delivery;
mod deploy;
mod error;
mod eventstream;
mod fault;
mod fleet;
mod front;
mod http;
mod live;
mod logs;
mod ops;
mod reload;
mod request;
mod routes;
mod services;
mod sigv4;
mod stack;
mod store;

pub use api::Config;
pub use arn::ACCOUNT;
pub use error::Error;
pub use fleet::HostSlot;
pub use front::{BadRoute, Route};
pub use stack::{Stack, StackError};

use api::Api;
use danki_dashboard::Dashboard;
use fleet::Fleet;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// A running endpoint.
pub struct Endpoint {
    server: danki_serve::Server,
    tasks: Vec<JoinHandle<()>>,
    api: Arc<Api>,
    fronts: front::Fronts,
}

impl Endpoint {
    /// Serves `address` at once; what needs the host waits until there is one in the slot. Must be called on a tokio runtime.
    pub fn start(address: SocketAddr, config: Config, host: HostSlot) -> Result<Endpoint, Error> {
        let listen = |source| Error::Listen { address: address.to_string(), source };
        let listener = TcpListener::bind(address).map_err(listen)?;
        let api = Arc::new(Api::new(config, Fleet::new(host))?);
        let server = danki_serve::Server::start(
            listener,
            http::config(),
            Arc::new(http::Front::new(Arc::clone(&api))),
        )?;
        let tasks = vec![
            tokio::spawn(follow_logs(Arc::clone(&api))),
            tokio::spawn(deploy::restore(Arc::clone(&api))),
            tokio::spawn(reload::watch(Arc::clone(&api))),
        ];
        Ok(Endpoint { server, tasks, api, fronts: front::Fronts::new() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// Serves function URLs and routes on one listener more, over TLS if there are settings for it; where it listens.
    pub fn serve_fronts(
        &mut self,
        listener: TcpListener,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> Result<SocketAddr, Error> {
        Ok(self.fronts.listen(&self.api, listener, tls)?)
    }

    /// Deploys a template whose paths are relative to `dir`, and serves its routes in place of those there were.
    pub async fn deploy_stack(
        &self,
        template: &danki_sam::Template,
        dir: &Path,
    ) -> Result<Stack, StackError> {
        let stack = stack::deploy(&self.api, template, dir).await?;
        self.fronts.set(stack.routes.clone())?;
        Ok(stack)
    }

    /// Serves a dashboard beside the API, and tells it what there is. The first one counts.
    pub fn show(&self, dashboard: Dashboard) {
        live::follow(&self.api, &dashboard);
        self.api.dashboard.set(dashboard).ok();
    }

    /// Asynchronous events that were accepted and have not ended.
    pub fn events_waiting(&self) -> usize {
        self.api.queue.len()
    }

    /// Accepts nothing more. Envs end with the host; events that wait for a retry are lost.
    pub async fn stop(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.api.dashboard.get().into_iter().for_each(Dashboard::stop);
        self.server.stop().await;
        self.fronts.stop().await;
    }
}

async fn follow_logs(api: Arc<Api>) {
    if let Ok(host) = api.fleet.host().await {
        let lines = host.logs();
        drop(host);
        api.logs.follow(lines).await;
    }
}

/// For fuzzing: a request's path to its operation, and its body through the parsers of the busiest operations.
#[doc(hidden)]
pub fn fuzz_request(method: &str, path: &str, body: &[u8]) -> bool {
    let routed = routes::find(method, path).is_some();
    let parsed = serde_json::from_slice::<store::Change>(body).ok();
    let applied = parsed.and_then(|change| change.apply(&store::Configuration::default()).ok());
    request::pairs(path);
    services::cbor::read(body).ok();
    arn::function_name(path).ok();
    sigv4::scope(path);
    routed && applied.is_some()
}
