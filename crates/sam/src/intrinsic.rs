//! CloudFormation's intrinsic functions, resolved to plain values.

use crate::Error;
use crate::scope::Scope;
use crate::yaml::{MAX_BYTES, Node, Value};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The node with all functions replaced by what they give; `None` where it is `AWS::NoValue`, which removes a key or an item.
pub(crate) fn resolve(scope: &Scope<'_>, node: &Node) -> Result<Option<Node>, Error> {
    let value = match &node.value {
        Value::Null | Value::Text(_) => return Ok(Some(node.clone())),
        Value::List(items) => {
            let resolved = items.iter().map(|item| resolve(scope, item).transpose());
            Value::List(resolved.flatten().collect::<Result<_, _>>()?)
        }
        Value::Map(entries) => {
            if let [(name, argument)] = entries.as_slice()
                && (name == "Ref" || name.starts_with("Fn::"))
            {
                return call(scope, name, argument);
            }
            let resolved = entries.iter().map(|(key, value)| {
                let value = resolve(scope, value).map_err(|e| e.path(key)).transpose()?;
                Some(value.map(|value| (key.clone(), value)))
            });
            Value::Map(resolved.flatten().collect::<Result<_, _>>()?)
        }
    };
    Ok(Some(Node { line: node.line, value }))
}

fn call(scope: &Scope<'_>, name: &str, argument: &Node) -> Result<Option<Node>, Error> {
    let line = argument.line;
    scope.step(line)?;
    let text = match name {
        "Ref" => return scope.reference(plain(argument, name)?, line),
        "Fn::If" => return branch(scope, argument),
        "Fn::FindInMap" => {
            let [map, first, second] = texts(scope, argument, name)?;
            return scope.mapping(&map, &first, &second, line).map(Some);
        }
        "Fn::Select" => return select(scope, argument),
        "Fn::Split" => {
            let [separator, text] = texts(scope, argument, name)?;
            if separator.is_empty() {
                return Err(Error::at(line, "Fn::Split: the separator is empty"));
            }
            let items = text.split(&separator).map(|part| Node::text(line, part)).collect();
            return Ok(Some(Node { line, value: Value::List(items) }));
        }
        "Fn::GetAtt" => {
            let (resource, attribute) = attribute_of(argument)?;
            scope.attribute(&resource, &attribute, line)?
        }
        "Fn::Sub" => substitute(scope, argument)?,
        "Fn::Join" => join(scope, argument)?,
        "Fn::Base64" => {
            let inner = needed(resolve(scope, argument)?, line, name)?;
            STANDARD.encode(plain(&inner, name)?)
        }
        "Fn::GetAZs" => return Ok(Some(zones(scope, line))),
        other => {
            let error = Error::at(line, format!("{other} is not offered"));
            return Err(error.hint(
                "offered: Ref, Fn::Sub, Fn::GetAtt, Fn::Join, Fn::FindInMap, Fn::If, Fn::Select, Fn::Split, Fn::Base64, Fn::GetAZs",
            ));
        }
    };
    if text.len() > MAX_BYTES {
        return Err(Error::at(line, format!("{name} gives a text of more than {MAX_BYTES} bytes")));
    }
    Ok(Some(Node::text(line, text)))
}

/// `[condition, then, else]`
fn branch(scope: &Scope<'_>, argument: &Node) -> Result<Option<Node>, Error> {
    match argument.as_list() {
        Some([condition, yes, no]) => {
            let holds = scope.condition(plain(condition, "Fn::If")?, condition.line)?;
            resolve(scope, if holds { yes } else { no })
        }
        _ => Err(Error::at(argument.line, "Fn::If takes [condition, value if true, value if false]")),
    }
}

/// `[index, list]`
fn select(scope: &Scope<'_>, argument: &Node) -> Result<Option<Node>, Error> {
    let wrong = |what: String| Error::at(argument.line, format!("Fn::Select: {what}"));
    let Some([index, list]) = argument.as_list() else { return Err(wrong("takes [index, list]".to_owned())) };
    let index = needed(resolve(scope, index)?, argument.line, "Fn::Select")?;
    let index: usize =
        plain(&index, "Fn::Select")?.parse().map_err(|_| wrong("the index is not a number".to_owned()))?;
    let list = needed(resolve(scope, list)?, argument.line, "Fn::Select")?;
    let items = list.as_list().ok_or_else(|| wrong(format!("{} is not a list", list.kind())))?;
    let item =
        items.get(index).ok_or_else(|| wrong(format!("no item {index} in a list of {}", items.len())))?;
    Ok(Some(item.clone()))
}

