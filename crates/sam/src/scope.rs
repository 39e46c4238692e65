//! What names mean inside a template: parameters, pseudo parameters, mappings, conditions and the resources themselves.

use crate::yaml::{Node, Value};
use crate::{Deployment, Error, intrinsic};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Conditions use conditions and names use names; a circle would not end.
const MAX_DEPTH: u8 = 32;
/// Names made of names made of names could ask for more work than anyone waits for.
const MAX_STEPS: u32 = 200_000;

/// Everything an intrinsic function can refer to.
pub(crate) struct Scope<'t> {
    pub root: &'t Node,
    pub deployment: &'t Deployment,
    parameters: Rc<BTreeMap<&'t str, Node>>,
    steps: Rc<Cell<u32>>,
    depth: u8,
}

impl<'t> Scope<'t> {
    /// Reads the parameters: the caller's value, else the default.
    pub fn new(root: &'t Node, deployment: &'t Deployment) -> Result<Scope<'t>, Error> {
        let mut parameters = BTreeMap::new();
        for (name, declared) in entries(root, "Parameters") {
            let value = match (deployment.parameters.get(name), declared.key("Default")) {
                (Some(given), _) => parameter(declared, given),
                (None, Some(default)) => parameter(declared, default.as_text().unwrap_or_default()),
                (None, None) => {
                    let error =
                        Error::at(declared.line, format!("parameter {name:?} has no value and no default"));
                    return Err(error
                        .path(&format!("Parameters.{name}"))
                        .hint(format!("give one: --parameter {name}=VALUE")));
                }
            };
            allowed(name, declared, &value)?;
            parameters.insert(name, value);
        }
        if let Some(unknown) =
            deployment.parameters.keys().find(|name| !parameters.contains_key(name.as_str()))
        {
            let known: Vec<&str> = parameters.keys().copied().collect();
            let error = Error::at(0, format!("the template has no parameter {unknown:?}"));
            return Err(error.hint(format!(
                "it has: {}",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            )));
        }
        Ok(Scope { root, deployment, parameters: Rc::new(parameters), steps: Rc::default(), depth: 0 })
    }

    /// Counts one function call more.
    pub fn step(&self, line: usize) -> Result<(), Error> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() <= MAX_STEPS {
            return Ok(());
        }
        Err(Error::at(
            line,
            format!("more than {MAX_STEPS} function calls are needed to resolve the template"),
        ))
    }

    fn deeper(&self, line: usize, name: &str) -> Result<Scope<'t>, Error> {
        if self.depth == MAX_DEPTH {
            return Err(Error::at(
                line,
                format!("{name:?} refers to itself, or is nested deeper than {MAX_DEPTH}"),
            ));
        }
        let (parameters, steps) = (Rc::clone(&self.parameters), Rc::clone(&self.steps));
        Ok(Scope { parameters, steps, depth: self.depth + 1, ..*self })
    }

    /// What `Ref` gives; `Ok(None)` for `AWS::NoValue`.
    pub fn reference(&self, name: &str, line: usize) -> Result<Option<Node>, Error> {
        if name == "AWS::NoValue" {
            return Ok(None);
        }
        if let Some(value) = self.parameters.get(name) {
            return Ok(Some(value.clone()));
        }
        let text = match self.pseudo(name) {
            Some(text) => text,
            None => self.physical_id(name, line)?,
        };
        Ok(Some(Node::text(line, text)))
    }

    fn pseudo(&self, name: &str) -> Option<String> {
        let d = self.deployment;
        Some(match name {
            "AWS::Region" => d.region.clone(),
            "AWS::AccountId" => d.account.clone(),
            "AWS::Partition" => "aws".to_owned(),
            "AWS::URLSuffix" => "amazonaws.com".to_owned(),
            "AWS::StackName" => d.stack.clone(),
            "AWS::StackId" => {
                format!("arn:aws:cloudformation:{}:{}:stack/{}/danki", d.region, d.account, d.stack)
            }
            _ => return None,
        })
    }

    /// The type of a resource.
    pub fn resource_type(&self, name: &str) -> Option<&'t str> {
        self.resource(name)?.key("Type")?.as_text()
    }

    pub fn resource(&self, name: &str) -> Option<&'t Node> {
        self.root.key("Resources")?.key(name)
    }

    /// What `Ref` gives for a resource: its name where it has one, else `stack-LogicalId` as CloudFormation would make one up.
    pub fn physical_id(&self, name: &str, line: usize) -> Result<String, Error> {
        let generated = || format!("{}-{name}", self.deployment.stack);
        let Some(kind) = self.resource_type(name) else {
            return self.implied(name).ok_or_else(|| {
                Error::at(line, format!("{name:?} is neither a parameter nor a resource of this template"))
            });
        };
        let d = self.deployment;
        let own_name = |key: &str| -> Result<String, Error> {
            let properties = self.resource(name).and_then(|resource| resource.key("Properties"));
            let Some(node) = properties.and_then(|properties| properties.key(key)) else {
                return Ok(generated());
            };
            let resolved = intrinsic::resolve(&self.deeper(line, name)?, node)?;
            Ok(resolved.as_ref().and_then(Node::as_text).map_or_else(generated, str::to_owned))
        };
        match kind {
            "AWS::Serverless::Function" | "AWS::Lambda::Function" => own_name("FunctionName"),
            "AWS::Serverless::SimpleTable" | "AWS::DynamoDB::Table" => own_name("TableName"),
            "AWS::SSM::Parameter" => own_name("Name"),
            "AWS::Serverless::LayerVersion" | "AWS::Lambda::LayerVersion" => {
                Ok(format!("arn:aws:lambda:{}:{}:layer:{}:1", d.region, d.account, own_name("LayerName")?))
            }
            "AWS::SecretsManager::Secret" => {
                Ok(format!("arn:aws:secretsmanager:{}:{}:secret:{}", d.region, d.account, own_name("Name")?))
            }
            _ => Ok(generated()),
        }
    }

    /// Names that SAM generates beside a resource: a function's alias and version.
    fn implied(&self, name: &str) -> Option<String> {
        let base = ["Alias", "Version", ".Alias", ".Version"].iter().find_map(|end| {
            let base = name.strip_suffix(end)?;
            let function = self.resource_type(base)? == "AWS::Serverless::Function";
            function.then_some(base)
        });
        if let Some(base) = base {
            return self.attribute(base, "Arn", 0).ok();
        }
        matches!(name, "ServerlessRestApi" | "ServerlessHttpApi").then(|| name.to_lowercase())
    }

    /// What `GetAtt` gives.
    pub fn attribute(&self, name: &str, attribute: &str, line: usize) -> Result<String, Error> {
        let id = self.physical_id(name, line)?;
        let d = self.deployment;
        let arn = |service: &str, what: &str| format!("arn:aws:{service}:{}:{}:{what}", d.region, d.account);
        let kind = self.resource_type(name).unwrap_or_default();
        Ok(match (kind, attribute) {
            ("AWS::Serverless::Function" | "AWS::Lambda::Function", "Arn") => {
                arn("lambda", &format!("function:{id}"))
            }
            ("AWS::Serverless::SimpleTable" | "AWS::DynamoDB::Table", "Arn") => {
                arn("dynamodb", &format!("table/{id}"))
            }
            ("AWS::IAM::Role", "Arn") => format!("arn:aws:iam::{}:role/{id}", d.account),
            ("AWS::SQS::Queue", "Arn") => arn("sqs", &id),
            ("AWS::SQS::Queue", "QueueName") => id,
            ("AWS::SNS::Topic", _) => arn("sns", &id),
            ("AWS::S3::Bucket", "Arn") => format!("arn:aws:s3:::{id}"),
            (_, "Arn") => arn("cloudformation", &format!("resource/{id}")),
            _ => format!("{id}.{attribute}"),
        })
    }

    /// `Mappings.map.first.second`.
    pub fn mapping(&self, map: &str, first: &str, second: &str, line: usize) -> Result<Node, Error> {
        let found = self.root.key("Mappings").and_then(|m| m.key(map)?.key(first)?.key(second));
        found.cloned().ok_or_else(|| Error::at(line, format!("Mappings has no {map}.{first}.{second}")))
    }

    /// Whether a named condition holds.
    pub fn condition(&self, name: &str, line: usize) -> Result<bool, Error> {
        let node = self
            .root
            .key("Conditions")
            .and_then(|conditions| conditions.key(name))
            .ok_or_else(|| Error::at(line, format!("there is no condition {name:?}")))?;
        self.deeper(line, name)?.holds(node)
    }

    /// Whether a condition expression holds.
    pub fn holds(&self, node: &Node) -> Result<bool, Error> {
        let not =
            || Error::at(node.line, "a condition is one of Fn::Equals, Fn::And, Fn::Or, Fn::Not, Condition");
        let Some([(name, argument)]) = node.as_map() else { return Err(not()) };
        if name == "Condition" {
            return self.condition(argument.as_text().ok_or_else(not)?, argument.line);
        }
        let parts = argument.as_list().ok_or_else(not)?;
        match (name.as_str(), parts) {
            ("Fn::Equals", [a, b]) => {
                let (a, b) = (intrinsic::resolve(self, a)?, intrinsic::resolve(self, b)?);
                Ok(a.map(|a| a.value) == b.map(|b| b.value))
            }
            ("Fn::Not", [one]) => Ok(!self.holds(one)?),
            ("Fn::And", all) => all.iter().try_fold(true, |so_far, part| Ok(so_far & self.holds(part)?)),
            ("Fn::Or", any) => any.iter().try_fold(false, |so_far, part| Ok(so_far | self.holds(part)?)),
            _ => Err(not()),
        }
    }
}

