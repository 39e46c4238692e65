//! A function's `Events`: the routes over which it is called.

use crate::read::Properties;
use crate::yaml::Node;
use crate::{Error, Warning};

/// A path and method that call a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Logical id of the API, or the implicit one's.
    pub api: String,
    /// What kind of front it is.
    pub front: Front,
    /// Stage, e.g. `Prod` of a REST API; the first element of the path there. `$default` has no element.
    pub stage: String,
    /// Upper-case method, or `ANY`.
    pub method: String,
    /// Path with `{name}` and `{name+}` elements, or `$default`.
    pub path: String,
    /// Shape of the event.
    pub payload: Payload,
    /// Logical id of the function.
    pub function: String,
    /// Milliseconds the front waits; none: its default.
    pub timeout_ms: Option<u64>,
}

/// Which of the gateway's products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Front {
    /// `AWS::Serverless::Api`: REST, payload 1.0.
    Rest,
    /// `AWS::Serverless::HttpApi`
    Http,
}

/// Shape of the event that the function gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Format 1.0
    V1,
    /// Format 2.0
    V2,
}

/// What the API resources of the template say, by logical id.
pub(crate) struct ApiStage<'t> {
    pub id: &'t str,
    pub front: Front,
    pub stage: String,
}

/// The routes of one function, and warnings for events of other kinds.
pub(crate) fn routes(
    function: &str,
    events: Properties<'_>,
    apis: &[ApiStage<'_>],
) -> Result<(Vec<Route>, Vec<Warning>), Error> {
    let (mut routes, mut warnings) = (Vec::new(), Vec::new());
    for (name, event) in events.node.as_map().unwrap_or_default() {
        let read = Properties { node: event };
        let kind = read.needed("Type").map_err(|e| e.path(&format!("Events.{name}")))?;
        let front = match kind.as_str() {
            "Api" => Front::Rest,
            "HttpApi" => Front::Http,
            other => {
                let what = format!("event {name} ({other}) does not call the function here");
                warnings.push(Warning { line: event.line, resource: function.to_owned(), what });
                continue;
            }
        };
        let properties = read.under("Properties").map_err(|e| e.path(&format!("Events.{name}")))?;
        let route =
            route(function, front, properties, apis).map_err(|e| e.path(&format!("Events.{name}")))?;
        routes.push(route);
    }
    Ok((routes, warnings))
}

fn route(
    function: &str,
    front: Front,
    properties: Option<Properties<'_>>,
    apis: &[ApiStage<'_>],
) -> Result<Route, Error> {
    let empty = Node { line: 0, value: crate::yaml::Value::Map(Vec::new()) };
    let properties = properties.unwrap_or(Properties { node: &empty });
    let (key, implicit) = match front {
        Front::Rest => ("RestApiId", "ServerlessRestApi"),
        Front::Http => ("ApiId", "ServerlessHttpApi"),
    };
    let id = properties.text(key)?;
    let named = id.as_deref().and_then(|id| {
        let is = |api: &&ApiStage<'_>| api.id == id || id.ends_with(&format!("-{}", api.id));
        apis.iter().filter(|api| api.front == front).find(is)
    });
    let default_stage = if front == Front::Rest { "Prod" } else { "$default" };
    let path = properties.text("Path")?.unwrap_or_else(|| "$default".to_owned());
    if path != "$default" && !path.starts_with('/') {
        return Err(Error::at(properties.node.line, format!("Path is {path:?}; it begins with /")));
    }
    let method = properties.text("Method")?.unwrap_or_else(|| "ANY".to_owned()).to_ascii_uppercase();
    let version = properties.text("PayloadFormatVersion")?;
    let payload = match (front, version.as_deref()) {
        (Front::Rest, _) | (Front::Http, Some("1.0")) => Payload::V1,
        (Front::Http, None | Some("2.0")) => Payload::V2,
        (_, Some(other)) => {
            let what = format!("PayloadFormatVersion is {other:?}; allowed: \"1.0\", \"2.0\"");
            return Err(Error::at(properties.node.line, what));
        }
    };
    Ok(Route {
        api: named.map_or(implicit, |api| api.id).to_owned(),
        front,
        stage: named.map_or(default_stage, |api| &api.stage).to_owned(),
        method: if method == "X-AMAZON-APIGATEWAY-ANY-METHOD" { "ANY".to_owned() } else { method },
        path,
        payload,
        function: function.to_owned(),
        timeout_ms: properties.number("TimeoutInMillis", 50..=30_000)?,
    })
}
