//! `AWS::Serverless::Function` and `AWS::Lambda::Function`.

use crate::Error;
use crate::read::Properties;
use crate::yaml::Node;
use danki_model::{MemoryMb, Runtime};
use std::collections::BTreeMap;

/// A function, its published alias and what concerns its concurrency.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Logical id.
    pub id: String,
    /// Line of the template.
    pub line: usize,
    /// `FunctionName`
    pub name: String,
    /// Where the code is.
    pub code: Code,
    /// Who runs it; none for an image.
    pub runtime: Option<Runtime>,
    /// Handler; the image's `CMD` if none.
    pub handler: Option<String>,
    /// Memory size; 128 MB if the template does not say.
    pub memory: MemoryMb,
    /// Timeout; 3 s if the template does not say.
    pub timeout_ms: u64,
    /// Size of `/tmp`.
    pub ephemeral_mb: u32,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
    /// Layers, as the template's references resolve: logical ids come as the layer's ARN.
    pub layers: Vec<String>,
    /// Aliases with their provisioned concurrency.
    pub aliases: Vec<Alias>,
    /// Reserved concurrency.
    pub reserved: Option<u32>,
    /// `Tracing: Active`
    pub traced: bool,
    /// `LoggingConfig.LogFormat` is JSON.
    pub json_logs: bool,
    /// Function URL.
    pub url: Option<Url>,
    /// Instead of what an image itself says.
    pub image_config: ImageConfig,
    /// `VpcConfig`: kept, and changes nothing.
    pub vpc: Option<Vpc>,
}

/// `ImageConfig`: instead of an image's `ENTRYPOINT`, `CMD` and `WORKDIR`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageConfig {
    /// `EntryPoint`
    pub entry_point: Option<Vec<String>>,
    /// `Command`
    pub command: Option<Vec<String>>,
    /// `WorkingDirectory`
    pub working_directory: Option<String>,
}

/// `VpcConfig`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vpc {
    /// `SubnetIds`
    pub subnets: Vec<String>,
    /// `SecurityGroupIds`
    pub security_groups: Vec<String>,
}

/// An alias of the version that deploying publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// Name.
    pub name: String,
    /// Provisioned concurrency.
    pub provisioned: Option<u32>,
}

/// A function URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Url {
    /// `AuthType: AWS_IAM`
    pub iam: bool,
    /// `InvokeMode: RESPONSE_STREAM`
    pub streams: bool,
}

/// Where a function's code is, relative to the template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// Directory or zip.
    Path(String),
    /// Source text in the template, one file.
    Inline(String),
    /// An object that an earlier upload put into S3.
    S3 {
        /// Bucket.
        bucket: String,
        /// Key.
        key: String,
    },
    /// A container image: a local archive or directory, or a reference.
    Image(String),
}

pub(crate) fn function(id: &str, name: String, properties: Properties<'_>) -> Result<Function, Error> {
    let code = code(properties)?;
    let is_image = matches!(code, Code::Image(_));
    let says_image = properties.text("PackageType")?.as_deref() == Some("Image");
    if says_image != is_image {
        let what = match says_image {
            true => "PackageType is Image, but there is no ImageUri",
            false => "ImageUri needs PackageType: Image",
        };
        let error = Error::at(properties.node.line, what);
        return Err(error.hint("ImageUri is the path of what `docker save IMAGE -o FILE` wrote"));
    }
    let runtime = match properties.text("Runtime")? {
        Some(text) => Some(text.parse::<Runtime>().map_err(|unknown| {
            let line = properties.key("Runtime").map_or(0, |node| node.line);
            Error::at(line, unknown.to_string())
        })?),
        None if is_image => None,
        None => return Err(Error::at(properties.node.line, "Runtime is missing")),
    };
    let handler = match properties.text("Handler")? {
        None if !is_image => return Err(Error::at(properties.node.line, "Handler is missing")),
        handler => handler,
    };
    let memory = properties.number("MemorySize", 128..=10_240_u32)?.unwrap_or(128);
    let environment = match properties.under("Environment")? {
        Some(environment) => environment.texts("Variables")?,
        None => BTreeMap::new(),
    };
    let ephemeral = match properties.under("EphemeralStorage")? {
        Some(storage) => storage.number("Size", 512..=10_240)?,
        None => None,
    };
    let json_logs = match properties.under("LoggingConfig")? {
        Some(logging) => logging.text("LogFormat")?.as_deref() == Some("JSON"),
        None => false,
    };
    Ok(Function {
        id: id.to_owned(),
        line: properties.node.line,
        name,
        code,
        runtime,
        handler,
        memory: MemoryMb::try_from(memory).expect("the range was checked"),
        timeout_ms: properties.number("Timeout", 1..=900_u64)?.unwrap_or(3) * 1_000,
        ephemeral_mb: ephemeral.unwrap_or(512),
        environment,
        layers: layers(properties)?,
        aliases: alias(properties)?.into_iter().collect(),
        reserved: properties.number("ReservedConcurrentExecutions", 0..=100_000)?,
        traced: traced(properties)?,
        json_logs,
        url: url(properties)?,
        image_config: image_config(properties)?,
        vpc: vpc(properties)?,
    })
}

