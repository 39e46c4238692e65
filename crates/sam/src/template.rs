//! A whole template: conditions, globals, one resource after the other.

use crate::events::{self, ApiStage};
use crate::function::{self, Alias};
use crate::read::{Properties, merged};
use crate::scope::{Scope, entries};
use crate::yaml::{self, Node, Value};
use crate::{Deployment, Error, Front, Template, Warning, intrinsic, services};

/// Types that have no part in what danki runs and whose absence nobody misses.
const SILENT: [&str; 8] = [
    "AWS::IAM::",
    "AWS::Lambda::Permission",
    "AWS::Logs::LogGroup",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::CloudWatch::",
    "AWS::ApplicationAutoScaling::",
    "AWS::CloudFormation::",
    "AWS::Serverless::Application",
];

/// Reads a template, YAML or JSON.
pub fn read(text: &str, deployment: &Deployment) -> Result<Template, Error> {
    let root = yaml::parse(text)?;
    if root.key("Resources").and_then(Node::as_map).is_none() {
        let error = Error::at(root.line, "there is no Resources section");
        return Err(
            error.hint("a SAM template begins with AWSTemplateFormatVersion, Transform and Resources")
        );
    }
    let scope = Scope::new(&root, deployment)?;
    let mut present = Vec::new();
    for (id, resource) in entries(&root, "Resources") {
        if let Some(resolved) =
            resolved(&scope, id, resource).map_err(|e| e.path(&format!("Resources.{id}")))?
        {
            present.push(resolved);
        }
    }
    let apis = stages(&present)?;
    let mut template = Template::default();
    for resource in &present {
        let at = |e: Error| {
            let path =
                format!("Resources.{}{}{}", resource.id, if e.path.is_empty() { "" } else { "." }, e.path);
            Error { path, ..e }
        };
        add(&scope, resource, &apis, &mut template).map_err(at)?;
    }
    for resource in &present {
        attach(resource, &present, &mut template)
            .map_err(|e| e.path(&format!("Resources.{}", resource.id)))?;
    }
    outputs(&scope, &mut template)?;
    Ok(template)
}

/// A resource whose condition holds, with `Globals` below its own properties and all functions resolved.
struct Resource<'t> {
    id: &'t str,
    kind: &'t str,
    properties: Node,
}

fn resolved<'t>(scope: &Scope<'t>, id: &'t str, resource: &'t Node) -> Result<Option<Resource<'t>>, Error> {
    if let Some(condition) = resource.key("Condition").and_then(Node::as_text)
        && !scope.condition(condition, resource.line)?
    {
        return Ok(None);
    }
    let kind = resource.key("Type").and_then(Node::as_text);
    let kind = kind.ok_or_else(|| Error::at(resource.line, "Type is missing"))?;
    let empty = Node { line: resource.line, value: Value::Map(Vec::new()) };
    let own = resource.key("Properties").unwrap_or(&empty);
    let section = match kind {
        "AWS::Serverless::Function" => "Function",
        "AWS::Serverless::Api" => "Api",
        "AWS::Serverless::HttpApi" => "HttpApi",
        "AWS::Serverless::SimpleTable" => "SimpleTable",
        _ => "",
    };
    let globals = scope.root.key("Globals").and_then(|globals| globals.key(section));
    let whole = globals.map_or_else(|| own.clone(), |globals| merged(globals, own));
    // What danki does not run may use functions that it does not offer.
    let properties = if RUN.contains(&kind) { intrinsic::resolve(scope, &whole)? } else { None };
    Ok(Some(Resource { id, kind, properties: properties.unwrap_or(empty) }))
}

/// The types whose properties are read.
const RUN: [&str; 14] = [
    "AWS::Serverless::Function",
    "AWS::Lambda::Function",
    "AWS::Serverless::LayerVersion",
    "AWS::Lambda::LayerVersion",
    "AWS::Serverless::SimpleTable",
    "AWS::DynamoDB::Table",
    "AWS::SecretsManager::Secret",
    "AWS::SSM::Parameter",
    "AWS::Serverless::Api",
    "AWS::Serverless::HttpApi",
    "AWS::Lambda::Version",
    "AWS::Lambda::Alias",
    "AWS::Lambda::Url",
    "AWS::ApiGateway::Stage",
];

