//! Experiments are read by strangers: each says what it asks, and no published figure stands there without its source.

use super::{Finding, Text};

pub fn check(text: &Text) -> Vec<Finding> {
    let Some(stem) = text.path.strip_prefix("experiments/").and_then(|name| name.strip_suffix(".toml"))
    else {
        return Vec::new();
    };
    let finding = |what: String| Finding::new(&text.path, 0, what);
    let table: toml::Table = match text.content.parse() {
        Ok(table) => table,
        Err(error) => return vec![finding(format!("is not TOML: {error}"))],
    };
    let mut findings = Vec::new();
    if string(&table, "name") != stem {
        findings.push(finding(format!("name should be {stem:?}, as the file is called")));
    }
    if string(&table, "description").is_empty() {
        findings.push(finding("needs a description: the question it answers".into()));
    }
    let expectations = table.get("expect").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    for expectation in expectations.iter().filter_map(toml::Value::as_table) {
        let name = string(expectation, "name");
        if string(expectation, "source").is_empty() {
            findings.push(finding(format!("expect {name:?} needs the source of its figure")));
        }
        // A wide bound is a statement about the difference between the two machines: it has to be made.
        let factor = expectation.get("within").and_then(toml::Value::as_float).unwrap_or(1.0);
        if factor >= 2.0 && string(expectation, "reason").is_empty() {
            findings.push(finding(format!("expect {name:?} allows a factor of {factor}: say the reason")));
        }
    }
    findings
}

fn string<'a>(table: &'a toml::Table, key: &str) -> &'a str {
    table.get(key).and_then(toml::Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(content: &str) -> Vec<String> {
        let text = Text { path: "experiments/idle.toml".into(), content: content.into() };
        check(&text).into_iter().map(|finding| finding.what).collect()
    }

    const HEAD: &str = "name = \"idle\"\ndescription = \"when?\"\n";

    #[test]
    fn complete_files_pass() {
        let expect = "[[expect]]\nname = \"a\"\nsource = \"S1\"\nwithin = 2.0\nreason = \"other CPU\"\n";
        assert!(check_text(&format!("{HEAD}{expect}")).is_empty());
    }

    #[test]
    fn gaps_are_found() {
        let cases = [
            ("name = ".to_owned(), "not TOML"),
            ("name = \"other\"\ndescription = \"d\"".to_owned(), "name should be"),
            ("name = \"idle\"".to_owned(), "description"),
            (format!("{HEAD}[[expect]]\nname = \"a\""), "source"),
            (format!("{HEAD}[[expect]]\nname = \"a\"\nsource = \"S1\"\nwithin = 2.0"), "reason"),
        ];
        for (content, what) in cases {
            let findings = check_text(&content);
            assert_eq!(findings.len(), 1, "{content}: {findings:?}");
            assert!(findings[0].contains(what), "{content}: {findings:?}");
        }
    }

    #[test]
    fn other_files_are_left_alone() {
        let text = Text { path: "crates/lab/tests/bad.toml".into(), content: "name = ".into() };
        assert!(check(&text).is_empty());
    }
}
