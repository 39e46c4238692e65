use super::*;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

const TOKEN: &str = "00000000-0000-4000-8000-000000000001";

struct Lab(SecretsManager, SmallRng, u64);

fn lab() -> Lab {
    let mut lab = Lab(SecretsManager::new("us-east-1"), SmallRng::seed_from_u64(1), 1_700_000_000_123);
    let mut at = At { now_ms: lab.2, rng: &mut lab.1 };
    lab.0.put("app/one", "first", false, &mut at).expect("seeded");
    lab
}

impl Lab {
    fn call(&mut self, operation: &str, request: &Value) -> (u16, Value) {
        let mut at = At { now_ms: self.2, rng: &mut self.1 };
        let reply = self.0.execute(operation, request.to_string().as_bytes(), &mut at);
        (reply.status, reply.body)
    }

    fn fine(&mut self, operation: &str, request: &Value) -> Value {
        let (status, body) = self.call(operation, request);
        assert_eq!(status, 200, "{operation} {request}: {body}");
        body
    }

    fn refused(&mut self, operation: &str, request: &Value, kind: &str, message: &str) {
        let (status, body) = self.call(operation, request);
        let text = body["Message"].as_str().or(body["message"].as_str()).unwrap_or_default();
        assert_eq!((status, body["__type"].as_str()), (400, Some(kind)), "{operation} {request}: {body}");
        assert_eq!(text, message);
    }
}

#[test]
fn a_secret_is_found_by_name_and_by_both_arns() {
    let mut lab = lab();
    let by_name = lab.fine("GetSecretValue", &json!({ "SecretId": "app/one" }));
    assert_eq!(by_name["SecretString"], "first");
    assert_eq!(by_name["CreatedDate"], json!(1_700_000_000.123));
    assert_eq!(by_name["VersionStages"], json!(["AWSCURRENT"]));
    assert!(by_name.get("SecretBinary").is_none());
    let arn = by_name["ARN"].as_str().expect("text").to_owned();
    assert!(arn.starts_with("arn:aws:secretsmanager:us-east-1:123456789012:secret:app/one-"), "{arn}");
    assert_eq!(lab.fine("GetSecretValue", &json!({ "SecretId": arn })), by_name);
    assert_eq!(lab.fine("GetSecretValue", &json!({ "SecretId": arn[..arn.len() - 7] })), by_name);
}

/// Texts as recorded on AWS (localstack's snapshots).
#[test]
fn refusals_in_aws_s_words() {
    let mut lab = lab();
    let none = "Secrets Manager can't find the specified secret.";
    lab.refused("GetSecretValue", &json!({ "SecretId": "none" }), "ResourceNotFoundException", none);
    let stage = "Secrets Manager can't find the specified secret value for staging label: AWSPREVIOUS";
    let previous = json!({ "SecretId": "app/one", "VersionStage": "AWSPREVIOUS" });
    lab.refused("GetSecretValue", &previous, "ResourceNotFoundException", stage);
    let version = "Secrets Manager can't find the specified secret value for VersionId: x";
    lab.refused(
        "GetSecretValue",
        &json!({ "SecretId": "app/one", "VersionId": "x" }),
        "ResourceNotFoundException",
        version,
    );
    let exists = "The operation failed because the secret app/one already exists.";
    let create = json!({ "Name": "app/one", "ClientRequestToken": TOKEN, "SecretString": "x" });
    lab.refused("CreateSecret", &create, "ResourceExistsException", exists);
    let token = "You must provide a ClientRequestToken value. We recommend a UUID-type value.";
    lab.refused("CreateSecret", &json!({ "Name": "two" }), "InvalidRequestException", token);
    lab.refused("RotateSecret", &json!({ "SecretId": "app/one" }), "InvalidParameterException", token);
    let name = "Invalid name. Must be a valid name containing alphanumeric characters, or any of the following: -/_+=.@!";
    lab.refused(
        "CreateSecret",
        &json!({ "Name": "In valid", "ClientRequestToken": TOKEN }),
        "ValidationException",
        name,
    );
    let lambda = "No Lambda rotation function ARN is associated with this secret.";
    let rotate = json!({ "SecretId": "app/one", "ClientRequestToken": TOKEN });
    lab.refused("RotateSecret", &rotate, "InvalidRequestException", lambda);
    assert_eq!(lab.call("MeltSecret", &json!({})), (400, json!({ "__type": "UnknownOperationException" })));
}

#[test]
fn a_new_value_moves_the_labels() {
    let mut lab = lab();
    lab.fine(
        "PutSecretValue",
        &json!({ "SecretId": "app/one", "SecretString": "second", "ClientRequestToken": TOKEN }),
    );
    let get = |stage: &str| json!({ "SecretId": "app/one", "VersionStage": stage });
    assert_eq!(lab.fine("GetSecretValue", &get("AWSCURRENT"))["SecretString"], "second");
    assert_eq!(lab.fine("GetSecretValue", &get("AWSPREVIOUS"))["SecretString"], "first");
    let mismatch = json!({ "SecretId": "app/one", "VersionId": TOKEN, "VersionStage": "AWSPREVIOUS" });
    let text = "You provided a VersionStage that is not associated to the provided VersionId.";
    lab.refused("GetSecretValue", &mismatch, "InvalidRequestException", text);
    let versions = lab.fine("ListSecretVersionIds", &json!({ "SecretId": "app/one" }));
    assert_eq!(versions["Versions"].as_array().map(Vec::len), Some(2));
    assert_eq!(versions["Versions"][1]["KmsKeyIds"], json!(["DefaultEncryptionKey"]));
    // A pending version that is then made current, as rotation functions do.
    let pending = json!({ "SecretId": "app/one", "SecretString": "third", "VersionStages": ["AWSPENDING"],
        "ClientRequestToken": "00000000-0000-4000-8000-000000000002" });
    lab.fine("PutSecretValue", &pending);
    assert_eq!(lab.fine("GetSecretValue", &get("AWSCURRENT"))["SecretString"], "second");
    let make_current = json!({ "SecretId": "app/one", "VersionStage": "AWSCURRENT", "RemoveFromVersionId": TOKEN,
        "MoveToVersionId": "00000000-0000-4000-8000-000000000002" });
    lab.fine("UpdateSecretVersionStage", &make_current);
    assert_eq!(lab.fine("GetSecretValue", &get("AWSCURRENT"))["SecretString"], "third");
    assert_eq!(lab.fine("GetSecretValue", &get("AWSPREVIOUS"))["SecretString"], "second");
}

