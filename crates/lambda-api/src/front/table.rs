//! Which function a request is for.

use crate::api::Api;
use danki_gateway::{BadPath, Front, Payload, Routes};
use std::collections::BTreeMap;

/// A path and method of an API that call a function.
#[derive(Clone, Debug)]
pub struct Route {
    /// Id of the API.
    pub api: String,
    /// What kind of front.
    pub front: Front,
    /// Stage: the first element of a REST API's path; `$default`.
    pub stage: String,
    /// Method, or `ANY`.
    pub method: String,
    /// Path with `{names}`, or `$default`.
    pub path: String,
    /// Format of the event.
    pub payload: Payload,
    /// Name of the function.
    pub function: String,
    /// Alias or version; none: `$LATEST`.
    pub qualifier: Option<String>,
    /// How long the front waits, ms; at most its own limit.
    pub timeout_ms: Option<u64>,
}

/// A route that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum BadRoute {
    /// Its path.
    #[error(transparent)]
    Path(#[from] BadPath),
    /// Two stages of one API; a template has one.
    #[error("API {0:?} has two stages, {1:?} and {2:?}")]
    Stages(String, String, String),
}

#[derive(Default)]
pub struct Table {
    apis: BTreeMap<String, ApiRoutes>,
}

struct ApiRoutes {
    front: Front,
    stage: String,
    routes: Routes<Route>,
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub front: Front,
    /// Id of the API or of the URL.
    pub id: String,
    pub stage: String,
    pub resource: String,
    pub method: String,
    pub parameters: BTreeMap<String, String>,
    pub payload: Payload,
    pub function: String,
    pub qualifier: Option<String>,
    /// The request's path as the function sees it.
    pub path: String,
    pub timeout_ms: u64,
    pub streams: bool,
    pub needs_iam: bool,
}

impl Table {
    pub fn new(routes: Vec<Route>) -> Result<Table, BadRoute> {
        let mut apis: BTreeMap<String, ApiRoutes> = BTreeMap::new();
        for route in routes {
            let api = apis.entry(route.api.to_ascii_lowercase()).or_insert_with(|| ApiRoutes {
                front: route.front,
                stage: route.stage.clone(),
                routes: Routes::default(),
            });
            if api.stage != route.stage {
                return Err(BadRoute::Stages(route.api, api.stage.clone(), route.stage));
            }
            let (method, path) = (route.method.clone(), route.path.clone());
            api.routes.add(&method, &path, route)?;
        }
        Ok(Table { apis })
    }

    /// Finds who serves a request; the error is the front whose words to say no with.
    pub fn place(&self, api: &Api, host: &str, method: &str, path: &str) -> Result<Place, Front> {
        let label = host.split(['.', ':']).next().unwrap_or_default().to_ascii_lowercase();
        if let Some((id, rest)) = prefixed(path, "/_danki/url/") {
            return url(api, id, rest).ok_or(Front::Url);
        }
        if let Some(place) = url(api, &label, path) {
            return Ok(place);
        }
        if let Some((id, rest)) = prefixed(path, "/_danki/api/") {
            let id = id.to_ascii_lowercase();
            let found = self.apis.get_key_value(&id).ok_or(Front::Http)?;
            return within(found, method, rest);
        }
        if let Some(found) = self.apis.get_key_value(&label) {
            return within(found, method, path);
        }
        let staged = self.apis.iter().find(|(_, routes)| stripped(&routes.stage, path).is_some());
        let plain =
            || self.apis.iter().find(|(_, routes)| routes.front == Front::Http && routes.stage == "$default");
        let fallback = if self.apis.values().any(|routes| routes.front == Front::Rest) {
            Front::Rest
        } else {
            Front::Http
        };
        within(staged.or_else(plain).ok_or(fallback)?, method, path)
    }
}

fn within((id, api): (&String, &ApiRoutes), method: &str, path: &str) -> Result<Place, Front> {
    // A REST API is reached with its stage in the path and does not show it to the function.
    let inner = if api.stage == "$default" { path } else { stripped(&api.stage, path).ok_or(api.front)? };
    let found = api.routes.find(method, inner).ok_or(api.front)?;
    let route = found.target;
    Ok(Place {
        front: api.front,
        id: id.clone(),
        stage: api.stage.clone(),
        resource: found.path.to_owned(),
        method: found.method.to_owned(),
        parameters: found.parameters,
        payload: route.payload,
        function: route.function.clone(),
        qualifier: route.qualifier.clone(),
        // An HTTP API with a named stage shows it.
        path: if api.front == Front::Rest { inner.to_owned() } else { path.to_owned() },
        timeout_ms: route.timeout_ms.unwrap_or(u64::MAX).min(api.front.patience_ms()),
        streams: false,
        needs_iam: false,
    })
}

/// A function URL of the account.
fn url(api: &Api, id: &str, path: &str) -> Option<Place> {
    let account = api.account();
    let (name, qualifier, config) = account.functions.iter().find_map(|(name, function)| {
        let found = function.urls.iter().find(|(_, config)| config.id == id);
        found.map(|(qualifier, config)| (name, qualifier, config))
    })?;
    Some(Place {
        front: Front::Url,
        id: id.to_owned(),
        stage: "$default".to_owned(),
        resource: "$default".to_owned(),
        method: "ANY".to_owned(),
        parameters: BTreeMap::new(),
        payload: Payload::V2,
        function: name.clone(),
        qualifier: Some(qualifier.clone()).filter(|q| q != crate::store::LATEST),
        path: path.to_owned(),
        timeout_ms: Front::Url.patience_ms(),
        streams: config.invoke_mode == "RESPONSE_STREAM",
        needs_iam: config.auth_type == "AWS_IAM",
    })
}

/// `/_danki/url/ID/rest` as `(ID, /rest)`.
fn prefixed<'p>(path: &'p str, prefix: &str) -> Option<(&'p str, &'p str)> {
    let rest = path.strip_prefix(prefix)?;
    Some(match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    })
}

/// The path below a stage.
fn stripped<'p>(stage: &str, path: &'p str) -> Option<&'p str> {
    let rest = path.strip_prefix('/')?.strip_prefix(stage)?;
    match rest {
        "" => Some("/"),
        rest if rest.starts_with('/') => Some(rest),
        _ => None,
    }
}
