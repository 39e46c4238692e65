//! Sample functions install exactly what their lockfiles say.

use super::{Finding, Text};

pub fn check(texts: &[Text]) -> Vec<Finding> {
    let exists = |path: &str| texts.iter().any(|text| text.path == path);
    let mut findings = Vec::new();
    for text in texts.iter().filter(|text| text.path.starts_with("functions/")) {
        if let Some(folder) = text.path.strip_suffix("/package.json")
            && !exists(&format!("{folder}/package-lock.json"))
        {
            findings.push(Finding::new(&text.path, 0, "needs a package-lock.json beside it"));
        }
        if text.path.ends_with("/requirements.txt") {
            findings.extend(unpinned(text));
        }
    }
    findings
}

fn unpinned(text: &Text) -> Vec<Finding> {
    let joined = text.content.replace("\\\n", " ");
    let wanted = joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    wanted
        .filter(|line| !line.contains("==") || !line.contains("--hash=sha256:"))
        .map(|line| Finding::new(&text.path, 0, format!("{line:?} needs an exact version and a sha256 hash")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str, content: &str) -> Text {
        Text { path: path.into(), content: content.into() }
    }

    #[test]
    fn node_needs_a_lockfile() {
        let package = || text("functions/a/package.json", "{}");
        assert_eq!(check(&[package()]).len(), 1);
        assert!(check(&[package(), text("functions/a/package-lock.json", "{}")]).is_empty());
    }

    #[test]
    fn python_needs_hashes() {
        let requirements = |content: &str| check(&[text("functions/a/requirements.txt", content)]).len();
        assert_eq!(requirements("# why\nboto3==1.2 \\\n    --hash=sha256:ab\n"), 0);
        assert_eq!(requirements("boto3==1.2\n"), 1);
        assert_eq!(requirements("boto3>=1.2 --hash=sha256:ab\n"), 1);
    }
}