fn add(
    scope: &Scope<'_>,
    resource: &Resource<'_>,
    apis: &[ApiStage<'_>],
    template: &mut Template,
) -> Result<(), Error> {
    let properties = Properties { node: &resource.properties };
    let id = resource.id;
    let line = resource.properties.line;
    match resource.kind {
        "AWS::Serverless::Function" | "AWS::Lambda::Function" => {
            let function = function::function(id, scope.physical_id(id, line)?, properties)?;
            if function.vpc.is_some() {
                let what = "VpcConfig is kept; the network is the same with and without it".to_owned();
                template.warnings.push(Warning { line, resource: id.to_owned(), what });
            }
            template.functions.push(function);
            if let Some(wanted) = properties.under("Events")? {
                let (routes, warnings) = events::routes(id, wanted, apis)?;
                template.routes.extend(routes);
                template.warnings.extend(warnings);
            }
        }
        "AWS::Serverless::LayerVersion" | "AWS::Lambda::LayerVersion" => {
            let arn = scope.physical_id(id, line)?;
            let name = arn.rsplit(':').nth(1).unwrap_or(id).to_owned();
            template.layers.push(services::layer(id, name, properties)?);
        }
        "AWS::Serverless::SimpleTable" => {
            template.tables.push(services::simple_table(id, scope.physical_id(id, line)?, properties)?);
        }
        "AWS::DynamoDB::Table" => {
            template.tables.push(services::table(id, scope.physical_id(id, line)?, properties)?);
        }
        "AWS::SecretsManager::Secret" => {
            let name = properties.text("Name")?.unwrap_or_else(|| format!("{}-{id}", scope.deployment.stack));
            template.secrets.push(services::secret(name, properties)?);
        }
        "AWS::SSM::Parameter" => {
            template.parameters.push(services::parameter(scope.physical_id(id, line)?, properties)?);
        }
        kind if RUN.contains(&kind) || SILENT.iter().any(|silent| kind.starts_with(silent)) => {}
        kind => {
            let what = format!("{kind} is not run here");
            template.warnings.push(Warning { line, resource: id.to_owned(), what });
        }
    }
    Ok(())
}

fn stages<'t>(present: &[Resource<'t>]) -> Result<Vec<ApiStage<'t>>, Error> {
    let mut apis = Vec::new();
    for resource in present {
        let (front, default) = match resource.kind {
            "AWS::Serverless::Api" => (Front::Rest, "Prod"),
            "AWS::Serverless::HttpApi" => (Front::Http, "$default"),
            _ => continue,
        };
        let stage = Properties { node: &resource.properties }.text("StageName")?;
        apis.push(ApiStage { id: resource.id, front, stage: stage.unwrap_or_else(|| default.to_owned()) });
    }
    Ok(apis)
}

/// Plain CloudFormation says aliases and URLs beside the function, not in it.
fn attach(resource: &Resource<'_>, present: &[Resource<'_>], template: &mut Template) -> Result<(), Error> {
    let properties = Properties { node: &resource.properties };
    let (key, is_alias) = match resource.kind {
        "AWS::Lambda::Alias" => ("FunctionName", true),
        "AWS::Lambda::Url" => ("TargetFunctionArn", false),
        _ => return Ok(()),
    };
    let target = properties.needed(key)?;
    let name = target.rsplit(':').next().unwrap_or(&target);
    let Some(function) = template.functions.iter_mut().find(|f| f.name == name || f.id == name) else {
        let what = format!("{} is of a function that the template does not have: {target}", resource.kind);
        template.warnings.push(Warning {
            line: resource.properties.line,
            resource: resource.id.to_owned(),
            what,
        });
        return Ok(());
    };
    if !is_alias {
        function.url = Some(function::read_url(properties)?);
        return Ok(());
    }
    // The amount may stand at the alias or at the version that it points to.
    let versions = present.iter().filter(|r| r.kind == "AWS::Lambda::Version");
    let of_function = |r: &&Resource<'_>| {
        let target = r.properties.key("FunctionName").and_then(Node::as_text).unwrap_or_default();
        target == name || target.ends_with(&format!(":{name}"))
    };
    let mut provisioned = amount(properties)?;
    for version in versions.filter(of_function) {
        provisioned = provisioned.or(amount(Properties { node: &version.properties })?);
    }
    function.aliases.push(Alias { name: properties.needed("Name")?, provisioned });
    Ok(())
}

fn amount(properties: Properties<'_>) -> Result<Option<u32>, Error> {
    match properties.under("ProvisionedConcurrencyConfig")? {
        Some(config) => config.number("ProvisionedConcurrentExecutions", 1..=100_000),
        None => Ok(None),
    }
}

/// Outputs that cannot be resolved (another stack's values) are warnings: nothing runs by them.
fn outputs(scope: &Scope<'_>, template: &mut Template) -> Result<(), Error> {
    for (name, output) in entries(scope.root, "Outputs") {
        if let Some(condition) = output.key("Condition").and_then(Node::as_text)
            && !scope.condition(condition, output.line)?
        {
            continue;
        }
        let Some(value) = output.key("Value") else { continue };
        match intrinsic::resolve(scope, value) {
            Ok(value) => {
                let text = value.as_ref().and_then(Node::as_text).unwrap_or_default();
                template.outputs.insert(name.to_owned(), text.to_owned());
            }
            Err(error) => {
                let (resource, what) = (format!("Outputs.{name}"), error.what);
                template.warnings.push(Warning { line: error.line, resource, what });
            }
        }
    }
    Ok(())
}
