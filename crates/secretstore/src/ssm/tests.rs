use super::*;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

struct Lab(Ssm, SecretsManager, SmallRng);

const NOW_MS: u64 = 1_700_000_000_123;

fn lab() -> Lab {
    let mut rng = SmallRng::seed_from_u64(1);
    let (mut ssm, mut secrets) = (Ssm::new("eu-west-1"), SecretsManager::new("eu-west-1"));
    let at = &mut At { now_ms: NOW_MS, rng: &mut rng };
    ssm.put("/app/db/password", "p4ss", "SecureString", at).expect("seeded");
    ssm.put("/app/name", "danki", "String", at).expect("seeded");
    ssm.put("plain", "a,b", "StringList", at).expect("seeded");
    secrets.put("app/secret", "s3cret", false, at).expect("seeded");
    Lab(ssm, secrets, rng)
}

impl Lab {
    fn call(&mut self, operation: &str, request: &Value) -> (u16, Value) {
        let mut at = At { now_ms: NOW_MS, rng: &mut self.2 };
        let reply = self.0.execute(operation, request.to_string().as_bytes(), &mut at, Some(&mut self.1));
        (reply.status, reply.body)
    }

    fn fine(&mut self, operation: &str, request: &Value) -> Value {
        let (status, body) = self.call(operation, request);
        assert_eq!(status, 200, "{operation} {request}: {body}");
        body
    }
}

#[test]
fn a_parameter_is_shown_as_on_aws() {
    let mut lab = lab();
    let expect = json!({ "Parameter": {
        "ARN": "arn:aws:ssm:eu-west-1:123456789012:parameter/app/name",
        "DataType": "text",
        "LastModifiedDate": 1_700_000_000.123,
        "Name": "/app/name",
        "Type": "String",
        "Value": "danki",
        "Version": 1,
    }});
    assert_eq!(lab.fine("GetParameter", &json!({ "Name": "/app/name" })), expect);
    let arn = "arn:aws:ssm:eu-west-1:123456789012:parameter/app/name";
    assert_eq!(lab.fine("GetParameter", &json!({ "Name": arn })), expect);
    let plain =
        lab.fine("GetParameter", &json!({ "Name": "arn:aws:ssm:eu-west-1:123456789012:parameter/plain" }));
    assert_eq!(plain["Parameter"]["Type"], "StringList");
}

#[test]
fn secure_strings_are_decrypted_on_demand() {
    let mut lab = lab();
    let closed = lab.fine("GetParameter", &json!({ "Name": "/app/db/password" }));
    let value = closed["Parameter"]["Value"].as_str().expect("text");
    assert!(value.starts_with("AQICAHh") && !value.contains("p4ss"), "{value}");
    let open = lab.fine("GetParameter", &json!({ "Name": "/app/db/password", "WithDecryption": true }));
    assert_eq!(open["Parameter"]["Value"], "p4ss");
}

#[test]
fn a_missing_parameter_has_no_message() {
    assert_eq!(
        lab().call("GetParameter", &json!({ "Name": "/none" })),
        (400, json!({ "__type": "ParameterNotFound" }))
    );
    let several = lab().fine("GetParameters", &json!({ "Names": ["/app/name", "/none"] }));
    assert_eq!(several["InvalidParameters"], json!(["/none"]));
    assert_eq!(several["Parameters"][0]["Value"], "danki");
}

#[test]
fn versions_and_labels_select() {
    let mut lab = lab();
    let put = json!({ "Name": "/app/name", "Value": "two" });
    assert_eq!(lab.call("PutParameter", &put).1["__type"], "ParameterAlreadyExists");
    let put = lab.fine("PutParameter", &json!({ "Name": "/app/name", "Value": "two", "Overwrite": true }));
    assert_eq!(put, json!({ "Tier": "Standard", "Version": 2 }));
    let label = json!({ "Name": "/app/name", "ParameterVersion": 1, "Labels": ["Dev", "1bad"] });
    assert_eq!(lab.fine("LabelParameterVersion", &label)["InvalidLabels"], json!(["1bad"]));
    let mut get = |name: &str| lab.call("GetParameter", &json!({ "Name": name })).1;
    assert_eq!(get("/app/name")["Parameter"]["Value"], "two");
    assert_eq!(get("/app/name:1")["Parameter"]["Selector"], ":1");
    assert_eq!(get("/app/name:Dev")["Parameter"]["Value"], "danki");
    let missing = get("/app/name:9");
    assert_eq!(missing["__type"], "ParameterVersionNotFound");
    let text = "Systems Manager could not find version 9 of /app/name. Verify the version and try again.";
    assert_eq!(missing["message"], text);
    let history = lab.fine("GetParameterHistory", &json!({ "Name": "/app/name" }));
    assert_eq!(history["Parameters"][0]["Labels"], json!(["Dev"]));
}

#[test]
fn paths_filters_and_tags() {
    let mut lab = lab();
    let mut by_path = |recursive| {
        let found = lab.fine("GetParametersByPath", &json!({ "Path": "/app", "Recursive": recursive }));
        found["Parameters"].as_array().map(Vec::len)
    };
    assert_eq!((by_path(false), by_path(true)), (Some(1), Some(2)));
    let tag = json!({ "ResourceType": "Parameter", "ResourceId": "/app/name", "Tags": [{ "Key": "a", "Value": "b" }] });
    lab.fine("AddTagsToResource", &tag);
    let filter = json!({ "ParameterFilters": [{ "Key": "tag:a", "Values": ["b"] }] });
    assert_eq!(lab.fine("DescribeParameters", &filter)["Parameters"][0]["Name"], "/app/name");
    lab.fine("DeleteParameter", &json!({ "Name": "/app/name" }));
    assert_eq!(lab.fine("DescribeParameters", &filter)["Parameters"], json!([]));
}

/// The shape that the extension was captured to pass on (`fedonev/lambda-params-secrets`, test-responses.json).
#[test]
fn a_secret_by_a_parameter_s_name() {
    let name = "/aws/reference/secretsmanager/app/secret";
    let found = lab().fine("GetParameter", &json!({ "Name": name, "WithDecryption": true }));
    let parameter = &found["Parameter"];
    assert_eq!((&parameter["Value"], &parameter["Type"]), (&json!("s3cret"), &json!("SecureString")));
    assert_eq!(parameter["Version"], 0);
    assert!(parameter["ARN"].as_str().is_some_and(|arn| arn.contains(":secret:app/secret-")));
    assert!(parameter["SourceResult"].as_str().is_some_and(|text| text.contains("AWSCURRENT")));
    assert_eq!(lab().call("GetParameter", &json!({ "Name": name })).1["__type"], "ValidationException");
}

proptest! {
    #[test]
    fn any_body_gets_an_answer(operation in 0usize..13, body in proptest::collection::vec(any::<u8>(), 0..60)) {
        let mut lab = lab();
        let mut at = At { now_ms: NOW_MS, rng: &mut lab.2 };
        let reply = lab.0.execute(Ssm::OPERATIONS[operation], &body, &mut at, None);
        prop_assert!(reply.status == 200 || reply.body["__type"].is_string());
    }

    #[test]
    fn any_name_gets_an_answer(name in "[a-z/:0-9.]{0,20}") {
        let mut lab = lab();
        lab.call("GetParameter", &json!({ "Name": name }));
        lab.call("PutParameter", &json!({ "Name": name, "Value": "v", "Type": "String" }));
        lab.call("GetParametersByPath", &json!({ "Path": name }));
    }
}
