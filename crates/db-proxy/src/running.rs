//! Starting a proxy, and the handle of one that runs.

use crate::config::{Config, EngineFamily};
use crate::engine::{Engine, Order, Parts};
use crate::event::Sink;
use crate::metrics::Metrics;
use crate::mysql::MySql;
use crate::postgres::Postgres;
use crate::protocol::Protocol;
use crate::tls::Tls;
use crate::{Error, http};
use rustix::fd::OwnedFd;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// A proxy that runs. Dropping it stops it.
pub struct Running {
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    metrics: Arc<Metrics>,
    orders: Sender<Order>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    http: Option<http::Server>,
}

/// Addresses of a database's name. It is called by a thread of its own, and may wait.
pub type Resolve = Arc<dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// Binds, and serves from a thread of its own.
pub fn start(config: Config, sink: Sink) -> Result<Running, Error> {
    start_with(config, sink, Arc::new(|address| Ok(address.to_socket_addrs()?.collect())))
}

/// The same, where somebody else knows where databases are.
pub fn start_with(config: Config, sink: Sink, resolve: Resolve) -> Result<Running, Error> {
    let config = Arc::new(config);
    let listener = bind(&config.listen)?;
    let system = |what| move |error: io::Error| Error::System { what, error };
    let address = listener.local_addr().map_err(system("the listener's address"))?;
    listener.set_nonblocking(true).map_err(system("the listener's mode"))?;
    let wake = rustix::event::eventfd(
        0,
        rustix::event::EventfdFlags::NONBLOCK | rustix::event::EventfdFlags::CLOEXEC,
    )
    .map_err(|error| Error::System { what: "eventfd", error: error.into() })?;
    let wake = Arc::new(wake);
    let metrics = Arc::new(Metrics::default());
    let (orders, receiver) = channel();
    let parts = Parts {
        target: addresses(&resolve, &config.target.address)?,
        resolve,
        tls: Tls::new(&config)?,
        config: Arc::clone(&config),
        listener: listener.into(),
        wake: Arc::clone(&wake),
        orders: receiver,
        own_orders: orders.clone(),
        metrics: Arc::clone(&metrics),
        sink,
    };
    let http = match &config.metrics {
        Some(at) => Some(http::Server::start(bind(at)?, config.name.clone(), Arc::clone(&metrics))?),
        None => None,
    };
    let thread = match config.engine {
        EngineFamily::Mysql => spawn::<MySql>(parts)?,
        EngineFamily::Postgresql => spawn::<Postgres>(parts)?,
    };
    let metrics_address = http.as_ref().map(http::Server::address);
    Ok(Running { address, metrics_address, metrics, orders, wake, thread: Some(thread), http })
}

fn spawn<P: Protocol>(parts: Parts) -> Result<JoinHandle<()>, Error> {
    let name = format!("db-proxy {}", parts.config.name);
    // The engine is made in its own thread: sessions share state without locks.
    std::thread::Builder::new()
        .name(name)
        .spawn(move || {
            if let Ok(engine) = Engine::<P>::new(parts) {
                engine.run();
            }
        })
        .map_err(|error| Error::System { what: "a thread", error })
}

fn bind(address: &str) -> Result<TcpListener, Error> {
    TcpListener::bind(address).map_err(|error| Error::Address { address: address.to_owned(), error })
}

fn addresses(resolve: &Resolve, address: &str) -> Result<Vec<SocketAddr>, Error> {
    let wrong = |error| Error::Address { address: address.to_owned(), error };
    let found = resolve(address).map_err(wrong)?;
    if found.is_empty() { Err(wrong(io::Error::other("the name has no address"))) } else { Ok(found) }
}

impl Running {
    /// Where clients connect.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the metrics are, if anywhere.
    pub const fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// The proxy's figures; gauges are a second old at most.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Takes another configuration without dropping anybody. Addresses, engine and certificates stay as they were.
    pub fn reload(&self, config: Config) {
        self.order(Order::Reload(Box::new(config)));
    }

    /// Asks it to stop: no new clients, those in a transaction may finish within the drain timeout.
    pub fn stop(&self) {
        self.order(Order::Stop);
    }

    /// Waits until it has stopped.
    pub fn join(mut self) {
        self.finish();
    }

    fn order(&self, order: Order) {
        // A proxy that has ended takes no orders.
        let _ended = self.orders.send(order);
        let _woken = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }

    fn finish(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _panicked_already_said_so = thread.join();
        }
        self.http.take();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop();
            self.finish();
        }
    }
}
