//! Proxies in the region's network, whose events become facts of the run.

use crate::{Certificate, Config, Error, Files};
use danki_db_proxy::config::{Config as ProxyConfig, Target, TargetTls, User};
use danki_db_proxy::{Event as Seen, Running, Sink, start};
use danki_record::{DatabaseEvent, DatabaseWhat, Event, Recorder};
use danki_sys::clock::monotonic_ns;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// Most clients of one proxy.
const CLIENTS_MAX: u32 = 20_000;

/// Starts them all. Sockets and threads are made by a thread that has entered `network`, and so belong there.
pub(crate) fn start_all(
    config: &Config,
    files: &Files,
    certificates: &[Certificate],
    network: &OwnedFd,
    recorder: &Recorder,
) -> Result<Vec<Running>, Error> {
    let mut all = Vec::new();
    for ((proxy, address), certificate) in config.proxy_addresses().zip(certificates) {
        let chain = files.put(&format!("{}.crt", proxy.name), &certificate.chain)?;
        let key = files.put(&format!("{}.key", proxy.name), &certificate.key)?;
        let settings = ProxyConfig {
            name: proxy.name.clone(),
            engine: config.engine,
            listen: format!("{address}:{}", config.port()),
            metrics: None,
            mode: proxy.mode,
            rules: proxy.rules,
            require_tls: proxy.require_tls,
            tls_certificate: Some(chain),
            tls_key: Some(key),
            client_password_auth_type: None,
            max_clients: CLIENTS_MAX,
            drain_timeout_s: 0,
            iam_host: None,
            target: target(config),
            pool: proxy.pool.clone(),
            user: vec![User { name: config.user.clone(), password: config.password.clone(), iam: None }],
        };
        all.push((settings, sink(&proxy.name, (address, config.port()).into(), recorder.clone())));
    }
    let inside = || -> Result<Vec<Running>, Error> {
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| Error::Network(error.into()))?;
        all.into_iter().map(|(settings, sink)| start(settings, sink).map_err(Error::from)).collect()
    };
    let thread = std::thread::scope(|scope| scope.spawn(inside).join());
    thread.unwrap_or_else(|_| Err(Error::Network(io::ErrorKind::Other.into())))
}

/// Its certificate names a host, and the proxy connects to an address: it is not checked.
fn target(config: &Config) -> Target {
    Target {
        address: format!("{}:{}", Config::address(), config.port()),
        tls: TargetTls::LikeClient,
        tls_ca: None,
        max_connections: Some(config.max_connections()),
    }
}

/// Writes down what happens, with the addresses that the link knows clients by.
fn sink(proxy: &str, server: SocketAddr, recorder: Recorder) -> Sink {
    let proxy = proxy.to_owned();
    let clients: Mutex<HashMap<u64, SocketAddr>> = Mutex::default();
    Box::new(move |seen: &Seen<'_>| {
        let mut clients = clients.lock().unwrap_or_else(PoisonError::into_inner);
        match seen {
            Seen::ClientConnected { client, from: Some(from) } => drop(clients.insert(*client, *from)),
            Seen::ClientClosed { client, .. } => drop(clients.remove(client)),
            Seen::Failed { what } => {
                recorder.record(Event::Caveat { text: format!("proxy {proxy}: {what}") });
            }
            Seen::Unhealthy { why } => {
                let text = format!("proxy {proxy}: the database did not answer: {why}");
                recorder.record(Event::Caveat { text });
            }
            _ => {}
        }
        let Some((client, what)) = fact(seen) else { return };
        let client = client.and_then(|client| clients.get(&client).copied());
        let at_ns = monotonic_ns();
        recorder.record(Event::Database(DatabaseEvent { at_ns, proxy: proxy.clone(), server, client, what }));
    })
}

/// What of it is a fact about waiting and connections.
fn fact(seen: &Seen<'_>) -> Option<(Option<u64>, DatabaseWhat)> {
    Some(match *seen {
        Seen::ServerOpened { server } => (None, DatabaseWhat::Opened { conn: server }),
        Seen::ServerClosed { server, .. } => (None, DatabaseWhat::Closed { conn: server }),
        Seen::Borrowed { client, server, waited_ns } => {
            (Some(client), DatabaseWhat::Borrowed { conn: server, waited_ns })
        }
        Seen::BorrowTimedOut { client, waited_ns } => (Some(client), DatabaseWhat::TimedOut { waited_ns }),
        Seen::Answered { client, took_ns } => (Some(client), DatabaseWhat::Answered { took_ns }),
        Seen::Pinned { client, reason, digest, .. } => {
            let (reason, digest) = (reason.to_owned(), digest.to_owned());
            (Some(client), DatabaseWhat::Pinned { reason, digest })
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_is_told_of_the_client_that_the_link_knows() {
        let (recorder, recording) = Recorder::bounded(10);
        let sink = sink("small", ([198, 18, 5, 1], 3306).into(), recorder);
        let from: SocketAddr = "10.0.0.2:40000".parse().expect("an address");
        sink(&Seen::ClientConnected { client: 7, from: Some(from) });
        sink(&Seen::Borrowed { client: 7, server: 3, waited_ns: 5 });
        sink(&Seen::ClientClosed { client: 7, why: "gone" });
        sink(&Seen::BorrowTimedOut { client: 7, waited_ns: 9 });
        drop(sink);
        let mut told = Vec::new();
        while let danki_record::Received::Event(event) = recording.receive(std::time::Duration::ZERO) {
            let Event::Database(event) = *event else { panic!("{event:?}") };
            told.push((event.client, event.what));
        }
        let expect = [
            (Some(from), DatabaseWhat::Borrowed { conn: 3, waited_ns: 5 }),
            (None, DatabaseWhat::TimedOut { waited_ns: 9 }),
        ];
        assert_eq!(told, expect);
    }
}
