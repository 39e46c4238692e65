//! A SAM template, deployed through the very operations that an SDK would call: nothing here can make what the API could not.

use crate::api::Api;
use crate::code::LOCAL_BUCKET;
use crate::fault::{Fault, Kind};
use crate::front::{BadRoute, Route};
use crate::http;
use crate::request::{Content, Request};
use crate::store::{ImageSettings, State};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use danki_sam::{Code, Function, Layer, Template};
use hyper::{HeaderMap, Method};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for one function to become active.
const ACTIVE: Duration = Duration::from_secs(60);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(10);

/// What deploying a template has made.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// Names of the functions, in the template's order.
    pub functions: Vec<String>,
    /// Function and id of each function URL.
    pub urls: Vec<(String, String)>,
    /// Routes of the fronts.
    pub routes: Vec<Route>,
}

/// A template that could not be deployed.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// The API refused.
    #[error("{id}: {name}: {message}")]
    Refused {
        /// Logical id.
        id: String,
        /// AWS's name of the error.
        name: &'static str,
        /// What it says.
        message: String,
    },
    /// Code or a layer is not where the template says.
    #[error(
        "{id}: {path} is neither a directory nor a zip\nhint: paths are relative to the template; functions with build steps are built before (npm ci, pip install --target, sam build)"
    )]
    NoCode {
        /// Logical id.
        id: String,
        /// Where it was looked for.
        path: String,
    },
    /// A container image that is not a file here.
    #[error(
        "{id}: {path}: no file is there\nhint: ImageUri is a path relative to the template; `docker save IMAGE -o FILE` writes one"
    )]
    NoImage {
        /// Logical id.
        id: String,
        /// Where it was looked for.
        path: String,
    },
    /// Reading or writing a file.
    #[error("{id}: {path}: {source}")]
    File {
        /// Logical id.
        id: String,
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// It did not become active.
    #[error("{id}: {reason}")]
    Inactive {
        /// Logical id.
        id: String,
        /// Why.
        reason: String,
    },
    /// A route that cannot be served.
    #[error(transparent)]
    Route(#[from] BadRoute),
}

/// Deploys layers, then functions with versions, aliases, concurrency and URLs.
pub async fn deploy(api: &Arc<Api>, template: &Template, dir: &Path) -> Result<Stack, StackError> {
    let mut layers = BTreeMap::new();
    for layer in &template.layers {
        layers.insert(layer.name.clone(), publish_layer(api, layer, dir).await?);
    }
    let mut stack = Stack::default();
    let mut qualifiers = BTreeMap::new();
    for function in &template.functions {
        let step = Step { api, id: &function.id };
        step.code_and_settings(function, &layers, dir).await?;
        step.aliases(function).await?;
        if let Some(reserved) = function.reserved {
            let path = format!("/2017-10-31/functions/{}/concurrency", function.name);
            step.call("PUT", &path, json!({ "ReservedConcurrentExecutions": reserved })).await?;
        }
        if let Some(id) = step.url(function).await? {
            stack.urls.push((function.name.clone(), id));
        }
        stack.functions.push(function.name.clone());
        let alias = function.aliases.first().map(|alias| alias.name.clone());
        qualifiers.insert(function.id.clone(), (function.name.clone(), alias));
    }
    for route in &template.routes {
        // SAM's events call the alias that it publishes.
        let Some((function, qualifier)) = qualifiers.get(&route.function).cloned() else { continue };
        stack.routes.push(served(route, function, qualifier));
    }
    Ok(stack)
}

fn served(route: &danki_sam::Route, function: String, qualifier: Option<String>) -> Route {
    use danki_gateway::{Front, Payload};
    Route {
        api: route.api.clone(),
        front: match route.front {
            danki_sam::Front::Rest => Front::Rest,
            danki_sam::Front::Http => Front::Http,
        },
        stage: route.stage.clone(),
        method: route.method.clone(),
        path: route.path.clone(),
        payload: match route.payload {
            danki_sam::Payload::V1 => Payload::V1,
            danki_sam::Payload::V2 => Payload::V2,
        },
        function,
        qualifier,
        timeout_ms: route.timeout_ms,
    }
}

/// Publishes a layer's content; its ARN.
async fn publish_layer(api: &Arc<Api>, layer: &Layer, dir: &Path) -> Result<String, StackError> {
    let step = Step { api, id: &layer.id };
    let content = step.local(&dir.join(&layer.content))?;
    let path = format!("/2018-10-31/layers/{}/versions", layer.name);
    let made = step.call("POST", &path, json!({ "Content": content })).await?;
    Ok(made["LayerVersionArn"].as_str().unwrap_or_default().to_owned())
}

/// What is done for one resource.
struct Step<'s> {
    api: &'s Arc<Api>,
    id: &'s str,
}

