//! HTTP in front of functions: function URLs, HTTP APIs and REST stages, on listeners of their own.
//!
//! What AWS tells apart by host name is told apart here by host name too (`ID.lambda-url.…`, `ID.execute-api.…`, any name whose first label is
//! the id) or, since nobody's DNS knows these names, by path: `/_danki/url/ID/…`, `/_danki/api/ID/…`, `/STAGE/…` for a REST stage and all else for
//! the HTTP API.

mod serve;
mod table;

pub use table::{BadRoute, Route};

use crate::api::Api;
use danki_serve::{Answer, Call, Config, Peer, Server, Service};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use table::Table;

/// API Gateway's limit; a function URL takes 6 MB, as Invoke does. The larger is the server's bound.
const BODY_BYTES: usize = 10 * 1024 * 1024;
/// What browsers and load generators meet at AWS's fronts is not documented; 60 s is an Application Load Balancer's.
const IDLE: Duration = Duration::from_secs(60);

/// The routes of an endpoint and the listeners that serve them.
pub struct Fronts {
    table: Arc<Mutex<Arc<Table>>>,
    servers: Vec<Server>,
}

impl Fronts {
    pub fn new() -> Fronts {
        Fronts { table: Arc::default(), servers: Vec::new() }
    }

    /// Takes the place of all routes there were.
    pub fn set(&self, routes: Vec<Route>) -> Result<(), BadRoute> {
        let table = Arc::new(Table::new(routes)?);
        *self.table.lock().unwrap_or_else(PoisonError::into_inner) = table;
        Ok(())
    }

    /// Serves them, over TLS if there are settings for it.
    pub fn listen(
        &mut self,
        api: &Arc<Api>,
        listener: TcpListener,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> Result<SocketAddr, danki_serve::Error> {
        let config = Config {
            tls,
            max_body_bytes: BODY_BYTES,
            request_timeout: Duration::from_secs(120),
            ..Config::default()
        };
        let front = Front { api: Arc::clone(api), table: Arc::clone(&self.table) };
        let server = Server::start(listener, config, Arc::new(front))?;
        let address = server.local_addr();
        self.servers.push(server);
        Ok(address)
    }

    pub async fn stop(self) {
        for server in self.servers {
            server.stop().await;
        }
    }
}

struct Front {
    api: Arc<Api>,
    table: Arc<Mutex<Arc<Table>>>,
}

impl Service for Front {
    fn idle_cutoff(&self, _: &Peer) -> Option<Duration> {
        Some(IDLE)
    }

    async fn call(&self, call: Call) -> Answer {
        let table = Arc::clone(&self.table.lock().unwrap_or_else(PoisonError::into_inner));
        serve::answer(&self.api, &table, call).await
    }
}
