//! The layer table of ARCHITECTURE.md against the crates' manifests. The page is the source: moving a crate means editing it.

use super::{Finding, Text};
use std::collections::{BTreeMap, BTreeSet};

const MAP: &str = "ARCHITECTURE.md";
/// Tests of any crate may start a whole lab.
const FOR_TESTS_OF_ALL: &str = "testkit";

/// What the page says.
#[derive(Debug, Default)]
struct Map {
    /// Crate → layer.
    layers: BTreeMap<String, u32>,
    /// Edges within a layer that the page grants: "`a` uses `b`, `c`".
    granted: BTreeSet<(String, String)>,
}

pub fn check(texts: &[Text]) -> Vec<Finding> {
    let Some(page) = texts.iter().find(|text| text.path == MAP) else {
        return vec![Finding::new(MAP, 0, "missing: it holds the layer table")];
    };
    let map = parse_map(&page.content);
    let mut findings = Vec::new();
    let mut found = BTreeSet::new();
    for text in texts {
        if let Some(folder) = crate_folder(&text.path) {
            found.insert(folder.to_owned());
            findings.extend(check_manifest(&map, folder, text));
        }
    }
    for name in map.layers.keys().filter(|name| !found.contains(*name)) {
        findings.push(Finding::new(MAP, 0, format!("names `{name}`, but there is no crates/{name}")));
    }
    findings
}

fn crate_folder(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml").filter(|folder| !folder.contains('/'))
}

fn parse_map(page: &str) -> Map {
    let mut map = Map::default();
    for line in page.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if let [layer, name, ..] = cells[..]
            && let Ok(layer) = layer.parse()
        {
            map.layers.insert(name.trim_matches('`').to_owned(), layer);
        }
    }
    let prose: String = page.lines().filter(|line| !line.starts_with('|')).collect::<Vec<_>>().join(" ");
    for (at, _) in prose.match_indices("` uses `") {
        let user = prose[..at].rsplit('`').next().unwrap_or_default();
        for used in listed_names(&prose[at + "` uses ".len()..]) {
            map.granted.insert((user.to_owned(), used.to_owned()));
        }
    }
    map
}

/// The names of "`a`, `b` and so on": a run of code words separated by commas.
fn listed_names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.strip_prefix('`').and_then(|open| open.split_once('`')) {
        names.push(name);
        match after.strip_prefix(", ") {
            Some(next) => rest = next,
            None => break,
        }
    }
    names
}

fn check_manifest(map: &Map, folder: &str, text: &Text) -> Vec<Finding> {
    let finding = |what: String| Finding::new(&text.path, 0, what);
    let manifest: toml::Table = match text.content.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![finding(format!("is not TOML: {error}"))],
    };
    let Some(&layer) = map.layers.get(folder) else {
        return vec![finding(format!("crate `{folder}` is not in the layer table of {MAP}"))];
    };
    let mut findings = Vec::new();
    let name = manifest.get("package").and_then(|package| package.get("name")).and_then(toml::Value::as_str);
    if name != Some(&format!("danki-{folder}")) {
        findings.push(finding(format!("package name should be danki-{folder}")));
    }
    for (used, for_tests) in own_dependencies(&manifest) {
        let granted = map.granted.contains(&(folder.to_owned(), used.clone()));
        let allowed = match map.layers.get(&used) {
            None => false,
            Some(&lower) if lower < layer => true,
            Some(_) => granted || (for_tests && used == FOR_TESTS_OF_ALL),
        };
        if !allowed {
            findings.push(finding(format!(
                "`{folder}` (layer {layer}) may not depend on `{used}`: only lower layers, or what {MAP} grants"
            )));
        }
    }
    findings
}