impl Step<'_> {
    async fn call(&self, method: &str, path: &str, body: Value) -> Result<Value, StackError> {
        call(self.api, method, path, body).await.map_err(|fault| self.refused(fault))
    }

    fn refused(&self, fault: Fault) -> StackError {
        StackError::Refused { id: self.id.to_owned(), name: fault.kind.wire().0, message: fault.message }
    }

    async fn code_and_settings(
        &self,
        function: &Function,
        layers: &BTreeMap<String, String>,
        dir: &Path,
    ) -> Result<(), StackError> {
        let code = self.code(function, dir)?;
        let name = &function.name;
        let settings = settings(function, layers);
        let exists = self.api.account().functions.contains_key(name);
        if exists {
            self.call("PUT", &format!("/2015-03-31/functions/{name}/configuration"), settings).await?;
            self.active(name).await?;
            self.call("PUT", &format!("/2015-03-31/functions/{name}/code"), code).await?;
        } else {
            let mut whole = settings;
            whole["FunctionName"] = json!(name);
            whole["Code"] = code;
            let is_image = matches!(function.code, Code::Image(_));
            whole["PackageType"] = json!(if is_image { "Image" } else { "Zip" });
            whole["Role"] = json!(format!("arn:aws:iam::{}:role/danki", crate::arn::ACCOUNT));
            self.call("POST", "/2015-03-31/functions", whole).await?;
        }
        self.active(name).await
    }

    /// A version for the aliases, the aliases, their provisioned concurrency.
    async fn aliases(&self, function: &Function) -> Result<(), StackError> {
        if function.aliases.is_empty() {
            return Ok(());
        }
        let base = format!("/2015-03-31/functions/{}", function.name);
        let version = self.call("POST", &format!("{base}/versions"), json!({})).await?["Version"].clone();
        for alias in &function.aliases {
            let body = json!({ "Name": alias.name, "FunctionVersion": version });
            match call(self.api, "POST", &format!("{base}/aliases"), body.clone()).await {
                Err(fault) if fault.kind == Kind::ResourceConflict => {
                    self.call("PUT", &format!("{base}/aliases/{}", alias.name), body).await?;
                }
                other => drop(other.map_err(|fault| self.refused(fault))?),
            }
            if let Some(amount) = alias.provisioned {
                let path = format!(
                    "/2019-09-30/functions/{}/provisioned-concurrency?Qualifier={}",
                    function.name, alias.name
                );
                self.call("PUT", &path, json!({ "ProvisionedConcurrentExecutions": amount })).await?;
            }
        }
        Ok(())
    }

    async fn url(&self, function: &Function) -> Result<Option<String>, StackError> {
        let Some(url) = function.url else { return Ok(None) };
        let qualifier =
            function.aliases.first().map_or_else(String::new, |a| format!("?Qualifier={}", a.name));
        let path = format!("/2021-10-31/functions/{}/url{qualifier}", function.name);
        let body = json!({
            "AuthType": if url.iam { "AWS_IAM" } else { "NONE" },
            "InvokeMode": if url.streams { "RESPONSE_STREAM" } else { "BUFFERED" },
        });
        match call(self.api, "POST", &path, body.clone()).await {
            Err(fault) if fault.kind == Kind::ResourceConflict => drop(self.call("PUT", &path, body).await?),
            other => drop(other.map_err(|fault| self.refused(fault))?),
        }
        let account = self.api.account();
        let urls = account.functions.get(&function.name).map(|f| &f.urls);
        Ok(urls.and_then(|urls| urls.values().next()).map(|url| url.id.clone()))
    }

    async fn active(&self, name: &str) -> Result<(), StackError> {
        let inactive = |reason: String| StackError::Inactive { id: self.id.to_owned(), reason };
        let settled = async {
            loop {
                let state = self.api.account().functions.get(name).map(|f| f.latest.state.clone());
                match state {
                    Some(State::Pending) => tokio::time::sleep(LOOK).await,
                    Some(State::Failed(reason)) => return Err(inactive(reason)),
                    _ if self.api.fleet.get(name, crate::store::LATEST).is_none() => {
                        tokio::time::sleep(LOOK).await
                    }
                    _ => return Ok(()),
                }
            }
        };
        let waited = tokio::time::timeout(ACTIVE, settled).await;
        waited.unwrap_or_else(|_| Err(inactive(format!("not active after {} s", ACTIVE.as_secs()))))
    }

    fn code(&self, function: &Function, dir: &Path) -> Result<Value, StackError> {
        match &function.code {
            Code::Path(path) => self.local(&dir.join(path)),
            Code::Inline(text) => self.inline(function, text),
            Code::S3 { bucket, key } => Ok(json!({ "S3Bucket": bucket, "S3Key": key })),
            Code::Image(archive) => self.image(&dir.join(archive)),
        }
    }

    /// A directory as it is, so that its changes are seen; a zip as an upload.
    fn local(&self, path: &Path) -> Result<Value, StackError> {
        let found = path.canonicalize().ok();
        match found {
            Some(dir) if dir.is_dir() => {
                Ok(json!({ "S3Bucket": LOCAL_BUCKET, "S3Key": dir.to_string_lossy() }))
            }
            Some(zip) if zip.is_file() => {
                let bytes = std::fs::read(&zip).map_err(|source| self.file(&zip, source))?;
                Ok(json!({ "ZipFile": STANDARD.encode(bytes) }))
            }
            _ => Err(StackError::NoCode { id: self.id.to_owned(), path: path.display().to_string() }),
        }
    }

    fn image(&self, path: &Path) -> Result<Value, StackError> {
        match path.canonicalize() {
            Ok(file) if file.is_file() => Ok(json!({ "ImageUri": file.to_string_lossy() })),
            _ => Err(StackError::NoImage { id: self.id.to_owned(), path: path.display().to_string() }),
        }
    }

    /// Text of the template becomes the file that its handler names.
    fn inline(&self, function: &Function, text: &str) -> Result<Value, StackError> {
        let module =
            function.handler.as_deref().unwrap_or("index.handler").split('.').next().unwrap_or("index");
        let safe: String =
            module.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
        let end = match function.runtime {
            Some(danki_model::Runtime::Python(_)) => "py",
            Some(danki_model::Runtime::Php(_)) => "php",
            _ => "js",
        };
        let dir = self.api.code_dir().join("inline").join(&function.name);
        let file: PathBuf = dir.join(format!("{safe}.{end}"));
        std::fs::create_dir_all(&dir).map_err(|source| self.file(&dir, source))?;
        std::fs::write(&file, text).map_err(|source| self.file(&file, source))?;
        self.local(&dir)
    }

    fn file(&self, path: &Path, source: std::io::Error) -> StackError {
        StackError::File { id: self.id.to_owned(), path: path.display().to_string(), source }
    }
}

