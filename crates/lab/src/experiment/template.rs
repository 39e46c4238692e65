//! What a SAM template says about the region: its tables, secrets and parameters exist before a function runs.

use super::Region;
use danki_region::{DynamoDb, KeyType, Parameter, ParameterType, Secret, SecretsManager, Ssm, Table};
use danki_sam::Template;

impl Region {
    /// Adds what the template describes; what is there already under the same name stays.
    pub fn seed(&mut self, template: &Template) {
        let dynamodb = self.dynamodb.get_or_insert_with(DynamoDb::default);
        for table in &template.tables {
            add(&mut dynamodb.tables, self::table(table), |known| known.name == table.name);
        }
        let secrets = self.secretsmanager.get_or_insert_with(SecretsManager::default);
        for secret in &template.secrets {
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
        let ssm = self.ssm.get_or_insert_with(Ssm::default);
        for parameter in &template.parameters {
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
    let key = |attribute: &danki_sam::Attribute| {
        let kind = match attribute.kind {
            'N' => KeyType::N,
            'B' => KeyType::B,
            _ => KeyType::S,
        };
        (attribute.name.clone(), kind)
    };
    Table {
        name: table.name.clone(),
        hash_key: key(&table.hash),
        range_key: table.range.as_ref().map(key),
        items: Vec::new(),
    }
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
    use danki_sam::{Deployment, read};

    #[test]
    fn a_template_seeds_the_region_once() {
        let text = "
Resources:
  T: { Type: AWS::Serverless::SimpleTable, Properties: { TableName: t, PrimaryKey: { Name: id, Type: Number } } }
  S: { Type: AWS::SecretsManager::Secret, Properties: { Name: s, SecretString: x } }
  P: { Type: AWS::SSM::Parameter, Properties: { Name: /p, Type: StringList, Value: 'a,b' } }
";
        let template = read(text, &Deployment::default()).expect("a template");
        let mut region = Experiment::account(None, 1.0, 1).region;
        region.seed(&template);
        region.seed(&template);
        let tables = &region.dynamodb.as_ref().expect("there").tables;
        assert_eq!((tables.len(), tables[0].hash_key.0.as_str()), (1, "id"));
        assert_eq!(region.secretsmanager.as_ref().map(|s| s.secrets.len()), Some(1));
        assert_eq!(region.ssm.as_ref().map(|s| s.parameters.len()), Some(1));
    }
}
