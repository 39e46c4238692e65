//! DynamoDB in this process: the JSON 1.0 protocol around the `dynoxide-rs` engine (SQLite in memory).
//!
//! The engine's own HTTP server is not used: it would bring a second web stack and its own timing.

use crate::Error;
use crate::config::{Index, KeyType, Table};
use crate::kind::Trouble;
use bytes::Bytes;
use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Prefixes of `X-Amz-Target`.
const TARGETS: [&str; 2] = ["DynamoDB_20120810.", "DynamoDBStreams_20120810."];

/// Operations for which DynamoDB counts the validation errors that it found.
const WRITES: [&str; 3] = ["PutItem", "UpdateItem", "DeleteItem"];

/// A status and a JSON body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

/// The engine. Cheap to clone: all clones are one database.
#[derive(Clone)]
pub(crate) struct Engine(Database);

/// The operation that a target header names.
pub(crate) fn operation(target: &str) -> Option<&str> {
    TARGETS.iter().find_map(|prefix| target.strip_prefix(prefix))
}

/// Operations that change something. Statements of PartiQL count as reads: most are, and only parsing them would tell.
pub(crate) fn writes(operation: &str) -> bool {
    let also = ["BatchWriteItem", "TransactWriteItems", "ExecuteTransaction"];
    let begins = ["Create", "Update", "Delete", "Tag", "Untag"];
    WRITES.contains(&operation)
        || also.contains(&operation)
        || begins.iter().any(|b| operation.starts_with(b))
}

/// Status, type and text of trouble, as in DynamoDB's API reference.
pub(crate) fn trouble(trouble: Trouble) -> (u16, &'static str, &'static str) {
    match trouble {
        Trouble::Capacity => (
            400,
            "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
            "The level of configured provisioned throughput for the table was exceeded. Consider increasing your \
             provisioning level with the UpdateTable API.",
        ),
        Trouble::Throttled => (
            400,
            "com.amazon.coral.availability#ThrottlingException",
            "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your \
             table or index so please try again shortly.",
        ),
        Trouble::Internal => (
            500,
            "com.amazonaws.dynamodb.v20120810#InternalServerError",
            "The request processing has failed because of an unknown error, exception or failure.",
        ),
        Trouble::TooLarge => {
            (413, "com.amazon.coral.service#RequestEntityTooLargeException", "request is too large")
        }
    }
}

impl Engine {
    /// An engine with the configured tables and items in it.
    pub(crate) fn create(tables: &[Table]) -> Result<Engine, Error> {
        let engine = Engine(Database::memory().map_err(|e| Error::Engine(e.to_string()))?);
        for table in tables {
            engine.seed(table).map_err(|reason| Error::Seed { table: table.name.clone(), reason })?;
        }
        Ok(engine)
    }

    fn seed(&self, table: &Table) -> Result<(), String> {
        self.must("CreateTable", create_table(table))?;
        for (i, item) in table.items.iter().enumerate() {
            let Value::Object(item) = item else {
                return Err(format!("items[{i}] is not a table of attributes"));
            };
            let item: Map<String, Value> = item.iter().map(|(k, v)| (k.clone(), attribute(v))).collect();
            self.must("PutItem", json!({ "TableName": table.name, "Item": item }))
                .map_err(|reason| format!("items[{i}]: {reason}"))?;
        }
        Ok(())
    }

    fn must(&self, operation: &str, request: Value) -> Result<(), String> {
        let reply = self.execute(operation, request.to_string().as_bytes());
        if reply.status == 200 { Ok(()) } else { Err(String::from_utf8_lossy(&reply.body).into_owned()) }
    }

