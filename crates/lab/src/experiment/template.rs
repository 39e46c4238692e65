//! What a SAM template says about the region: its tables, secrets and parameters exist before a function runs.

use super::Region;
use danki_region::{DynamoDb, Index, KeyType, Parameter, ParameterType, Secret, SecretsManager, Ssm, Table};
use danki_sam::{Attribute, Projection, Template};

impl Region {
    /// Adds what the template describes, and the service that it needs; what is there already under the same name stays.
    pub fn seed(&mut self, template: &Template) {
        for table in &template.tables {
            let dynamodb = self.dynamodb.get_or_insert_with(DynamoDb::default);
            add(&mut dynamodb.tables, self::table(table), |known| known.name == table.name);
        }
        for secret in &template.secrets {
            let secrets = self.secretsmanager.get_or_insert_with(SecretsManager::default);
            let value = Some(serde_json::Value::String(secret.text.clone()));
            let made = Secret {
                name: secret.name.clone(),
                binary: None,
                rotate_after_s: None,
                rotate_to: None,
                value,
            };
            add(&mut secrets.secrets, made, |known| known.name == secret.name);
        }
        for parameter in &template.parameters {
            let ssm = self.ssm.get_or_insert_with(Ssm::default);
            add(&mut ssm.parameters, self::parameter(parameter), |known| known.name == parameter.name);
        }
    }
}

fn add<T>(all: &mut Vec<T>, one: T, is_same: impl Fn(&T) -> bool) {
    if !all.iter().any(is_same) {
        all.push(one);
    }
}

fn table(table: &danki_sam::Table) -> Table {
    let index = |index: &danki_sam::Index| Index {
        name: index.name.clone(),
        local: index.local,
        hash_key: key(&index.hash),
        range_key: index.range.as_ref().map(key),
        include: match &index.projection {
            Projection::All => None,
            Projection::KeysOnly => Some(Vec::new()),
            Projection::Include(names) => Some(names.clone()),
        },
    };
    Table {
        name: table.name.clone(),
        hash_key: key(&table.hash),
        range_key: table.range.as_ref().map(key),
        indexes: table.indexes.iter().map(index).collect(),
        items: Vec::new(),
    }
}

fn key(attribute: &Attribute) -> (String, KeyType) {
    let kind = match attribute.kind {
        'N' => KeyType::N,
        'B' => KeyType::B,
        _ => KeyType::S,
    };
    (attribute.name.clone(), kind)
}

fn parameter(parameter: &danki_sam::Parameter) -> Parameter {
    let kind = match parameter.kind.as_str() {
        "StringList" => ParameterType::StringList,
        "SecureString" => ParameterType::SecureString,
        _ => ParameterType::String,
    };
    Parameter {
        name: parameter.name.clone(),
        value: parameter.value.clone(),
        r#type: kind,
        rotate_after_s: None,
        rotate_to: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Experiment;
    use super::*;
    use danki_sam::{Deployment, read};

    #[test]
    fn a_template_seeds_the_region_once() {
        let text = "
Resources:
  T: { Type: AWS::Serverless::SimpleTable, Properties: { TableName: t, PrimaryKey: { Name: id, Type: Number } } }
  S: { Type: AWS::SecretsManager::Secret, Properties: { Name: s, SecretString: x } }
  P: { Type: AWS::SSM::Parameter, Properties: { Name: /p, Type: StringList, Value: 'a,b' } }
  I:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: i
      AttributeDefinitions:
        - { AttributeName: id, AttributeType: S }
        - { AttributeName: at, AttributeType: N }
      KeySchema: [{ AttributeName: id, KeyType: HASH }]
      GlobalSecondaryIndexes:
        - IndexName: by-at
          KeySchema: [{ AttributeName: at, KeyType: HASH }, { AttributeName: id, KeyType: RANGE }]
          Projection: { ProjectionType: INCLUDE, NonKeyAttributes: [sum] }
";
        let template = read(text, &Deployment::default()).expect("a template");
        let mut region = Experiment::account(None, 1.0, 1).region;
        region.seed(&template);
        region.seed(&template);
        let tables = &region.dynamodb.as_ref().expect("there").tables;
        assert_eq!((tables.len(), tables[0].hash_key.0.as_str()), (2, "id"));
        let index = Index {
            name: "by-at".to_owned(),
            local: false,
            hash_key: ("at".to_owned(), KeyType::N),
            range_key: Some(("id".to_owned(), KeyType::S)),
            include: Some(vec!["sum".to_owned()]),
        };
        assert_eq!(tables[1].indexes, [index]);
        assert_eq!(region.secretsmanager.as_ref().map(|s| s.secrets.len()), Some(1));
        assert_eq!(region.ssm.as_ref().map(|s| s.parameters.len()), Some(1));
    }
}
