//! Layers, tables, secrets and parameters.

use crate::Error;
use crate::read::Properties;
use crate::yaml::Node;

/// A layer version that the template publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Logical id.
    pub id: String,
    /// `LayerName`
    pub name: String,
    /// Directory or zip, relative to the template.
    pub content: String,
}

/// A DynamoDB table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Logical id.
    pub id: String,
    /// `TableName`
    pub name: String,
    /// Partition key.
    pub hash: Attribute,
    /// Sort key.
    pub range: Option<Attribute>,
    /// Secondary indexes.
    pub indexes: Vec<Index>,
}

/// A secondary index of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// `IndexName`
    pub name: String,
    /// One of `LocalSecondaryIndexes`: the table's partition key, another sort key.
    pub local: bool,
    /// Partition key.
    pub hash: Attribute,
    /// Sort key.
    pub range: Option<Attribute>,
    /// What it has beside the keys.
    pub projection: Projection,
}

/// `Projection` of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projection {
    /// `ALL`
    All,
    /// `KEYS_ONLY`
    KeysOnly,
    /// `INCLUDE`, and these attributes.
    Include(Vec<String>),
}

/// A key attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Name.
    pub name: String,
    /// `S`, `N` or `B`.
    pub kind: char,
}

/// A secret with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// `Name`
    pub name: String,
    /// `SecretString`, or what `GenerateSecretString` starts from.
    pub text: String,
}

/// An SSM parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// `Name`
    pub name: String,
    /// `String`, `StringList` or `SecureString`.
    pub kind: String,
    /// `Value`
    pub value: String,
}

pub(crate) fn layer(id: &str, name: String, properties: Properties<'_>) -> Result<Layer, Error> {
    let content = match properties.key("ContentUri").or_else(|| properties.key("Content")) {
        Some(node) => node.as_text().map(str::to_owned).ok_or_else(|| {
            Error::at(node.line, "the layer's content is not a local path")
                .hint("deploy from the local directory or zip, before `sam package`")
        })?,
        None => return Err(Error::at(properties.node.line, "ContentUri is missing")),
    };
    Ok(Layer { id: id.to_owned(), name, content })
}

pub(crate) fn simple_table(id: &str, name: String, properties: Properties<'_>) -> Result<Table, Error> {
    let hash = match properties.under("PrimaryKey")? {
        None => Attribute { name: "id".to_owned(), kind: 'S' },
        Some(key) => {
            let kind = match key.text("Type")?.as_deref() {
                None | Some("String") => 'S',
                Some("Number") => 'N',
                Some("Binary") => 'B',
                Some(other) => {
                    let what = format!("PrimaryKey.Type is {other:?}; allowed: String, Number, Binary");
                    return Err(Error::at(key.node.line, what));
                }
            };
            Attribute { name: key.text("Name")?.unwrap_or_else(|| "id".to_owned()), kind }
        }
    };
    Ok(Table { id: id.to_owned(), name, hash, range: None, indexes: Vec::new() })
}

pub(crate) fn table(id: &str, name: String, properties: Properties<'_>) -> Result<Table, Error> {
    let (hash, range) = keys(properties, properties)?;
    let mut indexes = Vec::new();
    for (section, local) in [("GlobalSecondaryIndexes", false), ("LocalSecondaryIndexes", true)] {
        for node in properties.list(section)? {
            let index = index(properties, Properties { node }, local);
            indexes.push(index.map_err(|e| e.path(section))?);
        }
    }
    Ok(Table { id: id.to_owned(), name, hash, range, indexes })
}

fn index(table: Properties<'_>, properties: Properties<'_>, local: bool) -> Result<Index, Error> {
    let (hash, range) = keys(table, properties)?;
    let name = properties.needed("IndexName")?;
    let projection = match properties.under("Projection")? {
        None => Projection::All,
        Some(projection) => match projection.text("ProjectionType")?.as_deref() {
            None | Some("ALL") => Projection::All,
            Some("KEYS_ONLY") => Projection::KeysOnly,
            Some("INCLUDE") => {
                let text = |node: &Node| {
                    node.as_text()
                        .map(str::to_owned)
                        .ok_or_else(|| Error::at(node.line, "an attribute's name is text"))
                };
                let names = projection.list("NonKeyAttributes")?.iter().map(text);
                Projection::Include(names.collect::<Result<_, _>>()?)
            }
            Some(other) => {
                let what = format!("ProjectionType is {other:?}; allowed: ALL, KEYS_ONLY, INCLUDE");
                return Err(Error::at(projection.node.line, what));
            }
        },
    };
    Ok(Index { name, local, hash, range, projection })
}

/// The keys of a table or of one of its indexes; the table alone says their types.
fn keys(table: Properties<'_>, of: Properties<'_>) -> Result<(Attribute, Option<Attribute>), Error> {
    let role = |wanted: &str| -> Result<Option<String>, Error> {
        for node in of.list("KeySchema")? {
            let key = Properties { node };
            if key.needed("KeyType")? == wanted {
                return key.needed("AttributeName").map(Some);
            }
        }
        Ok(None)
    };
    let hash = role("HASH")?.ok_or_else(|| Error::at(of.node.line, "KeySchema has no HASH key"))?;
    let range = role("RANGE")?.map(|name| attribute(table, name)).transpose()?;
    Ok((attribute(table, hash)?, range))
}

fn attribute(properties: Properties<'_>, name: String) -> Result<Attribute, Error> {
    for node in properties.list("AttributeDefinitions")? {
        let definition = Properties { node };
        if definition.needed("AttributeName")? == name {
            let kind = definition.needed("AttributeType")?;
            let kind = kind.chars().next().filter(|c| kind.len() == 1 && "SNB".contains(*c));
            let kind = kind.ok_or_else(|| Error::at(node.line, "AttributeType is not one of S, N, B"))?;
            return Ok(Attribute { name, kind });
        }
    }
    Err(Error::at(properties.node.line, format!("key {name:?} is not among AttributeDefinitions")))
}

pub(crate) fn secret(name: String, properties: Properties<'_>) -> Result<Secret, Error> {
    let generated = properties.under("GenerateSecretString")?;
    let text = match (properties.text("SecretString")?, generated) {
        (Some(text), _) => text,
        (None, Some(generated)) => generated.text("SecretStringTemplate")?.unwrap_or_default(),
        (None, None) => String::new(),
    };
    Ok(Secret { name, text })
}

pub(crate) fn parameter(name: String, properties: Properties<'_>) -> Result<Parameter, Error> {
    let kind = properties.text("Type")?.unwrap_or_else(|| "String".to_owned());
    Ok(Parameter { name, kind, value: properties.needed("Value")? })
}
