//! One thing that took time: a segment, a subsegment, or a stretch that danki saw on the wire.

use serde_json::{Map, Value, json};

/// Subsegments inside subsegments are followed to this depth.
const MAX_DEPTH: usize = 32;

/// How it ended, as X-Ray names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Well.
    Ok,
    /// The caller's mistake (4xx).
    Error,
    /// Too many requests (429).
    Throttle,
    /// The server's mistake (5xx).
    Fault,
}

/// A node of a trace's tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// 16 hex digits.
    pub id: String,
    /// The one it belongs to.
    pub parent: Option<String>,
    /// What it is called.
    pub name: String,
    /// Begin, ns since 1970.
    pub start_ns: u64,
    /// End, ns since 1970; absent while it is under way.
    pub end_ns: Option<u64>,
    /// `AWS::Lambda`, `AWS::Lambda::Function`… of a segment.
    pub origin: Option<String>,
    /// `aws` or `remote` of a subsegment that is a call to somewhere; `danki` if danki saw it itself.
    pub namespace: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// The other members of the document: `aws`, `http`, `sql`, `annotations`, `metadata`, `cause`.
    pub details: Map<String, Value>,
}

/// Members that have a field of their own, or none.
const FIELDS: [&str; 14] = [
    "id",
    "parent_id",
    "trace_id",
    "name",
    "start_time",
    "end_time",
    "in_progress",
    "origin",
    "namespace",
    "error",
    "throttle",
    "fault",
    "type",
    "subsegments",
];

impl Entity {
    /// A stretch of time with a name.
    pub fn new(id: String, name: &str, start_ns: u64, end_ns: Option<u64>) -> Entity {
        Entity {
            id,
            parent: None,
            name: name.to_owned(),
            start_ns,
            end_ns,
            origin: None,
            namespace: None,
            outcome: Outcome::Ok,
            details: Map::new(),
        }
    }

    /// A document and the subsegments inside it, each on its own.
    pub fn from_document(document: &Value) -> Vec<Entity> {
        let mut all = Vec::new();
        collect(document, None, 0, &mut all);
        all
    }

    /// Length, if it has ended.
    pub fn len_ns(&self) -> Option<u64> {
        self.end_ns.map(|end_ns| end_ns.saturating_sub(self.start_ns))
    }

    /// The document of X-Ray, without a trace id and without what is inside it.
    pub fn to_document(&self) -> Map<String, Value> {
        let mut document = self.details.clone();
        let mut put = |key: &str, value: Value| drop(document.insert(key.to_owned(), value));
        put("id", json!(self.id));
        put("name", json!(self.name));
        put("start_time", json!(self.start_ns as f64 / 1e9));
        match self.end_ns {
            Some(end_ns) => put("end_time", json!(end_ns as f64 / 1e9)),
            None => put("in_progress", json!(true)),
        }
        for (key, text) in
            [("parent_id", &self.parent), ("origin", &self.origin), ("namespace", &self.namespace)]
        {
            if let Some(text) = text {
                put(key, json!(text));
            }
        }
        match self.outcome {
            Outcome::Ok => {}
            Outcome::Error => put("error", json!(true)),
            Outcome::Throttle => {
                put("error", json!(true));
                put("throttle", json!(true));
            }
            Outcome::Fault => put("fault", json!(true)),
        }
        document
    }
}

fn collect(document: &Value, parent: Option<&str>, depth: usize, all: &mut Vec<Entity>) {
    let text = |key: &str| document[key].as_str().map(str::to_owned);
    let (Some(id), Some(start_ns)) = (text("id"), nanos(&document["start_time"])) else { return };
    let flag = |key: &str| document[key] == true;
    let outcome = match () {
        () if flag("fault") => Outcome::Fault,
        () if flag("throttle") => Outcome::Throttle,
        () if flag("error") => Outcome::Error,
        () => Outcome::Ok,
    };
    let members = document.as_object().into_iter().flatten();
    let details = members.filter(|(key, _)| !FIELDS.contains(&key.as_str()));
    all.push(Entity {
        parent: text("parent_id").or(parent.map(str::to_owned)),
        name: text("name").unwrap_or_else(|| "unnamed".to_owned()),
        start_ns,
        end_ns: nanos(&document["end_time"]).map(|end_ns| end_ns.max(start_ns)),
        origin: text("origin"),
        namespace: text("namespace"),
        outcome,
        details: details.map(|(key, value)| (key.clone(), value.clone())).collect(),
        id: id.clone(),
    });
    let inside = document["subsegments"].as_array().filter(|_| depth < MAX_DEPTH);
    inside.into_iter().flatten().for_each(|sub| collect(sub, Some(&id), depth + 1, all));
}

/// Seconds since 1970 with a fraction as nanoseconds; a double holds them to a quarter of a microsecond.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be 0 to 1e11 seconds"
)]
fn nanos(seconds: &Value) -> Option<u64> {
    let seconds = seconds.as_f64().filter(|s| (0.0..1e10).contains(s))?;
    let whole = seconds.trunc();
    Some(whole as u64 * 1_000_000_000 + ((seconds - whole) * 1e9).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_subsegments_stand_on_their_own() {
        let document = json!({
            "id": "00000000000000aa", "name": "outer", "trace_id": "1-581cf771-a006649127e371903a2de979",
            "start_time": 1_478_293_361.271, "end_time": 1_478_293_361.449, "parent_id": "00000000000000ff",
            "type": "subsegment", "namespace": "remote", "http": { "response": { "status": 503 } }, "fault": true,
            "subsegments": [{ "id": "00000000000000bb", "name": "inner", "start_time": 1_478_293_361.3, "in_progress": true }],
        });
        let all = Entity::from_document(&document);
        assert_eq!(all.len(), 2);
        assert_eq!(
            (all[0].outcome, all[0].len_ns().map(|ns| (ns + 500_000) / 1_000_000)),
            (Outcome::Fault, Some(178))
        );
        assert_eq!((all[1].parent.as_deref(), all[1].end_ns), (Some("00000000000000aa"), None));
        assert_eq!(all[0].details["http"]["response"]["status"], 503);
        let again = all[0].to_document();
        assert_eq!((again["fault"].clone(), again["namespace"].clone()), (json!(true), json!("remote")));
        assert!(Entity::from_document(&json!({ "id": 3 })).is_empty());
    }
}
