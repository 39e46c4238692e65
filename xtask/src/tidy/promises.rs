//! docs/promises.md: each row of its tables names, in code words, what holds the promise; those things must exist.
//! `crate::a_test` is a test function, `make target` a target of the Makefile, `path/with/slashes` a file or folder.

use super::{Finding, Text};

const PAGE: &str = "docs/promises.md";

pub fn check(texts: &[Text]) -> Vec<Finding> {
    let Some(page) = texts.iter().find(|text| text.path == PAGE) else {
        return vec![Finding::new(PAGE, 0, "missing: it lists what is promised and what holds it")];
    };
    let mut findings = Vec::new();
    for (index, line) in page.content.lines().enumerate() {
        let Some(held_by) = held_by(line) else { continue };
        let keepers = code_words(held_by);
        if !keepers.iter().any(|keeper| names_a_keeper(keeper)) {
            findings.push(Finding::new(
                PAGE,
                index + 1,
                "the promise names no test, make target or file that holds it",
            ));
        }
        for keeper in keepers.iter().filter(|keeper| !exists(keeper, texts)) {
            findings.push(Finding::new(PAGE, index + 1, format!("`{keeper}` does not exist")));
        }
    }
    findings
}

/// The second cell of a table row; none for prose, headings and rules.
fn held_by(line: &str) -> Option<&str> {
    let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
    let (promise, held_by) = (cells.first()?, cells.get(1)?);
    let is_head = promise.starts_with("---") || *held_by == "held by";
    (!is_head).then_some(*held_by)
}

fn code_words(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn names_a_keeper(word: &str) -> bool {
    word.contains("::") || word.starts_with("make ") || word.contains('/')
}

fn exists(word: &str, texts: &[Text]) -> bool {
    if let Some(target) = word.strip_prefix("make ") {
        let makefile = texts.iter().find(|text| text.path == "Makefile");
        return makefile
            .is_some_and(|text| text.content.lines().any(|line| line.starts_with(&format!("{target}:"))));
    }
    if let Some((krate, test)) = word.split_once("::") {
        let name = format!("fn {}(", test.rsplit("::").next().unwrap_or(test));
        let folders = [format!("crates/{krate}/"), format!("{krate}/")];
        let inside = |text: &&Text| folders.iter().any(|folder| text.path.starts_with(folder.as_str()));
        return texts.iter().filter(inside).any(|text| text.content.contains(&name));
    }
    if word.contains('/') && !word.contains(' ') {
        return texts.iter().any(|text| {
            text.path == word || text.path.starts_with(&format!("{}/", word.trim_end_matches('/')))
        });
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_row(row: &str) -> Vec<String> {
        let page = format!("| promise | held by | figure |\n|---|---|---|\n{row}\n");
        let text = |path: &str, content: &str| Text { path: path.into(), content: content.into() };
        let texts = [
            text(PAGE, &page),
            text("Makefile", "bench: build\n\techo\n"),
            text("crates/link/tests/rtt.rs", "#[test]\nfn nothing_is_reordered() {}"),
            text("experiments/idle.toml", ""),
        ];
        check(&texts).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn kept_promises_pass() {
        let none: [String; 0] = [];
        assert_eq!(check_row("| order | `link::nothing_is_reordered` | – |"), none);
        assert_eq!(check_row("| speed | `make bench` | 2 Gbit/s |"), none);
        assert_eq!(check_row("| idle | `experiments/idle.toml` through `danki bench` | – |"), none);
    }

    #[test]
    fn empty_promises_are_found() {
        for (row, what) in [
            ("| order | by care | – |", "names no test"),
            ("| order | `link::never_written` | – |", "does not exist"),
            ("| order | `region::nothing_is_reordered` | – |", "does not exist"),
            ("| speed | `make race` | – |", "does not exist"),
            ("| idle | `experiments/gone.toml` | – |", "does not exist"),
        ] {
            let findings = check_row(row);
            assert_eq!(findings.len(), 1, "{row}: {findings:?}");
            assert!(findings[0].contains(what), "{row}: {findings:?}");
        }
    }
}
