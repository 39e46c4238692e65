//! CBOR as Smithy's RPC v2 has it, to and from JSON trees: operations see one kind of tree, whatever the client speaks.

use crate::fault::{Fault, Kind};
use minicbor::data::{Tag, Type};
use minicbor::decode::Error as Bad;
use minicbor::{Decoder, Encoder};
use serde_json::{Map, Number, Value};

/// CBOR's tag of a time, s of the epoch.
const EPOCH: Tag = Tag::new(1);
/// Members that are times, or lists of them: a tree of JSON cannot tell.
const TIMES: [&str; 2] = ["Timestamp", "Timestamps"];
/// Deepest nesting that is read.
const DEPTH: usize = 32;

/// Reads one value; a time becomes its number of seconds.
pub fn read(bytes: &[u8]) -> Result<Value, Fault> {
    let mut decoder = Decoder::new(bytes);
    value(&mut decoder, DEPTH).map_err(|error| {
        let message = format!("Could not read the request's body as CBOR: {error}");
        Fault::new(Kind::InvalidRequestContent, message)
    })
}

fn value(from: &mut Decoder<'_>, depth: usize) -> Result<Value, Bad> {
    let Some(depth) = depth.checked_sub(1) else { return Err(Bad::message("too deeply nested")) };
    Ok(match from.datatype()? {
        Type::Bool => from.bool()?.into(),
        Type::Null | Type::Undefined => {
            from.skip()?;
            Value::Null
        }
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => from.u64()?.into(),
        Type::I8 | Type::I16 | Type::I32 | Type::I64 => from.i64()?.into(),
        Type::F32 => number(from.f32()?.into()),
        Type::F64 => number(from.f64()?),
        Type::String => from.str()?.into(),
        Type::StringIndef => from.str_iter()?.collect::<Result<String, Bad>>()?.into(),
        Type::Tag => {
            from.tag()?;
            value(from, depth)?
        }
        Type::Array | Type::ArrayIndef => {
            let mut items = Vec::new();
            let length = from.array()?;
            while more(from, length, items.len())? {
                items.push(value(from, depth)?);
            }
            items.into()
        }
        Type::Map | Type::MapIndef => {
            let (mut members, mut read) = (Map::new(), 0);
            let length = from.map()?;
            while more(from, length, read)? {
                let Value::String(key) = value(from, 1)? else {
                    return Err(Bad::message("a key is no text"));
                };
                members.insert(key, value(from, depth)?);
                read += 1;
            }
            members.into()
        }
        other => return Err(Bad::type_mismatch(other)),
    })
}

/// Is there one more item of a list, whose length may be known or not?
fn more(from: &mut Decoder<'_>, length: Option<u64>, read: usize) -> Result<bool, Bad> {
    match length {
        Some(length) => Ok((read as u64) < length),
        None if from.datatype()? == Type::Break => {
            from.skip()?;
            Ok(false)
        }
        None => Ok(true),
    }
}

fn number(value: f64) -> Value {
    Number::from_f64(value).into()
}

/// Writes a tree.
pub fn write(tree: &Value) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new());
    put(&mut encoder, tree, false).expect("a vector takes whatever is written");
    encoder.into_writer()
}

type Written = Result<(), minicbor::encode::Error<std::convert::Infallible>>;

fn put(to: &mut Encoder<Vec<u8>>, tree: &Value, is_time: bool) -> Written {
    match tree {
        Value::Null => to.null()?,
        Value::Bool(bool) => to.bool(*bool)?,
        Value::Number(number) => {
            if is_time {
                to.tag(EPOCH)?;
            }
            match (number.as_i64(), number.as_u64()) {
                (Some(whole), _) => to.i64(whole)?,
                (None, Some(whole)) => to.u64(whole)?,
                (None, None) => to.f64(number.as_f64().unwrap_or(f64::NAN))?,
            }
        }
        Value::String(text) => to.str(text)?,
        Value::Array(items) => {
            to.array(items.len() as u64)?;
            return items.iter().try_for_each(|item| put(to, item, is_time));
        }
        Value::Object(members) => {
            to.map(members.len() as u64)?;
            return members.iter().try_for_each(|(key, member)| {
                to.str(key)?;
                put(to, member, TIMES.contains(&key.as_str()))
            });
        }
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn trees_go_there_and_back() {
        let tree = json!({"a": [1, -2, 2.5, true, null], "Timestamps": [1_700_000_000], "b": {"c": "é"}});
        assert_eq!(read(&write(&tree)).expect("what was written"), tree);
        let check = |bytes: &[u8], expect: Value| assert_eq!(read(bytes).expect("CBOR"), expect);
        // A time with a fraction; lists, maps and texts whose length is not said beforehand.
        check(&[0xa1, 0x61, b'T', 0xc1, 0xfb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0], json!({"T": 1.5}));
        check(b"\xbf\x61a\x9f\x01\x02\xff\xff", json!({"a": [1, 2]}));
        check(b"\x7f\x61a\x61b\xff", json!("ab"));
        assert_eq!(write(&json!({"Timestamp": 1})), b"\xa1\x69Timestamp\xc1\x01");
    }

    #[test]
    fn what_json_has_no_word_for_is_refused() {
        for bytes in [
            &b"\x41a"[..],
            b"\xa1\x01\x01",
            b"",
            b"\x9f\x01",
            b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
            &[0x81; 100_000],
        ] {
            let fault = read(bytes).expect_err("refused");
            assert_eq!(fault.kind, Kind::InvalidRequestContent);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(tree) = read(&bytes) {
                prop_assert_eq!(read(&write(&tree)).expect("what was written"), tree);
            }
        }
    }
}
