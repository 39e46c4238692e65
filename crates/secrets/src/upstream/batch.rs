//! Many values in few calls, for the prefetch list: `BatchGetSecretValue` takes 20, `GetParameters` 10. The role may lack the right to
//! call those, and a batch may lack single values; whatever it does not bring is fetched alone.

use super::Upstream;
use super::call::{fetch, insist};
use super::failure::Failure;
use super::line::Line;
use super::stream::Deadline;
use crate::json::{push_name, push_strings};
use crate::shape::{self, Body, Parameter, Secret};
use crate::wanted::{Service, Wanted};
use std::time::Duration;

/// `SecretIdList` of `BatchGetSecretValue`.
const SECRETS: usize = 20;
/// `Names` of `GetParameters`.
const PARAMETERS: usize = 10;

/// Splits a list into what one call each can bring.
pub fn batches(list: Vec<Wanted>) -> Vec<Vec<Wanted>> {
    let mut batches: Vec<Vec<Wanted>> = Vec::new();
    for wanted in list {
        let fits = |batch: &&mut Vec<Wanted>| match (batch.first(), &wanted) {
            (Some(first @ Wanted::Secret { .. }), Wanted::Secret { .. }) => {
                first.batchable() && wanted.batchable() && batch.len() < SECRETS
            }
            (Some(Wanted::Parameter { decrypt: theirs, .. }), Wanted::Parameter { decrypt, .. }) => {
                theirs == decrypt && batch.len() < PARAMETERS
            }
            _ => false,
        };
        match batches.iter_mut().find(fits) {
            Some(batch) => batch.push(wanted),
            None => batches.push(vec![wanted]),
        }
    }
    batches
}

/// Fetches a batch made by [`batches`]; each value exactly once.
pub fn fetch_batch(
    upstream: &Upstream,
    line: &mut Line,
    batch: &[Wanted],
    patience: Duration,
    mut done: impl FnMut(&Wanted, Result<Body, Failure>),
) {
    let mut found = if batch.len() > 1 { together(upstream, line, batch, patience) } else { Vec::new() };
    for wanted in batch {
        let body = found.iter_mut().find(|(matches, _)| matches.iter().any(|name| names(name, wanted)));
        match body.and_then(|(_, body)| body.take()) {
            Some(body) => done(wanted, Ok(body)),
            None => done(wanted, fetch(upstream, line, wanted, patience)),
        }
    }
}

/// Values by their names: what they may have been asked for as.
type Found = Vec<(Vec<String>, Option<Body>)>;

/// One call; nothing if it fails.
fn together(upstream: &Upstream, line: &mut Line, batch: &[Wanted], patience: Duration) -> Found {
    let mut ids = Vec::new();
    let mut decrypted = false;
    for wanted in batch {
        match wanted {
            Wanted::Secret { id, .. } => ids.push(id.clone()),
            Wanted::Parameter { name, decrypt } => {
                decrypted = *decrypt;
                ids.push(name.clone());
            }
        }
    }
    let service = batch.first().map_or(Service::SecretsManager, Wanted::service);
    let mut payload = vec![b'{'];
    let operation = match service {
        Service::SecretsManager => {
            push_strings(&mut payload, "SecretIdList", Some(&ids));
            "BatchGetSecretValue"
        }
        Service::ParameterStore => {
            push_strings(&mut payload, "Names", Some(&ids));
            push_name(&mut payload, "WithDecryption");
            payload.extend_from_slice(if decrypted { b"true" } else { b"false" });
            "GetParameters"
        }
    };
    payload.push(b'}');
    let Ok(answer) = insist(upstream, line, service, operation, &payload, Deadline::after(patience)) else {
        return Vec::new();
    };
    match service {
        Service::SecretsManager => shape::secrets(&answer).unwrap_or_default().iter().map(secret).collect(),
        Service::ParameterStore => {
            shape::parameters(&answer).unwrap_or_default().iter().map(parameter).collect()
        }
    }
}

fn secret(secret: &Secret) -> (Vec<String>, Option<Body>) {
    let mut matches: Vec<String> = secret.name.iter().chain(&secret.arn).cloned().collect();
    // A secret's ARN may be given without the random part that its creation added: a hyphen and six characters.
    matches.extend(secret.arn.as_deref().and_then(|arn| arn.rsplit_once('-')).map(|(arn, _)| arn.to_owned()));
    (matches, Some(shape::secret_body(secret)))
}

fn parameter(parameter: &Parameter) -> (Vec<String>, Option<Body>) {
    let selector = parameter.selector.as_deref().unwrap_or_default();
    let named = parameter.name.iter().chain(&parameter.arn).map(|name| format!("{name}{selector}"));
    (named.collect(), Some(shape::parameter_body(parameter)))
}

fn names(name: &str, wanted: &Wanted) -> bool {
    match wanted {
        Wanted::Secret { id, .. } => id == name,
        Wanted::Parameter { name: wanted, .. } => wanted == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(id: usize, stage: Option<&str>) -> Wanted {
        Wanted::Secret { id: id.to_string(), version_id: None, version_stage: stage.map(str::to_owned) }
    }

    fn parameter(id: usize, decrypt: bool) -> Wanted {
        Wanted::Parameter { name: id.to_string(), decrypt }
    }

    #[test]
    fn batches_are_as_large_as_they_may_be() {
        let check = |list: Vec<Wanted>, sizes: &[usize]| {
            let batches = batches(list.clone());
            assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), sizes);
            assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), list.len());
        };
        check(Vec::new(), &[]);
        check((0..45).map(|id| secret(id, None)).collect(), &[20, 20, 5]);
        check((0..11).map(|id| parameter(id, true)).collect(), &[10, 1]);
        check(vec![parameter(0, true), parameter(1, false), parameter(2, true)], &[2, 1]);
        check(vec![secret(0, None), secret(1, Some("S")), secret(2, None), secret(3, Some("S"))], &[2, 1, 1]);
        check(vec![secret(0, Some("S")), secret(1, None)], &[1, 1]);
    }

    #[test]
    fn values_are_known_by_every_name() {
        let arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-MFUBmH";
        let answer = format!(r#"{{"SecretValues":[{{"ARN":"{arn}","Name":"prod/db","SecretString":"s"}}]}}"#);
        let secrets = shape::secrets(answer.as_bytes()).expect("secrets");
        let (matches, body) = super::secret(&secrets[0]);
        assert_eq!(matches, ["prod/db", arn, "arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db"]);
        assert!(body.is_some());
        let answer = br#"{"Parameters":[{"Name":"/a","ARN":"arn:x","Selector":":1","Value":"v"}]}"#;
        let parameters = shape::parameters(answer).expect("parameters");
        assert_eq!(super::parameter(&parameters[0]).0, ["/a:1", "arn:x:1"]);
    }
}
