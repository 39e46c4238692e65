//! Environment variables → settings. The first block is AWS's contract, with its defaults and ranges; what is out of range falls back
//! with a warning. `DANKI_SECRETS_*` are ours, each changes something only if it is set, and a wrong one is an error.

mod read;

use crate::desk::Policy;
use crate::error::Error;
use crate::log::Level;
use crate::route;
use crate::upstream::{Endpoint, Keys, Source};
use crate::wanted::Wanted;
use read::{Reader, go_duration};
use std::path::PathBuf;
use std::time::Duration;

/// Everything that can be set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// TCP port on loopback; 0 picks one (tests).
    pub port: u16,
    /// What is logged.
    pub level: Level,
    /// What may be answered from memory.
    pub policy: Policy,
    /// Connections to each service.
    pub max_connections: usize,
    /// Patience with Secrets Manager; zero: the longest possible.
    pub secrets_timeout: Duration,
    /// Patience with Parameter Store.
    pub parameters_timeout: Duration,
    /// Whether requests are answered before the first invocation.
    pub ready_at_init: bool,
    /// Whether the memory may become a snapshot.
    pub snapshot: bool,
    /// Fetched during init.
    pub prefetch: Vec<Wanted>,
    /// How long init waits for that.
    pub prefetch_timeout: Duration,
    /// How long a client may take to send a whole request, or to take its answer.
    pub client_patience: Duration,
    /// A second place to listen.
    pub unix_socket: Option<PathBuf>,
    /// Whether a line of metrics is written per invocation.
    pub metrics: bool,
    /// Name of the function, for those.
    pub function: String,
    /// `host:port` of the Extensions API; without it the program serves at once and until it is ended.
    pub runtime_api: Option<String>,
    /// AWS region.
    pub region: String,
    /// Secrets Manager.
    pub secrets: Endpoint,
    /// Parameter Store.
    pub parameters: Endpoint,
    /// Certificates to trust instead of the compiled-in ones.
    pub ca_bundle: Option<PathBuf>,
    /// Who signs.
    pub credentials: Source,
    /// What there is to say about all that.
    pub notes: Vec<(Level, String)>,
}

