//! Where a language's interpreter really is.
//!
//! `python3` on a developer's `PATH` is often a shim below a closed home directory, and a shim cannot run as the function's
//! user. So the interpreter is asked itself, as the caller's user, for its real place; that place is mounted at `/var/lang`.

use crate::Error;
use danki_model::Runtime;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An interpreter as the env will see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The real executable on the host.
    pub executable: PathBuf,
    /// Directory to mount at `/var/lang`; absent when the interpreter belongs to the system (`/usr` is mounted anyway).
    pub prefix: Option<PathBuf>,
    /// Version as it reports it, e.g. `20.20.2`.
    pub version: String,
    /// Path inside the env.
    pub inside: PathBuf,
}

const PYTHON_QUESTION: &str = "import sys; print(sys.base_prefix); print(sys.version.split()[0]); print('python%d.%d' % sys.version_info[:2])";
const NODE_QUESTION: &str = "console.log(process.execPath); console.log(process.versions.node)";

const PHP_QUESTION: &str = "echo PHP_BINARY, \"\\n\", PHP_VERSION, \"\\n\";";

/// Finds the interpreter of a runtime; `None` for runtimes that bring their own.
pub fn find(runtime: Runtime, search_path: &[PathBuf]) -> Result<Option<Interpreter>, Error> {
    match runtime {
        Runtime::Provided => Ok(None),
        Runtime::NodeJs(_) => first(&["node".to_owned()], search_path, "node", ask_node).map(Some),
        Runtime::Php(minor) => {
            let names = [format!("php8.{minor}"), "php".to_owned()];
            first(&names, search_path, "php", ask_php).map(Some)
        }
        Runtime::Python(minor) => {
            let names = [format!("python3.{minor}"), "python3".to_owned()];
            first(&names, search_path, "python3", ask_python).map(Some)
        }
    }
}

/// A sentence if the interpreter's version is not the one that the runtime names.
pub fn version_caveat(runtime: Runtime, found: &Interpreter) -> Option<String> {
    let asked = match runtime {
        Runtime::NodeJs(major) => format!("{major}."),
        Runtime::Python(minor) => format!("3.{minor}."),
        Runtime::Php(minor) => format!("8.{minor}."),
        Runtime::Provided => return None,
    };
    (!found.version.starts_with(&asked)).then(|| {
        format!("runtime {runtime} runs on this machine's {} ({})", found.version, found.executable.display())
    })
}

fn first(
    names: &[String],
    search_path: &[PathBuf],
    what: &str,
    ask: fn(&Path) -> Option<Interpreter>,
) -> Result<Interpreter, Error> {
    let candidates = names.iter().flat_map(|name| search_path.iter().map(move |dir| dir.join(name)));
    candidates
        .filter(|path| path.is_file())
        .find_map(|path| ask(&path))
        .ok_or_else(|| Error::InterpreterMissing { what: what.to_owned(), searched: search_path.to_vec() })
}

fn answers(executable: &Path, flag: &str, question: &str) -> Option<Vec<String>> {
    let output = Command::new(executable).arg(flag).arg(question).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.lines().map(str::to_owned).collect())
}

fn ask_node(path: &Path) -> Option<Interpreter> {
    let lines = answers(path, "-e", NODE_QUESTION)?;
    let [executable, version] = lines.as_slice() else { return None };
    let executable = PathBuf::from(executable);
    Some(place(executable.clone(), executable.parent()?.parent()?.to_path_buf(), version.clone()))
}

/// A PHP that is too old for the runtime is none.
fn ask_php(path: &Path) -> Option<Interpreter> {
    let lines = answers(path, "-r", PHP_QUESTION)?;
    let [executable, version] = lines.as_slice() else { return None };
    let executable = PathBuf::from(executable);
    let prefix = executable.parent()?.parent()?.to_path_buf();
    version.starts_with("8.").then(|| place(executable, prefix, version.clone()))
}

fn ask_python(path: &Path) -> Option<Interpreter> {
    let lines = answers(path, "-c", PYTHON_QUESTION)?;
    let [prefix, version, name] = lines.as_slice() else { return None };
    let prefix = PathBuf::from(prefix);
    Some(place(prefix.join("bin").join(name), prefix, version.clone()))
}

fn place(executable: PathBuf, prefix: PathBuf, version: String) -> Interpreter {
    let system = prefix == Path::new("/usr") || prefix == Path::new("/");
    let inside = match executable.file_name() {
        Some(name) if !system => Path::new("/var/lang/bin").join(name),
        _ => executable.clone(),
    };
    Interpreter { executable, prefix: (!system).then_some(prefix), version, inside }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_interpreter_needs_no_mount_and_another_lands_in_var_lang() {
        let system = place("/usr/bin/node".into(), "/usr".into(), "20.1.0".into());
        assert_eq!((system.prefix, system.inside), (None, "/usr/bin/node".into()));
        let pyenv = place(
            "/root/.pyenv/versions/3.11.7/bin/python3.11".into(),
            "/root/.pyenv/versions/3.11.7".into(),
            "3.11.7".into(),
        );
        assert_eq!(pyenv.inside, Path::new("/var/lang/bin/python3.11"));
        assert!(version_caveat(Runtime::Python(12), &pyenv).is_some());
        assert!(version_caveat(Runtime::Python(11), &pyenv).is_none());
    }

    #[test]
    fn an_absent_interpreter_is_named() {
        let error = find(Runtime::NodeJs(20), &["/nonexistent".into()]).expect_err("nothing there");
        assert!(error.to_string().contains("node"), "{error}");
        let error = find(Runtime::Php(2), &["/nonexistent".into()]).expect_err("nothing there");
        assert!(error.to_string().contains("php"), "{error}");
    }
}
