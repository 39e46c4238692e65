//! Names of functions as callers write them: a name, a partial ARN or a whole ARN, with or without a qualifier.

use crate::fault::Fault;

/// The account that everything belongs to; AWS's own example number.
pub const ACCOUNT: &str = "123456789012";

/// A function, and the qualifier that was part of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionName {
    pub name: String,
    pub qualifier: Option<String>,
}

/// Reads `name[:q]`, `account:function:name[:q]` or `arn:aws:lambda:region:account:function:name[:q]`.
pub fn function_name(text: &str) -> Result<FunctionName, Fault> {
    let parts: Vec<&str> = text.split(':').collect();
    let rest = match parts.as_slice() {
        ["arn", _, "lambda", _, _, "function", rest @ ..] => rest,
        [_, "function", rest @ ..] => rest,
        ["function", rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    let legal = |s: &str, more: &str| {
        let ok = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || more.contains(c);
        !s.is_empty() && s.chars().all(ok)
    };
    let bad = || {
        let pattern = "Member must satisfy regular expression pattern: (arn:(aws[a-zA-Z-]*)?:lambda:)?\
                       ([a-z]{2}(-gov)?-[a-z]+-\\d{1}:)?(\\d{12}:)?(function:)?([a-zA-Z0-9-_]+)(:(\\$LATEST|[a-zA-Z0-9-_]+))?";
        Fault::constraint(text, "functionName", pattern)
    };
    let (name, qualifier) = match rest {
        [name] => (*name, None),
        [name, qualifier] => (*name, Some(*qualifier)),
        _ => return Err(bad()),
    };
    let qualifier_fine = qualifier.is_none_or(|q| legal(q, "$"));
    if !legal(name, "") || !qualifier_fine || text.len() > 170 {
        return Err(bad());
    }
    Ok(FunctionName { name: name.to_owned(), qualifier: qualifier.map(str::to_owned) })
}

/// The ARN of a function, version or alias.
pub fn function(region: &str, name: &str, qualifier: Option<&str>) -> String {
    match qualifier {
        Some(qualifier) => format!("arn:aws:lambda:{region}:{ACCOUNT}:function:{name}:{qualifier}"),
        None => format!("arn:aws:lambda:{region}:{ACCOUNT}:function:{name}"),
    }
}

/// The ARN of a layer, or of one of its versions.
pub fn layer(region: &str, name: &str, version: Option<u64>) -> String {
    match version {
        Some(version) => format!("arn:aws:lambda:{region}:{ACCOUNT}:layer:{name}:{version}"),
        None => format!("arn:aws:lambda:{region}:{ACCOUNT}:layer:{name}"),
    }
}

/// A layer's name and, if it is there, its version, from a name or an ARN.
pub fn layer_name(text: &str) -> (String, Option<u64>) {
    let rest = match text.split(':').collect::<Vec<_>>().as_slice() {
        ["arn", _, "lambda", _, _, "layer", rest @ ..] => rest.join(":"),
        _ => text.to_owned(),
    };
    match rest.rsplit_once(':') {
        Some((name, version)) => (name.to_owned(), version.parse().ok()),
        None => (rest, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_read() {
        let check = |text: &str, name: &str, qualifier: Option<&str>| {
            let read = function_name(text).expect("legal");
            assert_eq!((read.name.as_str(), read.qualifier.as_deref()), (name, qualifier), "{text}");
        };
        check("f", "f", None);
        check("f:1", "f", Some("1"));
        check("f:$LATEST", "f", Some("$LATEST"));
        check("123456789012:function:f", "f", None);
        check("function:f:live", "f", Some("live"));
        check("arn:aws:lambda:us-east-1:123456789012:function:f:live", "f", Some("live"));
        for bad in ["", "a b", "f:", "f:1:2", "arn:aws:s3:::f", "f/../g", "ü"] {
            assert!(function_name(bad).is_err(), "{bad}");
        }
        assert_eq!(layer_name("arn:aws:lambda:us-east-1:123456789012:layer:l:3"), ("l".to_owned(), Some(3)));
        assert_eq!(layer_name("l"), ("l".to_owned(), None));
    }

    proptest! {
        #[test]
        fn any_name_is_read_or_refused(text in "\\PC{0,40}") {
            function_name(&text).ok();
            layer_name(&text);
        }

        #[test]
        fn an_arn_reads_back(name in "[a-zA-Z0-9_-]{1,64}", version in 1_u32..1_000) {
            let read = function_name(&function("us-east-1", &name, Some(&version.to_string()))).expect("legal");
            prop_assert_eq!(read.name, name);
            prop_assert_eq!(read.qualifier, Some(version.to_string()));
        }
    }
}