/// Names (without prefix) of the crates of this workspace that a manifest depends on, and whether for tests only.
fn own_dependencies(manifest: &toml::Table) -> Vec<(String, bool)> {
    let mut own = Vec::new();
    let mut collect = |table: &toml::Table| {
        for (section, for_tests) in
            [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
        {
            for (key, value) in table.get(section).and_then(toml::Value::as_table).into_iter().flatten() {
                let package = value.get("package").and_then(toml::Value::as_str).unwrap_or(key);
                if let Some(name) = package.strip_prefix("danki-") {
                    own.push((name.to_owned(), for_tests));
                }
            }
        }
    };
    collect(manifest);
    for (_, target) in manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten() {
        target.as_table().into_iter().for_each(&mut collect);
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "| layer | crate | idea |\n|---|---|---|\n| 0 | `model` | a |\n| 0 | `record` | b |\n| 1 | `sys` | c |\n\
        | 2 | `host` | d |\n| 5 | `testkit` | e |\n\nSome: `record` uses `model`; `host` uses `sys`, `link`.\n";

    fn check_with(manifests: &[(&str, &str)]) -> Vec<String> {
        let mut texts = vec![Text { path: MAP.into(), content: PAGE.into() }];
        for folder in ["model", "record", "sys", "host", "testkit"] {
            let extra = manifests.iter().find(|(name, _)| *name == folder).map_or("", |(_, extra)| extra);
            let content = format!("[package]\nname = \"danki-{folder}\"\n{extra}");
            texts.push(Text { path: format!("crates/{folder}/Cargo.toml"), content });
        }
        check(&texts).into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn downward_granted_and_test_edges_pass() {
        let none: [String; 0] = [];
        assert_eq!(
            check_with(&[("host", "[dependencies]\ndanki-sys.workspace = true\nserde = \"1\"")]),
            none
        );
        assert_eq!(check_with(&[("record", "[dependencies]\ndanki-model.workspace = true")]), none);
        assert_eq!(check_with(&[("model", "[dev-dependencies]\ndanki-testkit.workspace = true")]), none);
    }

    #[test]
    fn other_edges_are_found() {
        let cases = [
            ("sys", "[dependencies]\ndanki-host.workspace = true"),
            ("model", "[dependencies]\ndanki-record.workspace = true"),
            ("host", "[dependencies]\ndanki-testkit.workspace = true"),
            ("host", "[dependencies]\ndanki-unknown.workspace = true"),
            ("sys", "[build-dependencies]\ndanki-host.workspace = true"),
            ("sys", "[target.'cfg(unix)'.dependencies]\ndanki-host.workspace = true"),
            ("sys", "[dependencies]\nrenamed = { package = \"danki-host\", path = \"../host\" }"),
            ("sys", "[dev-dependencies]\ndanki-host.workspace = true"),
        ];
        for (folder, extra) in cases {
            let findings = check_with(&[(folder, extra)]);
            assert_eq!(findings.len(), 1, "{folder}: {extra}: {findings:?}");
            assert!(findings[0].contains("may not depend on"), "{findings:?}");
        }
    }

    #[test]
    fn map_and_folders_must_agree() {
        let page = Text { path: MAP.into(), content: "| 0 | `gone` | x |".into() };
        let stray = Text {
            path: "crates/stray/Cargo.toml".into(),
            content: "[package]\nname = \"danki-stray\"".into(),
        };
        let findings = check(&[page, stray]);
        assert!(findings.iter().any(|f| f.what.contains("no crates/gone")), "{findings:?}");
        assert!(
            findings.iter().any(|f| f.what.contains("`stray` is not in the layer table")),
            "{findings:?}"
        );
    }

    #[test]
    fn package_name_follows_the_folder() {
        let page = Text { path: MAP.into(), content: "| 0 | `model` | x |".into() };
        let wrong =
            Text { path: "crates/model/Cargo.toml".into(), content: "[package]\nname = \"model\"".into() };
        assert_eq!(check(&[page, wrong]).len(), 1);
    }

    #[test]
    fn grants_are_read_from_prose() {
        let map = parse_map(PAGE);
        let granted: Vec<_> = map.granted.iter().map(|(a, b)| format!("{a}->{b}")).collect();
        assert_eq!(granted, ["host->link", "host->sys", "record->model"]);
    }
}