fn code(properties: Properties<'_>) -> Result<Code, Error> {
    if let Some(text) = properties.text("InlineCode")? {
        return Ok(Code::Inline(text));
    }
    if let Some(image) = properties.text("ImageUri")? {
        return Ok(Code::Image(image));
    }
    let Some(node) = properties.key("CodeUri").or_else(|| properties.key("Code")) else {
        return Ok(Code::Path(".".to_owned()));
    };
    if let Some(path) = node.as_text() {
        return Ok(Code::Path(path.to_owned()));
    }
    let inner = Properties { node };
    if let Some(text) = inner.text("ZipFile")? {
        return Ok(Code::Inline(text));
    }
    if let Some(image) = inner.text("ImageUri")? {
        return Ok(Code::Image(image));
    }
    let either = |a: &str, b: &str| Ok(inner.text(a)?.or(inner.text(b)?));
    match (either("Bucket", "S3Bucket")?, either("Key", "S3Key")?) {
        (Some(bucket), Some(key)) => Ok(Code::S3 { bucket, key }),
        _ => Err(Error::at(
            node.line,
            "the code is neither a path, nor text, nor bucket and key, nor an image",
        )),
    }
}

fn layers(properties: Properties<'_>) -> Result<Vec<String>, Error> {
    let nodes = properties.list("Layers")?;
    if nodes.len() > 5 {
        return Err(Error::at(nodes[5].line, format!("{} layers; at most 5 are allowed", nodes.len())));
    }
    texts(nodes, "a layer")
}

fn texts(nodes: &[Node], what: &str) -> Result<Vec<String>, Error> {
    let text = |node: &Node| {
        node.as_text().map(str::to_owned).ok_or_else(|| Error::at(node.line, format!("{what} is text")))
    };
    nodes.iter().map(text).collect()
}

fn image_config(properties: Properties<'_>) -> Result<ImageConfig, Error> {
    let Some(config) = properties.under("ImageConfig")? else { return Ok(ImageConfig::default()) };
    let list = |key: &str| {
        config.key(key).map(|_| config.list(key).and_then(|nodes| texts(nodes, "an argument"))).transpose()
    };
    Ok(ImageConfig {
        entry_point: list("EntryPoint")?,
        command: list("Command")?,
        working_directory: config.text("WorkingDirectory")?,
    })
}

fn vpc(properties: Properties<'_>) -> Result<Option<Vpc>, Error> {
    let Some(config) = properties.under("VpcConfig")? else { return Ok(None) };
    Ok(Some(Vpc {
        subnets: texts(config.list("SubnetIds")?, "a subnet's id")?,
        security_groups: texts(config.list("SecurityGroupIds")?, "a security group's id")?,
    }))
}

/// SAM's `AutoPublishAlias` with `ProvisionedConcurrencyConfig`.
fn alias(properties: Properties<'_>) -> Result<Option<Alias>, Error> {
    let provisioned = match properties.under("ProvisionedConcurrencyConfig")? {
        Some(config) => config.number("ProvisionedConcurrentExecutions", 1..=100_000)?,
        None => None,
    };
    match properties.text("AutoPublishAlias")? {
        Some(name) => Ok(Some(Alias { name, provisioned })),
        None if provisioned.is_some() => {
            let line = properties.key("ProvisionedConcurrencyConfig").map_or(0, |node| node.line);
            let error =
                Error::at(line, "provisioned concurrency needs a version: AutoPublishAlias is missing");
            Err(error.hint("add AutoPublishAlias: live"))
        }
        None => Ok(None),
    }
}

fn traced(properties: Properties<'_>) -> Result<bool, Error> {
    if let Some(config) = properties.under("TracingConfig")? {
        return Ok(config.text("Mode")?.as_deref() == Some("Active"));
    }
    Ok(properties.text("Tracing")?.as_deref() == Some("Active"))
}

fn url(properties: Properties<'_>) -> Result<Option<Url>, Error> {
    properties.under("FunctionUrlConfig")?.map(read_url).transpose()
}

/// `FunctionUrlConfig`, or the properties of `AWS::Lambda::Url`.
pub(crate) fn read_url(properties: Properties<'_>) -> Result<Url, Error> {
    let iam = match properties.needed("AuthType")?.as_str() {
        "NONE" => false,
        "AWS_IAM" => true,
        other => {
            let what = format!("AuthType is {other:?}; allowed: NONE, AWS_IAM");
            return Err(Error::at(properties.node.line, what));
        }
    };
    Ok(Url { iam, streams: properties.text("InvokeMode")?.as_deref() == Some("RESPONSE_STREAM") })
}