#[test]
fn deleted_secrets_wait_and_are_then_gone() {
    let mut lab = lab();
    let one = json!({ "SecretId": "app/one" });
    lab.fine("DeleteSecret", &json!({ "SecretId": "app/one", "RecoveryWindowInDays": 7 }));
    let marked = "You can't perform this operation on the secret because it was marked for deletion.";
    lab.refused("GetSecretValue", &one, "InvalidRequestException", marked);
    let scheduled =
        "You can't create this secret because a secret with this name is already scheduled for deletion.";
    let create = json!({ "Name": "app/one", "ClientRequestToken": TOKEN });
    lab.refused("CreateSecret", &create, "InvalidRequestException", scheduled);
    assert!(lab.fine("DescribeSecret", &one)["DeletedDate"].is_number());
    assert_eq!(lab.fine("ListSecrets", &json!({}))["SecretList"], json!([]));
    lab.fine("RestoreSecret", &one);
    assert_eq!(lab.fine("GetSecretValue", &one)["SecretString"], "first");
    lab.fine("DeleteSecret", &json!({ "SecretId": "app/one" }));
    lab.2 += 31 * 86_400_000;
    assert_eq!(lab.call("DescribeSecret", &one).0, 400);
    lab.fine("CreateSecret", &create);
}

#[test]
fn batches_filters_and_pages() {
    let mut lab = lab();
    for n in 0..25 {
        let mut at = At { now_ms: lab.2, rng: &mut lab.1 };
        lab.0.put(&format!("many/{n:02}"), "AAEC", true, &mut at).expect("seeded");
    }
    let batch = lab.fine("BatchGetSecretValue", &json!({ "SecretIdList": ["app/one", "none", "many/03"] }));
    assert_eq!(batch["SecretValues"][1]["SecretBinary"], "AAEC");
    assert_eq!(batch["Errors"][0]["ErrorCode"], "ResourceNotFoundException");
    let filter = json!([{ "Key": "name", "Values": ["many/1"] }]);
    let listed = lab.fine("ListSecrets", &json!({ "Filters": filter, "MaxResults": 6 }));
    assert_eq!(
        (listed["SecretList"].as_array().map(Vec::len), listed["NextToken"].as_str()),
        (Some(6), Some("6"))
    );
    let rest = lab.fine("ListSecrets", &json!({ "Filters": filter, "MaxResults": 6, "NextToken": "6" }));
    assert_eq!((rest["SecretList"].as_array().map(Vec::len), rest.get("NextToken")), (Some(4), None));
    let bad = json!({ "NextToken": "far" });
    lab.refused("ListSecrets", &bad, "InvalidNextTokenException", "Invalid pagination token");
}

#[test]
fn passwords_have_what_is_asked_for() {
    let mut lab = lab();
    let request = json!({ "PasswordLength": 8, "ExcludePunctuation": true, "ExcludeUppercase": true });
    let password =
        lab.fine("GetRandomPassword", &request)["RandomPassword"].as_str().expect("text").to_owned();
    assert_eq!(password.len(), 8);
    assert!(password.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "{password}");
    assert!(password.chars().any(|c| c.is_ascii_digit()) && password.chars().any(|c| c.is_ascii_lowercase()));
}

proptest! {
    #[test]
    fn any_body_gets_an_answer(operation in 0usize..15, body in proptest::collection::vec(any::<u8>(), 0..60)) {
        let mut lab = lab();
        let mut at = At { now_ms: lab.2, rng: &mut lab.1 };
        let reply = lab.0.execute(SecretsManager::OPERATIONS[operation], &body, &mut at);
        prop_assert!(reply.status == 200 || reply.body["__type"].is_string());
    }

    /// Whatever is put, current is the last and previous the one before.
    #[test]
    fn current_is_the_last_value(values in proptest::collection::vec("[a-z]{1,4}", 2..120)) {
        let mut lab = lab();
        for value in &values {
            let mut at = At { now_ms: lab.2, rng: &mut lab.1 };
            lab.0.put("x", value, false, &mut at).expect("put");
        }
        let get = |stage: &str| json!({ "SecretId": "x", "VersionStage": stage });
        prop_assert_eq!(&lab.fine("GetSecretValue", &get("AWSCURRENT"))["SecretString"], &json!(values[values.len() - 1]));
        prop_assert_eq!(&lab.fine("GetSecretValue", &get("AWSPREVIOUS"))["SecretString"], &json!(values[values.len() - 2]));
    }
}
