//! Where danki looks for things and keeps things.

use std::env;
use std::path::{Path, PathBuf};

/// What is kept from run to run: the calibration and the CA's keys. None: nowhere to keep it.
pub fn cache() -> Option<PathBuf> {
    let of = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    of("XDG_CACHE_HOME")
        .or_else(|| of("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("danki"))
}

/// Where interpreters are looked for.
pub fn search_path() -> Vec<PathBuf> {
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}

/// Directories with experiment files: of the working directory, and of the source tree that this executable was built in.
pub fn experiment_dirs() -> Vec<PathBuf> {
    let exe = env::current_exe().ok();
    let beside =
        exe.iter().flat_map(|exe| exe.ancestors().skip(1).take(5)).map(|dir| dir.join("experiments"));
    std::iter::once(PathBuf::from("experiments")).chain(beside).filter(|dir| dir.is_dir()).collect()
}

/// The root of danki's source tree: of the working directory, or of where this executable was built.
pub fn source_tree() -> Option<PathBuf> {
    let (dir, exe) = (env::current_dir().ok(), env::current_exe().ok());
    let candidates = dir.iter().chain(&exe).flat_map(|path| path.ancestors());
    candidates.map(Path::to_path_buf).find(|path| path.join("crates/secrets/Cargo.toml").is_file())
}

/// The file of an experiment that ships with danki.
pub fn experiment(name: &Path) -> Option<PathBuf> {
    let file = name.with_extension("toml");
    experiment_dirs().into_iter().map(|dir| dir.join(&file)).find(|path| path.is_file())
}

/// Names of all experiments.
pub fn experiments() -> Vec<String> {
    let files = experiment_dirs().into_iter().filter_map(|dir| dir.read_dir().ok()).flatten().flatten();
    let stems = files.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "toml"));
    let mut names: Vec<String> =
        stems.filter_map(|path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned())).collect();
    names.sort();
    names.dedup();
    names
}
