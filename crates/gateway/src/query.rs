//! Query strings.

use percent_encoding::percent_decode_str;

/// Names and values in order, decoded; `+` is a space, as in forms.
pub fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    query.split('&').filter(|part| !part.is_empty()).map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
    })
}

/// Percent escapes resolved; what is no escape or no UTF-8 stays readable.
pub fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
