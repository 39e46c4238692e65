//! STS: who the caller is, and a role's credentials, which are everybody's.

use super::xml::{query, tag};
use crate::api::{Api, now_ms};
use crate::arn::ACCOUNT;
use crate::fault::{Fault, Kind};
use crate::request::{Outcome, Request, pairs};
use danki_model::environment;
use std::sync::Arc;

const NAMESPACE: &str = "https://sts.amazonaws.com/doc/2011-06-15/";

pub fn answer(_api: &Arc<Api>, request: &Request) -> Outcome {
    let form = pairs(&String::from_utf8_lossy(&request.body));
    let value = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, v)| v.as_str());
    match value("Action").unwrap_or_default() {
        "GetCallerIdentity" => {
            let arn = format!("arn:aws:iam::{ACCOUNT}:user/danki");
            let result = tag("Arn", &arn) + &tag("UserId", "AIDADANKIEXAMPLE") + &tag("Account", ACCOUNT);
            Ok(query(NAMESPACE, "GetCallerIdentity", &result, &request.id))
        }
        "AssumeRole" => {
            let role = value("RoleArn").unwrap_or_default();
            let session = value("RoleSessionName").unwrap_or_default();
            let name = role.rsplit('/').next().unwrap_or_default();
            let assumed = format!("arn:aws:sts::{ACCOUNT}:assumed-role/{name}/{session}");
            let hours = 3_600_000;
            let expiry = danki_model::time::iso(now_ms() + hours);
            let credentials = tag("AccessKeyId", environment::ACCESS_KEY_ID)
                + &tag("SecretAccessKey", environment::SECRET_ACCESS_KEY)
                + &tag("SessionToken", environment::SESSION_TOKEN)
                + &tag("Expiration", &expiry);
            let user = tag("AssumedRoleId", &format!("AROADANKIEXAMPLE:{session}")) + &tag("Arn", &assumed);
            let result =
                format!("<Credentials>{credentials}</Credentials><AssumedRoleUser>{user}</AssumedRoleUser>");
            Ok(query(NAMESPACE, "AssumeRole", &result, &request.id))
        }
        other => Err(Fault::new(Kind::NotOffered, format!("danki does not offer {other} of STS"))),
    }
}
