//! JSON as Go's `encoding/json` writes it: what AWS's extension sends, byte for byte. It differs from serde's in the characters that
//! it escapes, which any parser undoes; who compares bodies as text sees no difference either.

/// Appends `text` as a JSON string. Go escapes what HTML could misread (`<`, `>`, `&`) and JavaScript's two line separators.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\0'..='\x1f' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
            }
            _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

/// Appends `"name":`, with a comma unless it is the first of its object.
pub fn push_name(out: &mut Vec<u8>, name: &str) {
    if !matches!(out.last(), Some(b'{')) {
        out.push(b',');
    }
    push_string(out, name);
    out.push(b':');
}

/// Appends a member whose value is a string or null.
pub fn push_member(out: &mut Vec<u8>, name: &str, value: Option<&str>) {
    push_name(out, name);
    match value {
        Some(text) => push_string(out, text),
        None => out.extend_from_slice(b"null"),
    }
}

/// Appends an array of strings; null if there is none, as for a nil slice.
pub fn push_strings(out: &mut Vec<u8>, name: &str, values: Option<&[String]>) {
    push_name(out, name);
    let Some(values) = values else {
        out.extend_from_slice(b"null");
        return;
    };
    out.push(b'[');
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_string(out, value);
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strings_are_escaped_as_in_go() {
        let check = |text: &str, expect: &str| {
            let mut out = Vec::new();
            push_string(&mut out, text);
            assert_eq!(String::from_utf8(out).expect("UTF-8"), expect);
        };
        check("a\"b\\c", r#""a\"b\\c""#);
        check("<a href=\"x\">&\n\r\t\u{8}", r#""\u003ca href=\"x\"\u003e\u0026\n\r\t\u0008""#);
        check("\u{2028}暖気🔥", "\"\\u2028暖気🔥\"");
    }

    proptest! {
        #[test]
        fn any_string_comes_back(text in any::<String>()) {
            let mut out = Vec::new();
            push_string(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).expect("JSON"), text);
        }
    }
}
