//! Reading requests: the same complaints for every operation.

use crate::reply::Refusal;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A request's members. Unknown ones are ignored, as AWS does; a wrong type is a `SerializationException`.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let bad = |text: &str| Refusal::common("SerializationException", text);
    let value: Value = match body {
        [] => Value::Object(Default::default()),
        _ => serde_json::from_slice(body).map_err(|_| bad("Unable to parse the request body as JSON"))?,
    };
    if !value.is_object() {
        return Err(bad("Start of structure or map found where not expected."));
    }
    serde_json::from_value(value).map_err(|error| bad(&error.to_string()))
}

/// A member that must be there.
pub(crate) fn required<T>(member: Option<T>, name: &str) -> Result<T, Refusal> {
    member.ok_or_else(|| {
        Refusal::validation(format!(
            "1 validation error detected: Value null at '{name}' failed to satisfy constraint: Member must not be null"
        ))
    })
}

/// A list may have so many members.
pub(crate) fn at_most<T>(list: &[T], most: usize, name: &str) -> Result<(), Refusal> {
    if list.len() <= most {
        return Ok(());
    }
    Err(Refusal::validation(format!(
        "1 validation error detected: Value at '{name}' failed to satisfy constraint: Member must have length less \
         than or equal to {most}"
    )))
}

/// A tag.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Tag {
    pub key: String,
    pub value: String,
}

/// Adds tags, replacing those with the same key.
pub(crate) fn add_tags(tags: &mut Vec<Tag>, new: Vec<Tag>) {
    for tag in new {
        match tags.iter_mut().find(|known| known.key == tag.key) {
            Some(known) => known.value = tag.value,
            None => tags.push(tag),
        }
    }
}

/// A page of a list, and the token of the next: the position, in decimal.
pub(crate) fn page<T>(
    all: Vec<T>,
    token: Option<&str>,
    most: usize,
    bad_token: Refusal,
) -> Result<(Vec<T>, Option<String>), Refusal> {
    let from = match token {
        None => 0,
        Some(token) => token.parse::<usize>().ok().filter(|at| *at <= all.len()).ok_or(bad_token)?,
    };
    let next = from.saturating_add(most.max(1));
    let token = (next < all.len()).then(|| next.to_string());
    Ok((all.into_iter().skip(from).take(most.max(1)).collect(), token))
}