    /// Runs one operation; blocks for as long as SQLite does (tens of µs for one item).
    pub(crate) fn execute(&self, operation: &str, body: &[u8]) -> Reply {
        let result = match std::str::from_utf8(body) {
            Ok(body) => self.dispatch(operation, body),
            Err(_) => Err(DynoxideError::SerializationException(String::new())),
        };
        match result {
            Ok(body) => Reply { status: 200, body },
            Err(DynoxideError::EnvelopedValidation(text)) if WRITES.contains(&operation) => {
                let text = format!("1 validation error detected: {text}");
                let error = DynoxideError::ValidationException(text);
                Reply { status: error.status_code(), body: error.to_json().into() }
            }
            Err(error) => Reply { status: error.status_code(), body: error.to_json().into() },
        }
    }
}

/// One table of operations: the name in the target header, and the engine's method.
macro_rules! operations {
    ($($name:literal => $method:ident,)+) => {
        impl Engine {
            fn dispatch(&self, operation: &str, body: &str) -> Result<Bytes, DynoxideError> {
                match operation {
                    $($name => run(body, |request| self.0.$method(request)),)+
                    _ => Ok(Bytes::new()),
                }
            }

            /// Whether the engine has this operation.
            pub(crate) fn knows(operation: &str) -> bool {
                matches!(operation, $($name)|+)
            }
        }
    };
}

operations! {
    "BatchExecuteStatement" => batch_execute_statement,
    "BatchGetItem" => batch_get_item,
    "BatchWriteItem" => batch_write_item,
    "CreateTable" => create_table,
    "DeleteItem" => delete_item,
    "DeleteTable" => delete_table,
    "DescribeStream" => describe_stream,
    "DescribeTable" => describe_table,
    "DescribeTimeToLive" => describe_time_to_live,
    "ExecuteStatement" => execute_statement,
    "ExecuteTransaction" => execute_transaction,
    "GetItem" => get_item,
    "GetRecords" => get_records,
    "GetShardIterator" => get_shard_iterator,
    "ListStreams" => list_streams,
    "ListTables" => list_tables,
    "ListTagsOfResource" => list_tags_of_resource,
    "PutItem" => put_item,
    "Query" => query,
    "Scan" => scan,
    "TagResource" => tag_resource,
    "TransactGetItems" => transact_get_items,
    "TransactWriteItems" => transact_write_items,
    "UntagResource" => untag_resource,
    "UpdateItem" => update_item,
    "UpdateTable" => update_table,
    "UpdateTimeToLive" => update_time_to_live,
}

fn run<Request: DeserializeOwned, Response: Serialize>(
    body: &str,
    operation: impl FnOnce(Request) -> Result<Response, DynoxideError>,
) -> Result<Bytes, DynoxideError> {
    if !body.trim_start().starts_with('{') {
        // serde would take a list for a request's members in order.
        return Err(DynoxideError::SerializationException(String::new()));
    }
    let request = serde_json::from_str(body).map_err(|e| refused(&e.to_string()))?;
    let response = operation(request)?;
    let written = serde_json::to_vec(&response);
    written.map(Bytes::from).map_err(|e| DynoxideError::InternalServerError(e.to_string()))
}

