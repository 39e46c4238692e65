//! What the dashboard is told of the account and of its envs.

use crate::api::Api;
use crate::store::{Function, State};
use danki_dashboard::{Dashboard, LiveEnv, LiveFunction};
use danki_explain::Setting;
use danki_host::EnvView;
use danki_model::{InitializationType, MemoryMb};
use std::sync::{Arc, Weak};

/// The dashboard asks when somebody looks; it does not keep the API alive.
pub fn follow(api: &Arc<Api>, dashboard: &Dashboard) {
    let (of_live, of_settings) = (Arc::downgrade(api), Arc::downgrade(api));
    dashboard.follow_account(
        move |epoch_offset_ns| of_live.upgrade().map(|api| live(&api, epoch_offset_ns)).unwrap_or_default(),
        move || settings(&of_settings),
    );
}

fn live(api: &Api, epoch_offset_ns: u64) -> (Vec<LiveFunction>, Vec<LiveEnv>) {
    let host = api.fleet.host_now();
    let mut envs = host.map(|host| host.envs()).unwrap_or_default();
    envs.sort_by_key(|view| view.env);
    let functions = api.account().functions.values().map(function).collect();
    (functions, envs.into_iter().map(|view| env(view, epoch_offset_ns)).collect())
}

fn function(function: &Function) -> LiveFunction {
    let latest = &function.latest;
    LiveFunction {
        name: function.name.clone(),
        runtime: latest.configuration.runtime.clone(),
        memory_mb: latest.configuration.memory_mb,
        state: match &latest.state {
            State::Pending => "Pending",
            State::Active => "Active",
            State::Failed(_) => "Failed",
        }
        .to_owned(),
        reserved: function.reserved,
        provisioned: function.provisioned.values().map(|p| p.requested).sum(),
        // What was counted is in the facts.
        ..LiveFunction::default()
    }
}

fn env(view: EnvView, epoch_offset_ns: u64) -> LiveEnv {
    LiveEnv {
        env: view.env.0,
        function: view.function,
        version: view.version,
        provisioned: view.initialization == InitializationType::ProvisionedConcurrency,
        state: view.state.to_owned(),
        since_epoch_ms: (view.since_ns + epoch_offset_ns) / 1_000_000,
    }
}

/// Rows of a function's versions have its name as their variant: `$LATEST` stands for all.
fn settings(api: &Weak<Api>) -> Vec<Setting> {
    let Some(api) = api.upgrade() else { return Vec::new() };
    let setting = |function: &Function| {
        let configuration = &function.latest.configuration;
        Some(Setting {
            name: function.name.clone(),
            memory: MemoryMb::try_from(configuration.memory_mb).ok()?,
            environment: configuration.environment.clone().unwrap_or_default(),
            runtime: configuration.runtime.clone(),
        })
    };
    api.account().functions.values().filter_map(setting).collect()
}
