//! The XML of IAM, STS and S3.

use crate::request::Reply;

/// Text between tags.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// `<name>escaped text</name>`.
pub fn tag(name: &str, text: &str) -> String {
    format!("<{name}>{}</{name}>", escape(text))
}

/// The answer of an operation of the query protocol. `result` is XML.
pub fn query(namespace: &str, action: &str, result: &str, id: &str) -> Reply {
    let body = format!(
        "<{action}Response xmlns=\"{namespace}\"><{action}Result>{result}</{action}Result>\
         <ResponseMetadata><RequestId>{id}</RequestId></ResponseMetadata></{action}Response>"
    );
    Reply::xml(200, body)
}

pub fn query_error(status: u16, code: &str, message: &str, id: &str) -> Reply {
    let error = format!("<Type>Sender</Type>{}{}", tag("Code", code), tag("Message", message));
    Reply::xml(
        status,
        format!("<ErrorResponse><Error>{error}</Error><RequestId>{id}</RequestId></ErrorResponse>"),
    )
}

pub fn s3_error(status: u16, code: &str, message: &str, id: &str) -> Reply {
    let error = format!("{}{}{}", tag("Code", code), tag("Message", message), tag("RequestId", id));
    Reply { content_type: "application/xml", ..Reply::xml(status, format!("<Error>{error}</Error>")) }
}
