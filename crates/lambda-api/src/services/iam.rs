//! IAM: roles can be made and looked at; policies are attached and never asked.

use super::xml::{query, tag};
use crate::api::{Api, now_ms};
use crate::arn::ACCOUNT;
use crate::fault::{Fault, Kind};
use crate::request::{Outcome, Request, pairs};
use crate::store::Account;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

const NAMESPACE: &str = "https://iam.amazonaws.com/doc/2010-05-08/";

/// A role.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Role {
    pub id: String,
    pub path: String,
    pub trust: String,
    pub description: String,
    pub created_ms: u64,
    /// ARNs of attached policies.
    pub attached: Vec<String>,
    /// Inline policies.
    pub inline: BTreeMap<String, String>,
}

pub fn answer(api: &Arc<Api>, request: &Request) -> Outcome {
    let form = Form(pairs(&String::from_utf8_lossy(&request.body)));
    let action = form.get("Action").to_owned();
    let result = api.change(|account| perform(api, account, &action, &form))?;
    Ok(query(NAMESPACE, &action, &result, &request.id))
}

struct Form(Vec<(String, String)>);

impl Form {
    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map(|(_, v)| v.as_str()).unwrap_or_default()
    }
}

fn perform(api: &Api, account: &mut Account, action: &str, form: &Form) -> Result<String, Fault> {
    let name = form.get("RoleName");
    match action {
        "CreateRole" => create(api, account, name, form),
        "GetRole" => Ok(format!("<Role>{}</Role>", shown(name, role(account, name)?))),
        "ListRoles" => {
            let roles =
                account.roles.iter().map(|(name, role)| format!("<member>{}</member>", shown(name, role)));
            let roles: String = roles.collect();
            Ok(format!("<Roles>{roles}</Roles><IsTruncated>false</IsTruncated>"))
        }
        "DeleteRole" => {
            role(account, name)?;
            account.roles.remove(name);
            Ok(String::new())
        }
        "AttachRolePolicy" => {
            let (role, policy) = (role(account, name)?, form.get("PolicyArn").to_owned());
            if !role.attached.contains(&policy) {
                role.attached.push(policy);
            }
            Ok(String::new())
        }
        "DetachRolePolicy" => {
            role(account, name)?.attached.retain(|arn| arn != form.get("PolicyArn"));
            Ok(String::new())
        }
        "ListAttachedRolePolicies" => {
            let member = |arn: &String| {
                let name = arn.rsplit('/').next().unwrap_or_default();
                format!("<member>{}{}</member>", tag("PolicyName", name), tag("PolicyArn", arn))
            };
            let members: String = role(account, name)?.attached.iter().map(member).collect();
            Ok(format!("<AttachedPolicies>{members}</AttachedPolicies><IsTruncated>false</IsTruncated>"))
        }
        "PutRolePolicy" => {
            let policy = (form.get("PolicyName").to_owned(), form.get("PolicyDocument").to_owned());
            role(account, name)?.inline.extend([policy]);
            Ok(String::new())
        }
        "DeleteRolePolicy" => {
            role(account, name)?.inline.remove(form.get("PolicyName"));
            Ok(String::new())
        }
        "ListRolePolicies" => {
            let members: String = role(account, name)?.inline.keys().map(|n| tag("member", n)).collect();
            Ok(format!("<PolicyNames>{members}</PolicyNames><IsTruncated>false</IsTruncated>"))
        }
        other => Err(Fault::new(Kind::NotOffered, format!("danki does not offer {other} of IAM"))),
    }
}

fn create(api: &Api, account: &mut Account, name: &str, form: &Form) -> Result<String, Fault> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "+=,.@_-".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(legal) {
        return Err(Fault::constraint(
            name,
            "roleName",
            "Member must satisfy regular expression pattern: [\\w+=,.@-]+",
        ));
    }
    if account.roles.contains_key(name) {
        return Err(Fault::conflict(format!("Role with name {name} already exists.")));
    }
    let id = api.uuid().replace('-', "").to_ascii_uppercase();
    let path = form.get("Path");
    let role = Role {
        id: format!("AROA{}", &id[..17]),
        path: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
        trust: form.get("AssumeRolePolicyDocument").to_owned(),
        description: form.get("Description").to_owned(),
        created_ms: now_ms(),
        attached: Vec::new(),
        inline: BTreeMap::new(),
    };
    let view = format!("<Role>{}</Role>", shown(name, &role));
    account.roles.insert(name.to_owned(), role);
    Ok(view)
}

fn role<'a>(account: &'a mut Account, name: &str) -> Result<&'a mut Role, Fault> {
    let missing = || Fault::not_found(format!("The role with name {name} cannot be found."));
    account.roles.get_mut(name).ok_or_else(missing)
}

fn shown(name: &str, role: &Role) -> String {
    let arn = format!("arn:aws:iam::{ACCOUNT}:role{}{name}", role.path);
    // IAM shows documents escaped as in URLs.
    let trust: String = role.trust.bytes().map(|b| format!("%{b:02X}")).collect();
    let description =
        if role.description.is_empty() { String::new() } else { tag("Description", &role.description) };
    tag("Path", &role.path)
        + &tag("RoleName", name)
        + &tag("RoleId", &role.id)
        + &tag("Arn", &arn)
        + &tag("CreateDate", &danki_model::time::iso(role.created_ms))
        + &tag("AssumeRolePolicyDocument", &trust)
        + &description
        + &tag("MaxSessionDuration", "3600")
}