impl Settings {
    /// Reads them through a function that knows the environment.
    pub fn read(get: &dyn Fn(&str) -> Option<String>) -> Result<Settings, Error> {
        let mut reader = Reader::new(get);
        let level = level(&mut reader);
        let port = reader.number("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT", 2773, 1..=65_535, |port| {
            format!("Using default port: {port}.")
        });
        let max_connections =
            reader.number("PARAMETERS_SECRETS_EXTENSION_MAX_CONNECTIONS", 3, 1..=u64::MAX, |count| {
                format!("Using default max connections: {count}.")
            });
        let region = reader
            .text("AWS_REGION")
            .or_else(|| reader.text("AWS_DEFAULT_REGION"))
            .unwrap_or_else(|| "us-east-1".to_owned());
        let policy = policy(&mut reader)?;
        Ok(Settings {
            port: u16::try_from(port).unwrap_or(2773),
            level,
            policy,
            max_connections: usize::try_from(max_connections).unwrap_or(usize::MAX).min(MOST_CONNECTIONS),
            secrets_timeout: timeout(&mut reader, "SECRETS_MANAGER_TIMEOUT_MILLIS"),
            parameters_timeout: timeout(&mut reader, "SSM_PARAMETER_STORE_TIMEOUT_MILLIS"),
            ready_at_init: reader.choice(
                "DANKI_SECRETS_READY",
                &[("invoke", false), ("init", true)],
                "invoke, init",
            )?,
            snapshot: reader.text("AWS_LAMBDA_INITIALIZATION_TYPE").is_some_and(|kind| kind == "snap-start"),
            prefetch: prefetch(&reader)?,
            prefetch_timeout: Duration::from_millis(reader.own(
                "DANKI_SECRETS_PREFETCH_TIMEOUT_MILLIS",
                5_000,
                8_000,
            )?),
            client_patience: CLIENT_PATIENCE,
            unix_socket: reader.text("DANKI_SECRETS_UNIX_SOCKET").map(PathBuf::from),
            metrics: reader.flag("DANKI_SECRETS_METRICS")?,
            function: reader.text("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default(),
            runtime_api: reader.text("AWS_LAMBDA_RUNTIME_API"),
            secrets: endpoint(&reader, "AWS_ENDPOINT_URL_SECRETS_MANAGER", "secretsmanager", &region)?,
            parameters: endpoint(&reader, "AWS_ENDPOINT_URL_SSM", "ssm", &region)?,
            region,
            ca_bundle: reader
                .text("AWS_CA_BUNDLE")
                .or_else(|| reader.text("SSL_CERT_FILE"))
                .map(PathBuf::from),
            credentials: credentials(&reader),
            notes: reader.notes,
        })
    }
}

/// Each is a thread at the moment of need; AWS's default is 3.
const MOST_CONNECTIONS: usize = 64;
/// A client is a process on this machine: seconds mean that it is broken or hostile.
const CLIENT_PATIENCE: Duration = Duration::from_secs(10);
/// AWS's bound on both TTLs.
const MOST_TTL_S: u64 = 300;

fn level(reader: &mut Reader<'_>) -> Level {
    const NAME: &str = "PARAMETERS_SECRETS_EXTENSION_LOG_LEVEL";
    let Some(text) = reader.text(NAME) else {
        // `Level::None` has no word, and this line of AWS's has none; it is written at every level but none.
        reader.notes.push((Level::None, format!("{NAME} is not present. Log level set to info.")));
        return Level::Info;
    };
    Level::parse(&text).unwrap_or_else(|| {
        reader.notes.push((Level::Warn, format!("{NAME} is {text:?}. Log level set to info.")));
        Level::Info
    })
}

fn policy(reader: &mut Reader<'_>) -> Result<Policy, Error> {
    let most = reader.own("DANKI_SECRETS_MAX_TTL", MOST_TTL_S, 7 * 86_400)?.max(MOST_TTL_S);
    let enabled = cache_enabled(reader);
    let capacity = reader.number("PARAMETERS_SECRETS_EXTENSION_CACHE_SIZE", 1000, 0..=1000, |size| {
        format!("Using default cache size: {size} objects.")
    });
    Ok(Policy {
        capacity: if enabled { usize::try_from(capacity).unwrap_or(1000) } else { 0 },
        // The first text is AWS's, misprint included.
        secret_ttl: ttl(reader, "SECRETS_MANAGER_TTL", "Secrets Manger", most),
        parameter_ttl: ttl(reader, "SSM_PARAMETER_STORE_TTL", "SSM Parameter Store", most),
        stale_while_revalidate: Duration::from_secs(reader.own(
            "DANKI_SECRETS_STALE_WHILE_REVALIDATE",
            0,
            86_400,
        )?),
        stale_if_error: Duration::from_secs(reader.own("DANKI_SECRETS_STALE_IF_ERROR", 0, 7 * 86_400)?),
        negative: Duration::from_secs(reader.own("DANKI_SECRETS_NEGATIVE_TTL", 0, 60)?),
        detailed: reader.flag("DANKI_SECRETS_DETAILED_ERRORS")?,
    })
}

fn cache_enabled(reader: &mut Reader<'_>) -> bool {
    const NAME: &str = "PARAMETERS_SECRETS_EXTENSION_CACHE_ENABLED";
    let Some(text) = reader.text(NAME) else {
        reader.notes.push((Level::Debug, format!("{NAME} is not present. Cache is enabled by default.")));
        return true;
    };
    route::boolean(&text).unwrap_or_else(|| {
        reader.notes.push((Level::Warn, format!("{NAME} is {text:?}. Cache is enabled by default.")));
        true
    })
}

fn ttl(reader: &mut Reader<'_>, name: &'static str, service: &str, most: u64) -> Duration {
    let asked = reader.number(name, MOST_TTL_S, 0..=u64::MAX, |seconds| {
        format!("Setting default time-to-live: {}.", go_duration(Duration::from_secs(seconds)))
    });
    if asked > most {
        let most = go_duration(Duration::from_secs(most));
        reader
            .notes
            .push((Level::Warn, format!("{name} exceeds max limit. Setting {service} TTL to {most}.")));
    }
    Duration::from_secs(asked.min(most))
}

fn timeout(reader: &mut Reader<'_>, name: &'static str) -> Duration {
    let millis = reader.number(name, 0, 0..=u64::from(u32::MAX), |millis| {
        format!("Setting default timeout: {}.", go_duration(Duration::from_millis(millis)))
    });
    Duration::from_millis(millis)
}

fn prefetch(reader: &Reader<'_>) -> Result<Vec<Wanted>, Error> {
    const NAME: &str = "DANKI_SECRETS_PREFETCH";
    let text = reader.text(NAME).unwrap_or_default();
    let entries = text.split([' ', ',', '\n', '\t']).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| {
            route::entry(entry).map_err(|_| Error::Setting {
                name: NAME,
                value: entry.to_owned(),
                allowed: "queries as in requests, separated by spaces: secretId=prod/db name=/app/url&withDecryption=true",
            })
        })
        .collect()
}

fn endpoint(reader: &Reader<'_>, name: &'static str, service: &str, region: &str) -> Result<Endpoint, Error> {
    for name in [name, "AWS_ENDPOINT_URL"] {
        if let Some(url) = reader.text(name) {
            let allowed = "https://host[:port]; http:// to a loopback address only";
            return Endpoint::parse(&url).ok_or(Error::Setting { name, value: url, allowed });
        }
    }
    let suffix = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    let url = format!("https://{service}.{region}.{suffix}");
    let allowed = "the name of a region: eu-central-1";
    Endpoint::parse(&url).ok_or(Error::Setting { name: "AWS_REGION", value: region.to_owned(), allowed })
}

fn credentials(reader: &Reader<'_>) -> Source {
    if let (Some(id), Some(secret)) = (reader.text("AWS_ACCESS_KEY_ID"), reader.text("AWS_SECRET_ACCESS_KEY"))
    {
        return Source::Fixed(Keys::new(id, secret, reader.text("AWS_SESSION_TOKEN")));
    }
    let Some(url) = reader.text("AWS_CONTAINER_CREDENTIALS_FULL_URI") else {
        return Source::None("neither AWS_ACCESS_KEY_ID nor AWS_CONTAINER_CREDENTIALS_FULL_URI is set");
    };
    let local = url.strip_prefix("http://").and_then(|rest| {
        let (address, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let ip: std::net::Ipv4Addr = address.split(':').next()?.parse().ok()?;
        let address = if address.contains(':') { address.to_owned() } else { format!("{address}:80") };
        (ip.is_loopback() || ip.is_link_local()).then(|| (address, path.to_owned()))
    });
    match local {
        Some((address, path)) => Source::Container {
            address,
            path,
            authorization: reader.text("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
        },
        None => Source::None("AWS_CONTAINER_CREDENTIALS_FULL_URI is not http:// to this machine"),
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
