//! A function made ready to run: its specification checked and its interpreter and certificate bundles found.

use crate::files;
use crate::image::{self, Ready};
use crate::interpreter::{self, Interpreter};
use crate::{Error, HostConfig, ThawOrder};
use danki_model::{FunctionSpec, Runtime};
use std::path::{Path, PathBuf};

/// The account that functions believe to be in: AWS's own documentation example.
const ACCOUNT: &str = "123456789012";

/// A function that envs can be made of.
#[derive(Clone, Debug)]
pub struct Deployed {
    /// What the user said; paths are absolute.
    pub spec: FunctionSpec,
    /// The variant that this is the function of.
    pub variant: String,
    /// Which version of the function: `$LATEST` or a number.
    pub version: String,
    /// Absent for `provided`.
    pub interpreter: Option<Interpreter>,
    /// CPU time per period, µs.
    pub quota_us: u64,
    /// Certificate bundles that packages bring, as paths inside the env.
    pub bundled_roots: Vec<PathBuf>,
    /// What its thawed runtimes see first, if it differs from the host's.
    pub thaw_order: Option<ThawOrder>,
    /// The image that it comes from.
    pub image: Option<Ready>,
}

/// What a function is deployed as.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    /// Names the rows of a run that are its.
    pub variant: String,
    /// `$LATEST` or a number.
    pub version: String,
    /// What its thawed runtimes see first, if it differs from the host's.
    pub thaw_order: Option<ThawOrder>,
}

impl Deployed {
    /// Checks and finds; images are unpacked below `images`. Errors name the function, the value and what would be right.
    pub fn new(
        spec: FunctionSpec,
        as_: Deployment,
        config: &HostConfig,
        images: &Path,
    ) -> Result<Deployed, Error> {
        if let Some(problem) = spec.validate().into_iter().next() {
            return Err(bad(&spec, problem.to_string()));
        }
        let spec = absolute(spec)?;
        let image = spec.image.as_ref().map(|image| image::ready(image, images)).transpose();
        let image = image.map_err(|problem| bad(&spec, problem))?;
        if image.is_none() {
            check_handler(&spec)?;
        }
        let quota_us = config.cpu_model.quota_us(spec.memory).map_err(|e| bad(&spec, e.to_string()))?;
        let interpreter = interpreter::find(spec.runtime, &config.search_path)?;
        let bundled_roots = match &image {
            Some(image) => image.bundles.clone(),
            None => roots(&spec, interpreter.as_ref()),
        };
        let Deployment { variant, version, thaw_order } = as_;
        Ok(Deployed { spec, variant, version, interpreter, quota_us, bundled_roots, thaw_order, image })
    }

    /// Directories whose `extensions` are started.
    pub(crate) fn extension_dirs(&self) -> &[PathBuf] {
        match &self.image {
            Some(image) => image.opt.as_slice(),
            None => &self.spec.layers,
        }
    }

    /// The function's ARN, without a version.
    pub fn arn(&self) -> String {
        format!("arn:aws:lambda:{}:{ACCOUNT}:function:{}", self.spec.region, self.spec.name)
    }
}

fn absolute(mut spec: FunctionSpec) -> Result<FunctionSpec, Error> {
    let problem = |path: &Path, e: std::io::Error| format!("cannot open directory {}: {e}", path.display());
    let code = spec.code.canonicalize().map_err(|e| bad(&spec, problem(&spec.code, e)))?;
    let layers: Result<Vec<PathBuf>, Error> =
        spec.layers.iter().map(|dir| dir.canonicalize().map_err(|e| bad(&spec, problem(dir, e)))).collect();
    (spec.layers, spec.code) = (layers?, code);
    if let Some(image) = &mut spec.image {
        let problem = |e: std::io::Error| format!("image {}: {e}", image.archive.display());
        image.archive = image
            .archive
            .canonicalize()
            .map_err(problem)
            .map_err(|p| Error::BadFunction { function: spec.name.clone(), problem: p })?;
    }
    Ok(spec)
}

