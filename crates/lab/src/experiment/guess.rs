//! What a directory of code is: runtime and handler, from the files that are there.

use crate::BadInput;
use danki_model::Runtime;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Interpreters of this machine; a guessed runtime takes their version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Major version of Node.
    pub node: Option<u8>,
    /// Minor version of Python 3.
    pub python: Option<u8>,
    /// Minor version of PHP 8.
    pub php: Option<u8>,
}

impl Versions {
    /// Node of the guessed runtime when the machine has none: then deploying it says what is missing.
    const NODE: u8 = 20;
    /// The same for Python.
    const PYTHON: u8 = 11;
    /// The same for PHP.
    const PHP: u8 = 2;

    fn node(self) -> Runtime {
        Runtime::NodeJs(self.node.unwrap_or(Self::NODE))
    }

    fn python(self) -> Runtime {
        Runtime::Python(self.python.unwrap_or(Self::PYTHON))
    }

    fn php(self) -> Runtime {
        Runtime::Php(self.php.unwrap_or(Self::PHP))
    }
}

/// Who runs a directory's code, and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guess {
    /// The runtime.
    pub runtime: Runtime,
    /// The handler.
    pub handler: String,
}

const NODE_FILES: [&str; 3] = ["index", "app", "handler"];
const NODE_ENDINGS: [&str; 3] = ["mjs", "cjs", "js"];
/// Bref's examples begin here.
const PHP_FILE: &str = "index.php";
const PYTHON_FILES: [&str; 5] = ["lambda_function", "app", "index", "main", "handler"];

impl Guess {
    /// Looks into `dir`. A handler that is known already says which file to look for.
    pub fn of(dir: &Path, handler: Option<&str>, versions: Versions) -> Result<Guess, BadInput> {
        let Some(handler) = handler else { return Guess::all(dir, versions) };
        let file = handler.rsplit_once('.').map_or(handler, |(file, _)| file);
        let runtime = if dir.join("bootstrap").is_file() {
            Runtime::Provided
        } else if dir.join(format!("{}.py", file.replace('.', "/"))).is_file() {
            versions.python()
        } else if NODE_ENDINGS.iter().any(|ending| dir.join(format!("{file}.{ending}")).is_file()) {
            versions.node()
        } else if handler.ends_with(".php") && dir.join(handler).is_file() {
            versions.php()
        } else {
            return Err(BadInput::new(format!("handler {handler:?} names no file here"))
                .at(dir.display())
                .hint(format!(
                    "looked for {file}.py, {file}.mjs, {file}.cjs, {file}.js, {file}.php and bootstrap"
                )));
        };
        Ok(Guess { runtime, handler: handler.to_owned() })
    }

    fn all(dir: &Path, versions: Versions) -> Result<Guess, BadInput> {
        if dir.join("bootstrap").is_file() {
            return Ok(Guess { runtime: Runtime::Provided, handler: "bootstrap".to_owned() });
        }
        if let Some(stem) = node_main(dir).or_else(|| node_file(dir)) {
            return Ok(Guess { runtime: versions.node(), handler: format!("{stem}.handler") });
        }
        if let Some(stem) = PYTHON_FILES.iter().find(|stem| dir.join(format!("{stem}.py")).is_file()) {
            let handler = format!("{stem}.{}", python_function(&dir.join(format!("{stem}.py"))));
            return Ok(Guess { runtime: versions.python(), handler });
        }
        if dir.join(PHP_FILE).is_file() {
            return Ok(Guess { runtime: versions.php(), handler: PHP_FILE.to_owned() });
        }
        Err(BadInput::new("no function found here").at(dir.display()).hint(
            "expected bootstrap, package.json with main, index.mjs, index.js, lambda_function.py, app.py or index.php; \
             or name the handler",
        ))
    }
}

/// `main` of package.json, without its ending.
fn node_main(dir: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Package {
        main: Option<String>,
    }
    let text = fs::read_to_string(dir.join("package.json")).ok()?;
    let main = serde_json::from_str::<Package>(&text).ok()?.main?;
    let main = main.trim_start_matches("./");
    let stem = NODE_ENDINGS.iter().find_map(|ending| main.strip_suffix(&format!(".{ending}")))?;
    dir.join(main).is_file().then(|| stem.to_owned())
}

fn node_file(dir: &Path) -> Option<String> {
    let exists =
        |stem: &&&str| NODE_ENDINGS.iter().any(|ending| dir.join(format!("{stem}.{ending}")).is_file());
    NODE_FILES.iter().find(exists).map(|stem| (*stem).to_owned())
}

/// The name that the file gives its handler.
fn python_function(file: &Path) -> &'static str {
    let text = fs::read_to_string(file).unwrap_or_default();
    let defines = |name: &str| text.lines().any(|line| line.starts_with(&format!("def {name}(")));
    if !defines("lambda_handler") && defines("handler") { "handler" } else { "lambda_handler" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_recognised() {
        let versions = Versions { node: Some(22), python: None, php: Some(3) };
        let check = |files: &[(&str, &str)], handler: Option<&str>, expect: Option<(&str, &str)>| {
            let dir = tempfile::tempdir().expect("a directory");
            for (name, text) in files {
                let path = dir.path().join(name);
                fs::create_dir_all(path.parent().expect("has one")).expect("made");
                fs::write(path, text).expect("written");
            }
            let got =
                Guess::of(dir.path(), handler, versions).ok().map(|g| (g.runtime.to_string(), g.handler));
            assert_eq!(got, expect.map(|(r, h)| (r.to_owned(), h.to_owned())), "{files:?} {handler:?}");
        };
        check(&[("bootstrap", "")], None, Some(("provided.al2023", "bootstrap")));
        check(&[("index.mjs", "")], None, Some(("nodejs22.x", "index.handler")));
        check(&[("index.php", "")], None, Some(("php-83", "index.php")));
        check(&[("web/app.php", "")], Some("web/app.php"), Some(("php-83", "web/app.php")));
        let package = ("package.json", r#"{"main": "./dist/main.js"}"#);
        check(
            &[package, ("dist/main.js", ""), ("index.js", "")],
            None,
            Some(("nodejs22.x", "dist/main.handler")),
        );
        check(&[package, ("index.js", "")], None, Some(("nodejs22.x", "index.handler")));
        check(&[("package.json", "not json"), ("index.js", "")], None, Some(("nodejs22.x", "index.handler")));
        check(&[("app.py", "def handler(e, c):")], None, Some(("python3.11", "app.handler")));
        check(&[("lambda_function.py", "")], None, Some(("python3.11", "lambda_function.lambda_handler")));
        check(&[("reused.py", ""), ("x.py", "")], Some("reused.go"), Some(("python3.11", "reused.go")));
        check(&[("README.md", "")], None, None);
        check(&[("a.py", "")], Some("b.handler"), None);
    }
}
