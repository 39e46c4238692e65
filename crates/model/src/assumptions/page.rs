//! The assumptions as a page of Markdown.

use super::{ALL, Assumption, Part};
use std::fmt::Write;

const HEAD: &str = "\
<!-- Printed by `danki validate --assumptions`; a test holds it against crates/model/src/assumptions.rs. Do not edit. -->
# How far to believe it

Each mechanism that shapes a result, with its source and status: *measured on AWS* (by the source), *documented* (by AWS) or *assumed*.
`danki validate` measures those of the first table on your machine and prints the deviation from AWS; what it said on ours is in
`promises.md`.
";

const FOOT: &str = "
## Sources
S0, S1 and S3 are field reports published by engineers in 2020 and 2024; T1, T2, T3 and T17 are published measurements:

| name | who, when |
|---|---|
| S0 | Qiita, March 2024: provisioned concurrency and connections, Node.js 20 |
| S1 | DevelopersIO, April 2020: HTTP keep-alive from Node.js |
| S3 | DevelopersIO, March 2020: one boto3 client or one per call |
| T1 | github.com/pwrdrvr/lambda-throttling, run of 2025-03-01, commit e5ec41e |
| T2, T3 | github.com/cebert/aws-lambda-performance-benchmarks, December 2025, commit c8c9c66 |
| T17 | github.com/rwnx/lambda-cpuinfo and others |
";

/// What `docs/validity.md` says.
pub fn validity() -> String {
    let mut page = HEAD.to_owned();
    let parts = [
        (Part::Cpu, "CPU"),
        (Part::Environment, "Execution environment"),
        (Part::Network, "Network and region"),
    ];
    for (part, title) in parts {
        table(&mut page, title, ALL.iter().filter(|row| row.part == part));
    }
    page + FOOT
}

fn table<'a>(page: &mut String, title: &str, rows: impl Iterator<Item = &'a Assumption>) {
    let line = "\n| mechanism | danki's default | status | source | what to know |\n|---|---|---|---|---|\n";
    write!(page, "\n## {title}{line}").expect("writing to a string does not fail");
    for Assumption { mechanism, value, status, source, note, .. } in rows {
        writeln!(page, "| {mechanism} | {value} | {status} | {source} | {note} |")
            .expect("writing to a string does not fail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_docs_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/validity.md");
        let there = std::fs::read_to_string(path).unwrap();
        assert!(
            there == validity(),
            "docs/validity.md is not what the code says\nhint: danki validate --assumptions > docs/validity.md"
        );
    }

    #[test]
    fn every_assumption_is_on_the_page() {
        let page = validity();
        assert!(
            ALL.iter()
                .all(|row| page.contains(&format!("| {} | {} | {} |", row.mechanism, row.value, row.status)))
        );
        assert!(
            page.lines().all(|line| !line.starts_with('|') || matches!(line.matches('|').count(), 3 | 6))
        );
    }
}