/// Managed runtimes would find a missing module only in init; a wrong path is a typing error and is said at once.
fn check_handler(spec: &FunctionSpec) -> Result<(), Error> {
    let Some(stem) = module(spec) else {
        return Err(bad(spec, format!("handler {:?} is not of the form file.function", spec.handler)));
    };
    let candidates: Vec<PathBuf> = match spec.runtime {
        Runtime::NodeJs(_) => {
            ["js", "mjs", "cjs"].iter().map(|e| spec.code.join(format!("{stem}.{e}"))).collect()
        }
        Runtime::Python(_) => {
            vec![spec.code.join(format!("{stem}.py")), spec.code.join(&stem).join("__init__.py")]
        }
        Runtime::Php(_) => vec![spec.code.join(&stem)],
        Runtime::Provided => {
            std::iter::once(&spec.code).chain(&spec.layers).map(|d| d.join("bootstrap")).collect()
        }
    };
    let in_layer = !spec.layers.is_empty() && spec.runtime != Runtime::Provided;
    if in_layer || candidates.iter().any(|path| path.is_file()) {
        return Ok(());
    }
    let names: Vec<String> = candidates.iter().map(|p| p.display().to_string()).collect();
    Err(bad(spec, format!("handler {:?}: none of {} exists", spec.handler, names.join(", "))))
}

/// `dir/file.function` → `dir/file`; Python also writes `package.module.function`.
fn module(spec: &FunctionSpec) -> Option<String> {
    match spec.runtime {
        Runtime::Provided => Some(String::new()),
        // The whole file's name: what it returns is the handler.
        Runtime::Php(_) => Some(spec.handler.clone()),
        Runtime::NodeJs(_) => {
            let (dir, file) = spec.handler.rsplit_once('/').map_or(("", &*spec.handler), |(d, f)| (d, f));
            let (stem, _) = file.split_once('.')?;
            Some(Path::new(dir).join(stem).display().to_string())
        }
        Runtime::Python(_) => spec.handler.rsplit_once('.').map(|(module, _)| module.replace('.', "/")),
    }
}

fn roots(spec: &FunctionSpec, interpreter: Option<&Interpreter>) -> Vec<PathBuf> {
    let mut roots = inside(&spec.code, "/var/task");
    roots.extend(spec.layers.iter().flat_map(|layer| inside(layer, "/opt")));
    let prefix = interpreter.and_then(|i| i.prefix.as_deref());
    roots.extend(prefix.into_iter().flat_map(|prefix| inside(prefix, "/var/lang")));
    roots.sort();
    roots.dedup();
    roots
}

fn inside(dir: &Path, place: &str) -> Vec<PathBuf> {
    files::bundled_roots(dir).into_iter().map(|path| Path::new(place).join(path)).collect()
}

fn bad(spec: &FunctionSpec, problem: String) -> Error {
    Error::BadFunction { function: spec.name.clone(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use danki_model::MemoryMb;

    fn spec(runtime: &str, handler: &str, code: &Path) -> FunctionSpec {
        FunctionSpec {
            name: "f".to_owned(),
            runtime: runtime.parse().expect("known"),
            handler: handler.to_owned(),
            code: code.to_path_buf(),
            layers: Vec::new(),
            memory: MemoryMb::try_from(128).expect("in range"),
            timeout_ms: 3_000,
            ephemeral_mb: 512,
            environment: Default::default(),
            region: "us-east-1".to_owned(),
            logging: danki_model::Logging::default(),
            image: None,
        }
    }

    #[test]
    fn a_handler_must_be_there() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("src")).expect("made");
        for file in ["index.mjs", "app.py", "src/main.js", "src/web.php", "bootstrap"] {
            std::fs::write(dir.path().join(file), "").expect("written");
        }
        let check = |runtime: &str, handler: &str| {
            check_handler(&spec(runtime, handler, dir.path())).map_err(|e| e.to_string())
        };
        assert_eq!(check("nodejs20.x", "index.handler"), Ok(()));
        assert_eq!(check("nodejs20.x", "src/main.handler"), Ok(()));
        assert_eq!(check("python3.11", "app.handler"), Ok(()));
        assert_eq!(check("php-82", "src/web.php"), Ok(()));
        assert_eq!(check("provided.al2023", "anything"), Ok(()));
        for (runtime, handler) in [
            ("nodejs20.x", "other.handler"),
            ("nodejs20.x", "index"),
            ("python3.11", "x.handler"),
            ("php-82", "src/x.php"),
        ] {
            assert!(check(runtime, handler).is_err(), "{runtime} {handler}");
        }
        assert!(absolute(spec("nodejs20.x", "i.h", Path::new("/nonexistent"))).is_err());
    }
}