/// The entries of a section; none if it is absent.
pub(crate) fn entries<'t>(root: &'t Node, section: &str) -> impl Iterator<Item = (&'t str, &'t Node)> {
    let map = root.key(section).and_then(Node::as_map).unwrap_or_default();
    map.iter().map(|(name, node)| (name.as_str(), node))
}

/// A parameter's value: a list where its type says so.
fn parameter(declared: &Node, text: &str) -> Node {
    let kind = declared.key("Type").and_then(Node::as_text).unwrap_or("String");
    let line = declared.line;
    if kind == "CommaDelimitedList" || kind.starts_with("List<") {
        let items = text.split(',').map(|item| Node::text(line, item.trim())).collect();
        return Node { line, value: Value::List(items) };
    }
    Node::text(line, text)
}

fn allowed(name: &str, declared: &Node, value: &Node) -> Result<(), Error> {
    let (Some(allowed), Some(text)) =
        (declared.key("AllowedValues").and_then(Node::as_list), value.as_text())
    else {
        return Ok(());
    };
    let values: Vec<&str> = allowed.iter().filter_map(Node::as_text).collect();
    if values.contains(&text) {
        return Ok(());
    }
    let what = format!("{text:?} is not one of {}", values.join(", "));
    Err(Error::at(declared.line, what).path(&format!("Parameters.{name}")))
}