fn settings(function: &Function, layers: &BTreeMap<String, String>) -> Value {
    // The template's own layers were published under a number that only the API knows.
    let arn = |wanted: &String| {
        let name = wanted.rsplit(':').nth(1).unwrap_or_default();
        layers.get(name).cloned().unwrap_or_else(|| wanted.clone())
    };
    let mut settings = json!({
        "MemorySize": function.memory.mb(),
        "Timeout": function.timeout_ms / 1_000,
        "EphemeralStorage": { "Size": function.ephemeral_mb },
        "Environment": { "Variables": function.environment },
        "Layers": function.layers.iter().map(arn).collect::<Vec<_>>(),
        "TracingConfig": { "Mode": if function.traced { "Active" } else { "PassThrough" } },
        "LoggingConfig": { "LogFormat": if function.json_logs { "JSON" } else { "Text" } },
    });
    if let Some(vpc) = &function.vpc {
        settings["VpcConfig"] = json!({ "SubnetIds": vpc.subnets, "SecurityGroupIds": vpc.security_groups });
    }
    if matches!(function.code, Code::Image(_)) {
        let image = function.image_config.clone();
        settings["ImageConfig"] = json!(ImageSettings {
            entry_point: image.entry_point,
            command: image.command,
            working_directory: image.working_directory,
        });
        return settings;
    }
    if let Some(runtime) = function.runtime {
        settings["Runtime"] = json!(runtime.to_string());
    }
    if let Some(handler) = &function.handler {
        settings["Handler"] = json!(handler);
    }
    settings
}

/// One call of the API, from within.
pub async fn call(api: &Arc<Api>, method: &str, path: &str, body: Value) -> Result<Value, Fault> {
    let (plain, query) = path.split_once('?').unwrap_or((path, ""));
    let request = Request {
        method: Method::from_bytes(method.as_bytes()).expect("the callers' methods are legal"),
        path: plain.to_owned(),
        parameters: Vec::new(),
        query: crate::request::pairs(query),
        headers: HeaderMap::new(),
        body: Bytes::from(body.to_string()),
        id: api.uuid(),
        host: String::new(),
    };
    let reply = http::dispatch(api, request, plain).await?;
    match reply.body {
        Content::Whole(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or(Value::Null)),
        Content::Stream(_) => Ok(Value::Null),
    }
}
