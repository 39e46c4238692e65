//! The region as a running thing.

use crate::dns::{self, DnsGuard};
use crate::endpoint::Endpoint;
use crate::store::Stores;
use crate::xray::{self, XRayGuard};
use crate::{Ca, Config, Error, TlsSettings, TlsVersion, names};
use danki_model::EnvId;
use danki_record::Recorder;
use danki_serve::{Answer, Call, Peer, Server, Service, TlsOptions, server_config};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// What the region listens on; made by whoever owns its network namespace.
#[derive(Debug)]
pub struct Sockets {
    /// Port 443 of all addresses of the namespace; any listener in tests.
    pub https: std::net::TcpListener,
}

/// A running region. Dropping it ends it at once.
pub struct Region {
    server: Server,
    ca: Arc<Ca>,
    names: dns::Names,
    recorder: Recorder,
    runtime: tokio::runtime::Handle,
}

/// Finds the endpoint that a connection or a request is for.
struct Gateway {
    endpoints: Vec<Endpoint>,
}

impl Region {
    /// Makes keys, certificates and tables, then serves on the current tokio runtime.
    pub async fn start(config: Config, sockets: Sockets, recorder: Recorder) -> Result<Region, Error> {
        config.validate()?;
        let tls = tls_options(&config);
        let hosts = config.hosts.clone();
        let (gateway, ca) = {
            let recorder = recorder.clone();
            let prepare = tokio::task::spawn_blocking(move || prepare(&config, &recorder));
            prepare.await.map_err(|e| Error::Broken(e.to_string()))??
        };
        let services = gateway.endpoints.iter().map(|e| e.kind.name()).collect();
        let names = Arc::new(dns::Known { services, hosts });
        let certificates: Arc<Ca> = Arc::clone(&ca);
        let config = danki_serve::Config {
            tls: Some(server_config(certificates, tls)?),
            ..danki_serve::Config::default()
        };
        let server = Server::start(sockets.https, config, Arc::new(gateway))?;
        Ok(Region { server, ca, names, recorder, runtime: tokio::runtime::Handle::current() })
    }

    /// Answers DNS queries of an env on `socket` (bound inside its network namespace) until the guard is dropped.
    pub fn serve_dns(&self, env: EnvId, socket: std::net::UdpSocket) -> DnsGuard {
        dns::serve(&self.runtime, env, socket, Arc::clone(&self.names), self.recorder.clone())
    }

    /// Is the X-Ray daemon of an env on `udp` and `tcp` (port 2000 inside its network namespace) until the guard is dropped.
    pub fn serve_xray(
        &self,
        env: EnvId,
        udp: std::net::UdpSocket,
        tcp: std::net::TcpListener,
    ) -> Result<XRayGuard, Error> {
        xray::serve(&self.runtime, env, udp, tcp, self.recorder.clone())
    }

    /// The fixed address of a service, by its endpoint prefix (`dynamodb`); the same in every run.
    pub fn service_address(service: &str) -> Option<Ipv4Addr> {
        names::address(service)
    }

    /// The root certificate that envs must trust.
    pub fn root_pem(&self) -> &str {
        self.ca.root_pem()
    }

    /// A certificate for a host name with its chain, and its key, as PEM.
    pub fn certificate_pem(&self, name: &str) -> Result<(String, String), Error> {
        self.ca.pem(name)
    }

    /// TLS settings for a listener of this machine itself: certificates of the local CA for the name asked for, else for 127.0.0.1.
    pub fn front_tls(&self) -> Result<Arc<rustls::ServerConfig>, Error> {
        let certificates = Arc::new(Local(Arc::clone(&self.ca)));
        Ok(server_config(certificates, TlsOptions::default())?)
    }

    /// Where HTTPS listens.
    pub fn https_addr(&self) -> std::net::SocketAddr {
        self.server.local_addr()
    }

    /// Returns only if the region dies although nobody stopped it, with the reason: race a run against it.
    pub async fn died(&mut self) -> Error {
        Error::Serve(self.server.ended().await)
    }

    /// Lets requests being served finish for at most a second, then closes everything.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}

/// Clients that connect to an address ask for no name.
#[derive(Debug)]
struct Local(Arc<Ca>);

impl ResolvesServerCert for Local {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.certificate(hello.server_name().unwrap_or("127.0.0.1")).ok()
    }
}

fn prepare(config: &Config, recorder: &Recorder) -> Result<(Gateway, Arc<Ca>), Error> {
    let stores = Stores::create(config)?;
    let create = |(kind, _)| Endpoint::create(config, kind, &stores, recorder.clone());
    let endpoints = config.endpoints().map(create).collect::<Result<Vec<Endpoint>, Error>>()?;
    let ca = Ca::create(config.ca_dir.as_deref())?;
    for endpoint in &endpoints {
        // Ahead, so that the first handshake does not pay for it.
        ca.certificate(&format!("{}.{}.amazonaws.com", endpoint.kind.name(), config.region_name))?;
    }
    Ok((Gateway { endpoints }, Arc::new(ca)))
}

fn tls_options(config: &Config) -> TlsOptions {
    // One listener serves all names, so one setting holds for all: the first that is not the default.
    let mut given = config.endpoints().map(|(_, endpoint)| endpoint.tls);
    let settings = given.find(|tls| *tls != TlsSettings::default()).unwrap_or_default();
    let version = |v| match v {
        TlsVersion::V12 => danki_serve::TlsVersion::V12,
        TlsVersion::V13 => danki_serve::TlsVersion::V13,
    };
    TlsOptions { min: version(settings.min), max: version(settings.max), resumption: settings.resumption }
}

impl Gateway {
    /// By the name asked for in TLS, then by the address; a region with one endpoint has no other choice.
    fn endpoint(&self, peer: &Peer) -> Option<&Endpoint> {
        let by_name =
            || peer.tls.as_ref().and_then(|tls| tls.server_name.as_deref()).and_then(names::service_of);
        let by_address = || match peer.local.ip() {
            IpAddr::V4(address) => names::service_at(address),
            IpAddr::V6(_) => None,
        };
        match by_name().or_else(by_address) {
            Some(service) => self.endpoints.iter().find(|e| e.kind.name() == service),
            None => self.endpoints.first().filter(|_| self.endpoints.len() == 1),
        }
    }
}

impl Service for Gateway {
    fn idle_cutoff(&self, peer: &Peer) -> Option<Duration> {
        self.endpoint(peer).and_then(|e| e.idle_cutoff)
    }

    async fn call(&self, call: Call) -> Answer {
        match self.endpoint(&call.peer) {
            Some(endpoint) => endpoint.call(call).await,
            None => Answer::HangUp,
        }
    }
}
