//! `web/src/schema.ts` from the Rust types that the page is given: one definition, the rest derived.
//!
//! Reads plain structs and enums with derived serde, as `record` and the page's data are written; anything it does not know is an
//! error that names the line, never a guess.

use std::fmt::Write as _;

/// Rust files whose types the page reads, in order.
pub const SOURCES: [&str; 6] = [
    "crates/record/src/manifest.rs",
    "crates/record/src/finding.rs",
    "crates/record/src/summary.rs",
    "crates/explain/src/edges.rs",
    "crates/runview/src/page/data.rs",
    "crates/dashboard/src/view.rs",
];
/// Where the generated file lies.
pub const TARGET: &str = "web/src/schema.ts";

const HEAD: &str =
    "// Generated from the Rust types by `cargo xtask schema`; do not edit. `cargo xtask tidy` compares.\n";

/// The whole file, from `(path, content)`.
pub fn typescript(sources: &[(&str, &str)]) -> Result<String, String> {
    let mut out = HEAD.to_owned();
    for (path, content) in sources {
        one(content, &mut out).map_err(|what| format!("{path}: {what}"))?;
    }
    Ok(out)
}

fn one(content: &str, out: &mut String) -> Result<(), String> {
    let code = content.split("#[cfg(test)]").next().unwrap_or_default();
    let (mut tag, mut doc): (Option<String>, Vec<String>) = (None, Vec::new());
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        if let Some(text) = line.strip_prefix("/// ") {
            doc.push(text.to_owned());
        } else if line.starts_with("#[serde(") {
            tag = attribute(line, "tag");
        } else if let Some(alias) = line.strip_prefix("pub type ") {
            let (name, of) = alias.trim_end_matches(';').split_once(" = ").ok_or("an alias without =")?;
            write_type(out, &doc, &format!("export type {name} = {};", map(of)?));
            (tag, doc) = (None, Vec::new());
        } else if let Some(name) = opened(line, "pub struct ") {
            let fields = fields(&mut lines, "    ")?;
            write_type(out, &doc, &format!("export interface {name} {{\n{fields}}}"));
            (tag, doc) = (None, Vec::new());
        } else if let Some(name) = opened(line, "pub enum ") {
            let all = cases(&mut lines, tag.as_deref())?;
            write_type(out, &doc, &format!("export type {name} = {};", all.join(" | ")));
            (tag, doc) = (None, Vec::new());
        } else if line.is_empty() || line == "}" {
            (tag, doc) = (None, Vec::new());
        }
    }
    Ok(())
}

fn write_type(out: &mut String, doc: &[String], body: &str) {
    write!(out, "\n/** {} */\n{body}\n", doc.join(" ")).expect("a String takes all");
}

fn opened<'a>(line: &'a str, what: &str) -> Option<&'a str> {
    line.strip_prefix(what)?.strip_suffix(" {")
}

fn attribute(line: &str, name: &str) -> Option<String> {
    let rest = line.split(&format!("{name} = \"")).nth(1)?;
    rest.split('"').next().map(str::to_owned)
}

fn fields<'a>(lines: &mut impl Iterator<Item = &'a str>, indent: &str) -> Result<String, String> {
    let mut fields = String::new();
    let end = format!("{}}}", &indent[4..]);
    for line in lines {
        if line.trim_end_matches(',') == end {
            return Ok(fields);
        }
        let field = line.trim();
        if field.starts_with("///") || field.starts_with("#[serde(default)]") || field.is_empty() {
            continue;
        }
        let field = field.strip_prefix("pub ").unwrap_or(field).trim_end_matches(',');
        let (name, of) = field.split_once(": ").ok_or_else(|| format!("cannot read field {line:?}"))?;
        writeln!(fields, "  {name}: {};", map(of)?).expect("a String takes all");
    }
    Err("a struct that does not end".to_owned())
}

fn cases<'a>(lines: &mut impl Iterator<Item = &'a str>, tag: Option<&str>) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    while let Some(line) = lines.next() {
        let case = line.trim();
        if line == "}" {
            return Ok(all);
        }
        if case.starts_with("///") || case.starts_with("#[") {
            continue;
        }
        match (case.strip_suffix(" {"), tag) {
            (Some(name), Some(tag)) => {
                let inside = fields(lines, "        ")?.replace('\n', " ");
                all.push(format!("{{ {tag}: \"{}\"; {}}}", snake(name), inside.trim_start()));
            }
            (None, None) => all.push(format!("\"{}\"", snake(case.trim_end_matches(',')))),
            (None, Some(tag)) => all.push(format!("{{ {tag}: \"{}\"; }}", snake(case.trim_end_matches(',')))),
            _ => return Err(format!("cannot read case {line:?}")),
        }
    }
    Err("an enum that does not end".to_owned())
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (at, c) in name.char_indices() {
        if c.is_ascii_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

fn map(of: &str) -> Result<String, String> {
    let inside = |open: &str| of.strip_prefix(open).and_then(|rest| rest.strip_suffix('>'));
    if let Some(inner) = inside("Option<") {
        return Ok(format!("{} | null", map(inner)?));
    }
    if let Some(inner) = inside("Vec<") {
        return Ok(format!("{}[]", map(inner)?));
    }
    if let Some(inner) = inside("BTreeMap<String, ") {
        return Ok(format!("Record<string, {}>", map(inner)?));
    }
    if of == "[f64; 2]" {
        return Ok("[number, number]".to_owned());
    }
    let last = of.rsplit("::").next().unwrap_or(of);
    Ok(match last {
        "String" | "RequestId" => "string".to_owned(),
        "bool" => "boolean".to_owned(),
        "u8" | "u16" | "u32" | "u64" | "i64" | "f64" | "EnvId" | "ConnId" => "number".to_owned(),
        "Value" => "unknown".to_owned(),
        name if name.chars().all(|c| c.is_ascii_alphanumeric()) => name.to_owned(),
        _ => return Err(format!("no TypeScript for {of}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_enums_and_aliases() {
        let rust = "/// A thing.\n#[derive(Debug)]\npub struct Thing {\n    /// Doc.\n    pub some: Option<Vec<u32>>,\n    \
                    #[serde(default)]\n    pub of: BTreeMap<String, Other>,\n    pub pair: Option<[f64; 2]>,\n}\n\n/// One \
                    of.\npub enum Kind {\n    /// A.\n    #[default]\n    FirstOne,\n    /// B.\n    Two,\n}\n\n/// \
                    Tagged.\n#[serde(tag = \"apply\", rename_all = \"snake_case\")]\npub enum Change {\n    /// M.\n    Memory \
                    {\n        /// MB.\n        mb: u32,\n    },\n    /// K.\n    KeepAlive,\n}\n\n/// Numbers.\npub type Columns = Vec<i64>;\n";
        let told = typescript(&[("x.rs", rust)]).expect("known types");
        for expect in [
            "export interface Thing {\n  some: number[] | null;\n  of: Record<string, Other>;\n  pair: [number, number] | null;\n}",
            "export type Kind = \"first_one\" | \"two\";",
            "export type Change = { apply: \"memory\"; mb: number; } | { apply: \"keep_alive\"; };",
            "export type Columns = number[];",
        ] {
            assert!(told.contains(expect), "{expect}\n{told}");
        }
        let odd = typescript(&[("x.rs", "pub struct A {\n    pub a: HashMap<u8, u8>,\n}\n")]);
        assert!(odd.expect_err("unknown").starts_with("x.rs: no TypeScript"));
    }
}
