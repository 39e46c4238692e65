//! The accept loop.

use crate::{Error, Service, connection};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

/// Pause after a failed accept (out of descriptors, usually), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(5);

/// Bounds and deadlines of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// TLS settings; absent for plain HTTP.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Connections served at once; more of them wait in the kernel's accept queue.
    pub max_connections: usize,
    /// Bytes of a request's body; larger ones reach the service as [`crate::BodyError::TooLarge`].
    pub max_body_bytes: usize,
    /// From accept to the end of the handshake, then the connection is dropped.
    pub handshake_timeout: Duration,
    /// From a request's first byte to its last; then the connection is closed, at the latest after twice this time.
    pub request_timeout: Duration,
    /// How long [`Server::stop`] waits for requests being served.
    pub drain: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            tls: None,
            max_connections: 4_096,
            max_body_bytes: 16 * 1024 * 1024,
            handshake_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            drain: Duration::from_secs(1),
        }
    }
}

/// A running server. Dropping it ends it and its connections at once.
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    drain: Duration,
}

impl Server {
    /// Serves `listener` on the current tokio runtime.
    pub fn start<S: Service>(
        listener: std::net::TcpListener,
        config: Config,
        service: Arc<S>,
    ) -> Result<Server, Error> {
        listener.set_nonblocking(true).map_err(Error::Listener)?;
        let listener = TcpListener::from_std(listener).map_err(Error::Listener)?;
        let address = listener.local_addr().map_err(Error::Listener)?;
        let (stop, stopped) = watch::channel(false);
        let drain = config.drain;
        let accepting = tokio::spawn(accept(listener, Arc::new(config), service, stopped));
        Ok(Server { address, stop, accepting, drain })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns only if the server ends although nobody stopped it, with the reason.
    pub async fn ended(&mut self) -> Error {
        let reason = match (&mut self.accepting).await {
            Ok(()) => "it returned".to_owned(),
            Err(error) => error.to_string(),
        };
        Error::Ended { address: self.address, reason }
    }

    /// Accepts nothing more, closes idle connections, lets requests being served finish until the drain deadline,
    /// then cuts what is left.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        if !self.accepting.is_finished() {
            let _late = tokio::time::timeout(self.drain, &mut self.accepting).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Returns when the server is told to stop, or is gone.
pub(crate) async fn stop_asked(stop: &mut watch::Receiver<bool>) {
    let _gone = stop.wait_for(|stop| *stop).await;
}

/// Ends when stopped and every connection has ended; aborting it aborts the connections, which the set owns.
async fn accept<S: Service>(
    listener: TcpListener,
    config: Arc<Config>,
    service: Arc<S>,
    mut stopped: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(config.max_connections));
    let mut connections = JoinSet::new();
    let stop = stopped.clone();
    let next = async |slots: &Arc<Semaphore>| {
        let slot = Arc::clone(slots).acquire_owned().await.expect("the semaphore is never closed");
        (slot, listener.accept().await)
    };
    loop {
        tokio::select! {
            () = stop_asked(&mut stopped) => break,
            Some(_ended) = connections.join_next(), if !connections.is_empty() => {}
            (slot, accepted) = next(&slots) => match accepted {
                Ok((tcp, client)) => {
                    let serving = connection::serve(tcp, client, Arc::clone(&config), Arc::clone(&service), stop.clone());
                    connections.spawn(async move {
                        serving.await;
                        drop(slot);
                    });
                }
                Err(_out_of_descriptors) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Call, Peer};

    struct Nobody;

    impl Service for Nobody {
        fn idle_cutoff(&self, _: &Peer) -> Option<Duration> {
            None
        }

        async fn call(&self, _: Call) -> Answer {
            Answer::HangUp
        }
    }

    #[tokio::test]
    async fn a_server_that_dies_names_itself_and_can_still_be_stopped() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut server = Server::start(listener, Config::default(), Arc::new(Nobody)).expect("starts");
        server.accepting.abort();
        let said = server.ended().await.to_string();
        assert!(said.contains(&server.local_addr().to_string()), "{said}");
        server.stop().await;
    }
}