/// What DynamoDB would call a request that does not parse. The engine's types mark the class at the front of the
/// message; serde adds a position at its end.
fn refused(message: &str) -> DynoxideError {
    let text = message.split_once(" at line ").map_or(message, |(text, _)| text);
    let marked =
        text.split_once(':').filter(|(mark, _)| mark.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'));
    match marked {
        Some((mark, rest)) if mark.starts_with("VALIDATION") => {
            DynoxideError::ValidationException(rest.to_owned())
        }
        Some((mark, rest)) if mark.starts_with("SERIALIZATION") => {
            DynoxideError::SerializationException(rest.to_owned())
        }
        _ if ["missing field", "unknown variant", "AttributeValue"]
            .iter()
            .any(|part| text.contains(part)) =>
        {
            DynoxideError::ValidationException(text.to_owned())
        }
        _ => DynoxideError::SerializationException(text.to_owned()),
    }
}

type Key = (String, KeyType);

fn create_table(table: &Table) -> Value {
    let of_indexes = table.indexes.iter().flat_map(|index| [Some(&index.hash_key), index.range_key.as_ref()]);
    let keys = [Some(&table.hash_key), table.range_key.as_ref()].into_iter().chain(of_indexes).flatten();
    // An attribute is defined once, however many keys it is part of; who gives it two types is told by the engine.
    let mut defined: Vec<&Key> = Vec::new();
    keys.for_each(|key| {
        if !defined.contains(&key) {
            defined.push(key);
        }
    });
    let kind = |kind: KeyType| match kind {
        KeyType::S => "S",
        KeyType::N => "N",
        KeyType::B => "B",
    };
    let attributes: Vec<Value> =
        defined.iter().map(|(name, t)| json!({ "AttributeName": name, "AttributeType": kind(*t) })).collect();
    let mut request = json!({
        "TableName": table.name,
        "KeySchema": schema(&table.hash_key, table.range_key.as_ref()),
        "AttributeDefinitions": attributes,
        "BillingMode": "PAY_PER_REQUEST",
    });
    for (section, local) in [("GlobalSecondaryIndexes", false), ("LocalSecondaryIndexes", true)] {
        let indexes: Vec<Value> = table.indexes.iter().filter(|i| i.local == local).map(index).collect();
        if !indexes.is_empty() {
            request[section] = Value::Array(indexes);
        }
    }
    request
}

fn index(index: &Index) -> Value {
    let projection = match index.include.as_deref() {
        None => json!({ "ProjectionType": "ALL" }),
        Some([]) => json!({ "ProjectionType": "KEYS_ONLY" }),
        Some(names) => json!({ "ProjectionType": "INCLUDE", "NonKeyAttributes": names }),
    };
    let schema = schema(&index.hash_key, index.range_key.as_ref());
    json!({ "IndexName": index.name, "KeySchema": schema, "Projection": projection })
}

fn schema(hash: &Key, range: Option<&Key>) -> Vec<Value> {
    let keys = [Some((hash, "HASH")), range.map(|key| (key, "RANGE"))].into_iter().flatten();
    keys.map(|((name, _), role)| json!({ "AttributeName": name, "KeyType": role })).collect()
}

/// Plain JSON as an attribute value.
fn attribute(value: &Value) -> Value {
    match value {
        Value::Null => json!({ "NULL": true }),
        Value::Bool(b) => json!({ "BOOL": b }),
        Value::Number(n) => json!({ "N": n.to_string() }),
        Value::String(s) => json!({ "S": s }),
        Value::Array(list) => json!({ "L": list.iter().map(attribute).collect::<Vec<_>>() }),
        Value::Object(map) => {
            json!({ "M": map.iter().map(|(k, v)| (k.clone(), attribute(v))).collect::<Map<_, _>>() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn engine() -> Engine {
        let tables: Vec<Table> = serde_json::from_value(json!([
            { "name": "test", "hash_key": ["id", "N"], "items": [{ "id": 1, "name": "one", "list": [true, null, 1.5] }] },
            { "name": "ranged", "hash_key": ["pk", "S"], "range_key": ["sk", "N"], "items": [] },
        ]))
        .expect("tables");
        Engine::create(&tables).expect("engine")
    }

    fn execute(engine: &Engine, operation: &str, request: &Value) -> (u16, Value) {
        let reply = engine.execute(operation, request.to_string().as_bytes());
        (reply.status, serde_json::from_slice(&reply.body).expect("json"))
    }

    #[test]
    fn seeded_items_are_there() {
        let get = json!({ "TableName": "test", "Key": { "id": { "N": "1" } } });
        let (status, body) = execute(&engine(), "GetItem", &get);
        let expect = json!({ "Item": {
            "id": { "N": "1" },
            "name": { "S": "one" },
            "list": { "L": [{ "BOOL": true }, { "NULL": true }, { "N": "1.5" }] },
        }});
        assert_eq!((status, body), (200, expect));
    }

    #[test]
    fn an_index_is_queried_and_has_what_it_projects() {
        let tables: Vec<Table> = serde_json::from_value(json!([{
            "name": "orders", "hash_key": ["id", "S"], "range_key": ["at", "N"],
            "indexes": [
                { "name": "by-customer", "hash_key": ["customer", "S"], "range_key": ["at", "N"], "include": ["sum"] },
                { "name": "by-sum", "local": true, "hash_key": ["id", "S"], "range_key": ["sum", "N"], "include": [] },
            ],
            "items": [{ "id": "a", "at": 1, "customer": "c", "sum": 7, "note": "x" }],
        }]))
        .expect("tables");
        let engine = Engine::create(&tables).expect("engine");
        let query = |index: &str, key: &str, value: &str| {
            let query = json!({
                "TableName": "orders", "IndexName": index, "KeyConditionExpression": format!("{key} = :v"),
                "ExpressionAttributeValues": { ":v": { "S": value } },
            });
            execute(&engine, "Query", &query)
        };
        let (status, found) = query("by-customer", "customer", "c");
        assert_eq!((status, &found["Items"][0]["sum"]["N"]), (200, &json!("7")), "{found}");
        assert!(found["Items"][0].get("note").is_none(), "{found}");
        let (status, found) = query("by-sum", "id", "a");
        assert_eq!((status, &found["Count"]), (200, &json!(1)), "{found}");
        assert_eq!(query("by-nothing", "id", "a").0, 400);
    }

    #[test]
    fn put_query_and_errors() {
        let engine = engine();
        for n in 0..3 {
            let item = json!({ "pk": { "S": "a" }, "sk": { "N": n.to_string() } });
            let (status, body) = execute(&engine, "PutItem", &json!({ "TableName": "ranged", "Item": item }));
            assert_eq!(status, 200, "{body}");
        }
        let query = json!({
            "TableName": "ranged",
            "KeyConditionExpression": "pk = :a AND sk >= :one",
            "ExpressionAttributeValues": { ":a": { "S": "a" }, ":one": { "N": "1" } },
        });
        assert_eq!(execute(&engine, "Query", &query).1["Count"], 2);
        let check = |operation: &str, request: &Value, kind: &str| {
            let (status, body) = execute(&engine, operation, request);
            assert_eq!(status, 400, "{body}");
            assert!(body["__type"].as_str().is_some_and(|t| t.ends_with(kind)), "{body}");
        };
        let key = json!({ "id": { "N": "1" } });
        check("GetItem", &json!({ "TableName": "none", "Key": key }), "#ResourceNotFoundException");
        check("GetItem", &json!({ "TableName": "test", "Key": {} }), "#ValidationException");
        check("GetItem", &json!({ "TableName": 3, "Key": key }), "#SerializationException");
        check("GetItem", &json!([]), "#SerializationException");
    }

    #[test]
    fn bad_seeds_name_the_table_and_the_item() {
        let check = |table: Value, expect: &str| {
            let tables: Vec<Table> = vec![serde_json::from_value(table).expect("a table")];
            let said = Engine::create(&tables).err().expect("refused").to_string();
            assert!(said.contains(expect), "{said}");
        };
        check(json!({ "name": "t", "hash_key": ["id", "N"] }), "\"t\"");
        check(json!({ "name": "test", "hash_key": ["id", "N"], "items": [{ "id": "x" }] }), "items[0]");
        check(json!({ "name": "test", "hash_key": ["id", "N"], "items": [{ "id": 1 }, 3] }), "items[1]");
    }

    #[test]
    fn targets() {
        assert_eq!(operation("DynamoDB_20120810.GetItem"), Some("GetItem"));
        assert_eq!(operation("DynamoDBStreams_20120810.ListStreams"), Some("ListStreams"));
        assert_eq!(operation("AWSCognito.GetItem"), None);
        assert!(Engine::knows("GetItem") && !Engine::knows("MeltItem"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn arbitrary_bodies_are_answered(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let reply = engine().execute("GetItem", &body);
            prop_assert_eq!(reply.status, 400);
        }
    }
}