/// `Resource.Attribute`, or `[Resource, Attribute]`
fn attribute_of(argument: &Node) -> Result<(String, String), Error> {
    let wrong = || Error::at(argument.line, "Fn::GetAtt takes Resource.Attribute or [Resource, Attribute]");
    match &argument.value {
        Value::Text(text) => {
            let (resource, attribute) = text.split_once('.').ok_or_else(wrong)?;
            Ok((resource.to_owned(), attribute.to_owned()))
        }
        Value::List(items) => match items.as_slice() {
            [resource, attribute] => {
                let text = |node: &Node| node.as_text().map(str::to_owned).ok_or_else(wrong);
                Ok((text(resource)?, text(attribute)?))
            }
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

/// `text with ${Name}`, `${Resource.Attribute}`, `${!Literal}`; or `[text, {Name: value}]`
fn substitute(scope: &Scope<'_>, argument: &Node) -> Result<String, Error> {
    let (template, own) = match &argument.value {
        Value::Text(text) => (text.as_str(), None),
        Value::List(items) => match items.as_slice() {
            [text, own] if own.as_map().is_some() => (plain(text, "Fn::Sub")?, Some(own)),
            _ => return Err(Error::at(argument.line, "Fn::Sub takes text or [text, map of names]")),
        },
        _ => return Err(Error::at(argument.line, "Fn::Sub takes text or [text, map of names]")),
    };
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        let after = &rest[at + 2..];
        let end = after.find('}').ok_or_else(|| Error::at(argument.line, "Fn::Sub: a ${ without its }"))?;
        let name = after[..end].trim();
        match name.strip_prefix('!') {
            Some(literal) => out.push_str(&format!("${{{literal}}}")),
            None => out.push_str(&named(scope, own, name, argument.line)?),
        }
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

fn named(scope: &Scope<'_>, own: Option<&Node>, name: &str, line: usize) -> Result<String, Error> {
    let value = match own.and_then(|own| own.key(name)) {
        Some(node) => resolve(scope, node)?,
        None => match name.split_once('.') {
            Some((resource, attribute)) => return scope.attribute(resource, attribute, line),
            None => scope.reference(name, line)?,
        },
    };
    let value = needed(value, line, "Fn::Sub")?;
    plain(&value, "Fn::Sub").map(str::to_owned)
}

/// `[separator, list]`
fn join(scope: &Scope<'_>, argument: &Node) -> Result<String, Error> {
    let wrong = || Error::at(argument.line, "Fn::Join takes [separator, list of texts]");
    let Some([separator, list]) = argument.as_list() else { return Err(wrong()) };
    let list = needed(resolve(scope, list)?, argument.line, "Fn::Join")?;
    let parts = list.as_list().ok_or_else(wrong)?;
    let parts: Option<Vec<&str>> = parts.iter().map(Node::as_text).collect();
    Ok(parts.ok_or_else(wrong)?.join(plain(separator, "Fn::Join")?))
}

fn zones(scope: &Scope<'_>, line: usize) -> Node {
    let region = &scope.deployment.region;
    let items = ["a", "b", "c"].map(|zone| Node::text(line, format!("{region}{zone}")));
    Node { line, value: Value::List(items.to_vec()) }
}

/// A list of exactly N texts, each resolved.
fn texts<const N: usize>(scope: &Scope<'_>, argument: &Node, name: &str) -> Result<[String; N], Error> {
    let wrong = || Error::at(argument.line, format!("{name} takes a list of {N} texts"));
    let items = argument.as_list().ok_or_else(wrong)?;
    let mut texts = Vec::with_capacity(N);
    for item in items {
        let item = needed(resolve(scope, item)?, argument.line, name)?;
        texts.push(plain(&item, name)?.to_owned());
    }
    texts.try_into().map_err(|_| wrong())
}

fn plain<'n>(node: &'n Node, function: &str) -> Result<&'n str, Error> {
    node.as_text()
        .ok_or_else(|| Error::at(node.line, format!("{function}: {} where text is needed", node.kind())))
}

fn needed(node: Option<Node>, line: usize, function: &str) -> Result<Node, Error> {
    node.ok_or_else(|| Error::at(line, format!("{function}: AWS::NoValue where a value is needed")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Deployment, yaml};

    const TEMPLATE: &str = "
Parameters:
  Stage: { Type: String, Default: dev }
  Zones: { Type: CommaDelimitedList, Default: 'a, b' }
Mappings:
  Sizes: { dev: { memory: 128 }, prod: { memory: 1769 } }
Conditions:
  IsDev: !Equals [!Ref Stage, dev]
  IsProd: !Not [!Condition IsDev]
  Loop: { Condition: Loop }
Resources:
  Table: { Type: AWS::Serverless::SimpleTable }
  Fn: { Type: AWS::Serverless::Function, Properties: { FunctionName: !Sub 'api-${Stage}' } }
  Circle: { Type: AWS::Lambda::Function, Properties: { FunctionName: !Sub '${Circle}x' } }
";

    fn check(expression: &str, expect: &str) {
        let root = yaml::parse(&format!("{TEMPLATE}X: {expression}\n")).expect("YAML");
        let deployment = Deployment::default();
        let scope = Scope::new(&root, &deployment).expect("parameters");
        let shown = match resolve(&scope, root.key("X").expect("there")) {
            Ok(node) => show(node.as_ref()),
            Err(error) => error.what,
        };
        assert!(shown.contains(expect) && (!expect.is_empty() || shown.is_empty()), "{expression}: {shown}");
    }

    fn show(node: Option<&Node>) -> String {
        match node.map(|node| &node.value) {
            None => "no value".to_owned(),
            Some(Value::Null) => "null".to_owned(),
            Some(Value::Text(text)) => text.clone(),
            Some(Value::List(items)) => items.iter().map(|i| show(Some(i))).collect::<Vec<_>>().join("|"),
            Some(Value::Map(map)) => {
                map.iter().map(|(k, v)| format!("{k}={}", show(Some(v)))).collect::<Vec<_>>().join(";")
            }
        }
    }

    #[test]
    fn functions_give_what_cloudformation_gives() {
        for (expression, expect) in [
            ("!Ref Stage", "dev"),
            ("!Ref AWS::Region", "us-east-1"),
            ("!Ref Table", "danki-Table"),
            ("!Ref Fn", "api-dev"),
            ("!GetAtt Fn.Arn", "arn:aws:lambda:us-east-1:000000000000:function:api-dev"),
            ("!GetAtt [Table, Arn]", "arn:aws:dynamodb:us-east-1:000000000000:table/danki-Table"),
            ("!Sub '${Fn.Arn}/${!x}/${AWS::StackName}'", "function:api-dev/${x}/danki"),
            ("!Sub ['${a}-${Stage}', { a: !Ref Table }]", "danki-Table-dev"),
            ("!Join ['-', [a, !Ref Stage, c]]", "a-dev-c"),
            ("!FindInMap [Sizes, !Ref Stage, memory]", "128"),
            ("!If [IsDev, 1, 2]", "1"),
            ("!If [IsProd, 1, !Ref AWS::NoValue]", "no value"),
            ("{ a: !Ref AWS::NoValue, b: 2 }", "b=2"),
            ("!Select [1, !Split [',', 'x,y']]", "y"),
            ("!Select [1, !Ref Zones]", "b"),
            ("!Base64 'light work.'", "bGlnaHQgd29yay4="),
        ] {
            check(expression, expect);
        }
    }

    #[test]
    fn what_cannot_be_resolved_says_so() {
        for (expression, expect) in [
            ("!Ref Nobody", "neither a parameter nor a resource"),
            ("!If [Loop, 1, 2]", "refers to itself"),
            ("!If [Nope, 1, 2]", "no condition \"Nope\""),
            ("!FindInMap [Sizes, nope, memory]", "Mappings has no Sizes.nope.memory"),
            ("!Sub '${Stage'", "without its }"),
            ("!ImportValue x", "Fn::ImportValue is not offered"),
            ("!Select [7, [a]]", "no item 7 in a list of 1"),
            ("!Join [a]", "Fn::Join takes"),
            ("!Ref Circle", "refers to itself"),
        ] {
            check(expression, expect);
        }
    }
}
