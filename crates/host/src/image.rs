//! A container image made ready: unpacked once per danki, with places for what Lambda lays over it, and its process decided.

use crate::files;
use danki_image::Image;
use danki_model::ImageSpec;
use danki_model::environment::is_reserved;
use danki_sys::plan::MountPlan;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What an env of an image is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Ready {
    /// The image's top-level directories, files and links.
    pub mounts: Vec<MountPlan>,
    /// Program, as a path inside, and arguments.
    pub argv: Vec<String>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// `ENV`, but for what only Lambda sets.
    pub variables: BTreeMap<String, String>,
    /// `/opt` on this machine, where extensions are looked for.
    pub opt: Option<PathBuf>,
    /// Certificate bundles inside that danki's own is laid over.
    pub bundles: Vec<PathBuf>,
}

/// What is laid over files of the image, which therefore must be there.
pub const PLACES: [&str; 4] =
    ["/etc/resolv.conf", "/etc/hosts", "/etc/danki/ca-root.crt", "/etc/ssl/certs/ca-certificates.crt"];
/// Other places where programs look for trusted roots; only laid over where the image has one.
const BUNDLES: [&str; 3] = [
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// Where packages that bring their own are installed.
const LIBRARIES: [&str; 5] = ["var/task", "opt", "var/lang/lib", "usr/local/lib", "usr/lib/python3"];
/// Lambda has its own of these.
const OWN: [&str; 3] = ["dev", "proc", "tmp"];
/// Of a container that says nothing (Docker's default).
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Unpacks and decides; what is wrong is said in words.
pub fn ready(spec: &ImageSpec, images: &Path) -> Result<Ready, String> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let shown = spec.archive.display();
    let image = danki_image::unpack(&spec.archive, images, architecture)
        .map_err(|e| format!("image {shown}: {e}"))?;
    PLACES
        .iter()
        .try_for_each(|file| image.place(Path::new(file)))
        .map_err(|e| format!("image {shown}: {e}"))?;
    let variables: BTreeMap<String, String> =
        image.config.variables().into_iter().filter(|(name, _)| !is_reserved(name)).collect();
    let cwd = spec.working_directory.as_deref().unwrap_or(&image.config.working_directory);
    let cwd = Path::new("/").join(cwd);
    if !image.has_dir(&cwd) {
        return Err(format!("image {shown}: the working directory {} is not in it", cwd.display()));
    }
    let mut argv = image.config.command(spec.entry_point.as_deref(), spec.command.as_deref());
    let Some(program) = argv.first_mut() else {
        return Err(format!(
            "image {shown}: neither ENTRYPOINT nor CMD\nhint: say command = [\"…\"], or ImageConfig"
        ));
    };
    let search = variables.get("PATH").map_or(PATH, String::as_str);
    let found = image.program(program, search, &cwd).ok_or_else(|| {
        format!("image {shown}: its program {program:?} is not an executable file in it (PATH {search})")
    })?;
    *program = found.display().to_string();
    let opt = inside(&image.root, "opt");
    let bundles = bundles(&image);
    Ok(Ready { mounts: mounts(&image.root)?, argv, cwd, variables, opt, bundles })
}

/// A directory of the image on this machine, if no link leads out of it.
fn inside(root: &Path, dir: &str) -> Option<PathBuf> {
    let (root, dir) = (root.canonicalize().ok()?, root.join(dir).canonicalize().ok()?);
    (dir.is_dir() && dir.starts_with(root)).then_some(dir)
}

fn bundles(image: &Image) -> Vec<PathBuf> {
    let own = PLACES.iter().filter(|place| place.starts_with("/etc/ssl"));
    let others = BUNDLES.iter().filter(|path| image.has_file(Path::new(path)));
    let packages =
        LIBRARIES.iter().filter_map(|dir| Some((dir, inside(&image.root, dir)?))).flat_map(|(dir, found)| {
            let place = Path::new("/").join(dir);
            files::bundled_roots(&found).into_iter().map(move |path| place.join(path))
        });
    own.chain(others).map(PathBuf::from).chain(packages).collect()
}

fn mounts(root: &Path) -> Result<Vec<MountPlan>, String> {
    let entries = root.read_dir().map_err(|e| format!("{}: {e}", root.display()))?;
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut mounts = Vec::new();
    for entry in entries {
        let (source, name) = (entry.path(), entry.file_name());
        if OWN.iter().any(|own| *own == name) {
            continue;
        }
        let target = Path::new("/").join(name);
        mounts.push(match source.read_link() {
            Ok(to) => MountPlan::Symlink { target, to },
            Err(_) => MountPlan::Bind { source, target, read_only: true },
        });
    }
    Ok(mounts)
}
