//! The versions that can be invoked: each a function of `host`.
//!
//! The world around functions takes longer to start than the endpoint, whose first requests only change the account. So the host comes
//! later, and who needs it waits for it.

use crate::fault::Fault;
use danki_host::{Function, Host};
use danki_model::FunctionSpec;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Longest wait for the world; a first start makes keys, which takes a few seconds.
const START: Duration = Duration::from_secs(60);

/// The host, once it runs.
pub type HostSlot = watch::Receiver<Option<Arc<Host>>>;

/// Deployed versions by function and version.
pub struct Fleet {
    host: HostSlot,
    functions: Mutex<BTreeMap<(String, String), Function>>,
}

impl Fleet {
    pub fn new(host: HostSlot) -> Fleet {
        Fleet { host, functions: Mutex::default() }
    }

    /// The host; waits for it during the start.
    pub async fn host(&self) -> Result<Arc<Host>, Fault> {
        let mut slot = self.host.clone();
        let ready = tokio::time::timeout(START, slot.wait_for(Option::is_some)).await;
        match ready {
            Ok(Ok(host)) => Ok(Arc::clone(host.as_ref().expect("this is what was waited for"))),
            _ => Err(Fault::service("danki's host did not start; its output says why")),
        }
    }

    /// The host, if it runs.
    pub fn host_now(&self) -> Option<Arc<Host>> {
        self.host.borrow().clone()
    }

    pub fn get(&self, function: &str, version: &str) -> Option<Function> {
        self.functions().get(&(function.to_owned(), version.to_owned())).cloned()
    }

    /// Makes a version ready, in the place of the one that was there. The reason is for people.
    pub async fn deploy(&self, spec: FunctionSpec, version: &str) -> Result<(), String> {
        let host = self.host().await.map_err(|fault| fault.message)?;
        let (name, number) = (spec.name.clone(), version.to_owned());
        let deploying = tokio::task::spawn_blocking(move || host.deploy_version(spec, &name, &number));
        let deployed = deploying.await.map_err(|_| "deploying has panicked".to_owned())?;
        let function = deployed.map_err(|e| e.to_string())?;
        let key = (function.deployed().spec.name.clone(), version.to_owned());
        let before = self.functions().insert(key, function);
        retire(before);
        Ok(())
    }

    /// Takes a version, or the whole function, out of service.
    pub fn remove(&self, function: &str, version: Option<&str>) {
        let mut functions = self.functions();
        let doomed: Vec<_> = functions
            .keys()
            .filter(|(name, number)| name == function && version.is_none_or(|v| v == number))
            .cloned()
            .collect();
        let gone: Vec<Function> = doomed.iter().filter_map(|key| functions.remove(key)).collect();
        drop(functions);
        gone.into_iter().for_each(|function| retire(Some(function)));
    }

    fn functions(&self) -> MutexGuard<'_, BTreeMap<(String, String), Function>> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Busy envs finish what they do (at most 15 s); nobody waits for them here.
fn retire(function: Option<Function>) {
    if let Some(function) = function {
        tokio::spawn(async move { function.retire().await });
    }
}
