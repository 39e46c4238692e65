//! AddPermission, GetPolicy, RemovePermission: stored, and shown; danki enforces none of it.

use super::qualified;
use crate::api::Api;
use crate::arn;
use crate::fault::{Fault, Kind};
use crate::request::{Outcome, Reply, Request};
use crate::store::Permission;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// A resource policy (AWS's quotas page).
const POLICY_BYTES: usize = 20 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Input {
    statement_id: Option<String>,
    action: Option<String>,
    principal: Option<String>,
    source_arn: Option<String>,
    source_account: Option<String>,
    event_source_token: Option<String>,
    function_url_auth_type: Option<String>,
    #[serde(rename = "PrincipalOrgID")]
    principal_org_id: Option<String>,
}

pub fn add(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = qualified(request)?;
    let input: Input = request.json()?;
    let required = |value: &Option<String>, member: &str| {
        value.clone().ok_or_else(|| Fault::constraint("null", member, "Member must not be null"))
    };
    let sid = required(&input.statement_id, "statementId")?;
    required(&input.action, "action")?;
    required(&input.principal, "principal")?;
    let statement = statement(&arn::function(api.region(), &name, qualifier.as_deref()), &sid, &input);
    let shown = statement.to_string();
    api.change(|account| {
        account.find(api.region(), &name, qualifier.as_deref())?;
        let function = account.function_mut(api.region(), &name)?;
        let statements = function.permissions.entry(qualifier.unwrap_or_default()).or_default();
        if statements.iter().any(|p| p.sid == sid) {
            return Err(Fault::conflict(format!(
                "The statement id ({sid}) provided already exists. Please provide a new statement id, or remove the existing statement."
            )));
        }
        let bytes: usize = statements.iter().map(|p| p.statement.to_string().len()).sum();
        if bytes + shown.len() > POLICY_BYTES {
            return Err(Fault::invalid(format!("The final policy size is bigger than the limit ({POLICY_BYTES}).")));
        }
        statements.push(Permission { sid, statement });
        Ok(())
    })?;
    Ok(Reply::json(201, &json!({ "Statement": shown })))
}

pub fn get(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = qualified(request)?;
    let account = api.account();
    let found = account.find(api.region(), &name, qualifier.as_deref())?;
    let statements = found.function.permissions.get(qualifier.as_deref().unwrap_or_default());
    let statements = statements.filter(|s| !s.is_empty()).ok_or_else(missing)?;
    let statements: Vec<&Value> = statements.iter().map(|p| &p.statement).collect();
    let policy = json!({ "Version": "2012-10-17", "Id": "default", "Statement": statements });
    let revision = &found.version.revision;
    Ok(Reply::json(200, &json!({ "Policy": policy.to_string(), "RevisionId": revision })))
}

pub fn remove(api: &Arc<Api>, request: &Request) -> Outcome {
    let (name, qualifier) = qualified(request)?;
    let sid = request.parameter("StatementId");
    api.change(|account| {
        let function = account.function_mut(api.region(), &name)?;
        let statements = function.permissions.entry(qualifier.unwrap_or_default()).or_default();
        let before = statements.len();
        statements.retain(|p| p.sid != sid);
        if statements.len() == before {
            return Err(Fault::new(
                Kind::PolicyNotFound,
                format!("Statement {sid} is not found in resource policy."),
            ));
        }
        Ok(())
    })?;
    Ok(Reply::empty(204))
}

fn missing() -> Fault {
    Fault::new(Kind::PolicyNotFound, "The resource you requested does not exist.")
}

fn statement(arn: &str, sid: &str, input: &Input) -> Value {
    let principal = input.principal.as_deref().unwrap_or_default();
    let principal = match principal {
        "*" => json!("*"),
        service if service.contains(".amazonaws.com") => json!({ "Service": service }),
        id if id.len() == 12 && id.chars().all(|c| c.is_ascii_digit()) => {
            json!({ "AWS": format!("arn:aws:iam::{id}:root") })
        }
        other => json!({ "AWS": other }),
    };
    let mut statement = json!({
        "Sid": sid, "Effect": "Allow", "Principal": principal, "Action": input.action, "Resource": arn,
    });
    let mut conditions = serde_json::Map::new();
    let mut when = |operator: &str, key: &str, value: &Option<String>| {
        if let Some(value) = value {
            let entry = conditions.entry(operator).or_insert_with(|| json!({}));
            entry[key] = value.clone().into();
        }
    };
    when("ArnLike", "AWS:SourceArn", &input.source_arn);
    when("StringEquals", "AWS:SourceAccount", &input.source_account);
    when("StringEquals", "lambda:EventSourceToken", &input.event_source_token);
    when("StringEquals", "lambda:FunctionUrlAuthType", &input.function_url_auth_type);
    when("StringEquals", "aws:PrincipalOrgID", &input.principal_org_id);
    if !conditions.is_empty() {
        statement["Condition"] = conditions.into();
    }
    statement
}
