//! A session behind a relay that counts the runtime's connections.

use super::Api;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::{TcpListener, TcpStream};

/// How many connections there have been.
pub struct Count(Arc<AtomicUsize>);

impl Count {
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// An [`Api`] whose address is the relay's.
pub async fn start() -> (Api, Count) {
    let mut api = Api::start();
    let session = api.address;
    let relay = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    api.address = relay.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = relay.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut far = TcpStream::connect(session).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    (api, Count(count))
}
