//! Files that envs of a run share: bootstraps of the managed runtimes and the certificate bundles.

use crate::Error;
use crate::plan::BESIDE;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const NODE_BOOTSTRAP: &str = include_str!("../../../runtimes/node/bootstrap.mjs");
const NODE_KEEP_ALIVE: &str = include_str!("../../../runtimes/node/keepalive.cjs");
const NODE_PROFILE: &str = include_str!("../../../runtimes/node/profile.cjs");
const PHP_BOOTSTRAP: &str = include_str!("../../../runtimes/php/bootstrap.php");
const PHP_PROCESSES: &str = include_str!("../../../runtimes/php/bootstrap.sh");
const PYTHON_BOOTSTRAP: &str = include_str!("../../../runtimes/python/bootstrap.py");

/// Where distributions keep the bundle of trusted roots.
const SYSTEM_BUNDLES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// The shared files, below a directory that goes with this value.
pub struct SharedFiles {
    dir: TempDir,
    /// A system bundle was found; without one a function trusts only the run's CA.
    pub has_system_bundle: bool,
}

impl SharedFiles {
    /// Writes the files. The bundle is the *whole* system bundle plus the run's root: loading many roots costs CPU that
    /// functions on AWS pay too. `roots` takes only so many of the system's, where this machine's TLS library loads them much
    /// more slowly than the one that is compared with (OpenSSL 3.0 against 1.1.1: cpython issue 95031).
    ///
    /// The files lie below `run`, the run's directory, and so go with it even when danki is killed.
    pub fn write(ca_root_pem: &str, roots: Option<usize>, run: &Path) -> Result<SharedFiles, Error> {
        let dir = tempfile::Builder::new()
            .prefix("host-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in(run)
            .map_err(at(run))?;
        let system = SYSTEM_BUNDLES.iter().find_map(|path| fs::read_to_string(path).ok());
        let bundle = format!("{}\n{ca_root_pem}", first_roots(system.as_deref().unwrap_or_default(), roots));
        let files = SharedFiles { dir, has_system_bundle: system.is_some() };
        files.put(&files.ca_bundle(), &bundle)?;
        files.put(&files.ca_root(), ca_root_pem)?;
        files.put(&files.resolv_conf(), &resolv_conf())?;
        files.put(&files.hosts(), HOSTS)?;
        files.put(&files.runtime_dir().join("bootstrap.mjs"), NODE_BOOTSTRAP)?;
        files.put(&files.runtime_dir().join("keepalive.cjs"), NODE_KEEP_ALIVE)?;
        files.put(&files.runtime_dir().join("profile.cjs"), NODE_PROFILE)?;
        files.put(&files.runtime_dir().join("bootstrap.php"), PHP_BOOTSTRAP)?;
        files.put(&files.runtime_dir().join("bootstrap.sh"), PHP_PROCESSES)?;
        files.put(&files.runtime_dir().join("bootstrap.py"), PYTHON_BOOTSTRAP)?;
        Ok(files)
    }

    /// Becomes `/var/runtime`.
    pub fn runtime_dir(&self) -> PathBuf {
        self.dir.path().join("runtime")
    }

    /// System roots and the run's root.
    pub fn ca_bundle(&self) -> PathBuf {
        self.dir.path().join("ca-bundle.crt")
    }

    /// The run's root alone (Node adds it to its built-in roots).
    pub fn ca_root(&self) -> PathBuf {
        self.dir.path().join("ca-root.crt")
    }

    /// Which resolver an env asks.
    pub fn resolv_conf(&self) -> PathBuf {
        self.dir.path().join("resolv.conf")
    }

    /// Names that need no resolver.
    pub fn hosts(&self) -> PathBuf {
        self.dir.path().join("hosts")
    }

    /// Where container images are unpacked.
    pub fn images(&self) -> PathBuf {
        self.dir.path().join("images")
    }

    fn put(&self, path: &Path, text: &str) -> Result<(), Error> {
        let parent = path.parent().expect("every file lies below the directory");
        fs::create_dir_all(parent).map_err(at(parent))?;
        fs::write(path, text).map_err(at(path))
    }
}

/// `/etc/hosts` of an env.
pub const HOSTS: &str = "127.0.0.1 localhost sandbox.localdomain\n";

/// `/etc/resolv.conf` of an env.
pub fn resolv_conf() -> String {
    format!("nameserver {BESIDE}\noptions timeout:1 attempts:2\n")
}

const END: &str = "-----END CERTIFICATE-----";

/// The first `roots` certificates of a bundle, or all.
fn first_roots(bundle: &str, roots: Option<usize>) -> String {
    bundle
        .split_inclusive(END)
        .filter(|block| block.ends_with(END))
        .take(roots.unwrap_or(usize::MAX))
        .collect()
}

/// Most names that are looked at; ten extensions are allowed.
const EXTENSIONS_LOOKED_AT: usize = 64;

/// External extensions: everything that is no directory directly below `extensions` of a layer, each name once, in order.
pub fn extensions(layers: &[PathBuf]) -> Vec<String> {
    let entries = layers.iter().filter_map(|layer| fs::read_dir(layer.join("extensions")).ok()).flatten();
    let files = entries.flatten().filter(|entry| !entry.path().is_dir());
    let names = files.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.take(EXTENSIONS_LOOKED_AT).collect();
    names.sort();
    names.dedup();
    names
}

/// Bundles that Python packages bring (certifi, botocore, pip), as paths relative to `dir`.
pub fn bundled_roots(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(dir, Path::new(""), MAX_DEPTH, &mut found);
    found.sort();
    found
}

/// `lib/python3.11/site-packages/pip/_vendor/certifi/cacert.pem` is seven below a prefix.
const MAX_DEPTH: usize = 8;

fn collect(dir: &Path, relative: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let name = relative.join(entry.file_name());
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_file() && entry.file_name() == "cacert.pem" {
            found.push(name);
        } else if kind.is_dir() && depth > 0 && entry.file_name() != "node_modules" {
            collect(&entry.path(), &name, depth - 1, found);
        }
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_path_buf();
    |source| Error::File { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_whole_or_cut() {
        let bundle = format!("# one\nA\n{END}\nB\n{END}\nC\n{END}\n");
        let check = |roots, expect: &str| assert_eq!(first_roots(&bundle, roots).replace(END, "."), expect);
        check(None, "# one\nA\n.\nB\n.\nC\n.");
        check(Some(2), "# one\nA\n.\nB\n.");
        check(Some(0), "");
    }

    #[test]
    fn extensions_of_all_layers_are_found() {
        let dir = tempfile::tempdir().expect("a directory");
        for path in ["one/extensions/b", "one/extensions/sub/deep", "two/extensions/a", "two/extensions/b"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("has one")).expect("made");
            fs::write(path, "").expect("written");
        }
        let layers = ["one", "two", "three"].map(|layer| dir.path().join(layer));
        assert_eq!(extensions(&layers), ["a", "b"]);
        assert!(extensions(&[]).is_empty());
    }

    #[test]
    fn bundles_of_packages_are_found() {
        let dir = tempfile::tempdir().expect("a directory");
        for path in ["certifi/cacert.pem", "a/b/botocore/cacert.pem", "node_modules/x/cacert.pem"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("has one")).expect("made");
            fs::write(path, "").expect("written");
        }
        let expect: Vec<PathBuf> = vec!["a/b/botocore/cacert.pem".into(), "certifi/cacert.pem".into()];
        assert_eq!(bundled_roots(dir.path()), expect);
    }
}
