//! A container image from a file, as a directory that can be a root: an OCI archive, or what `docker save` wrote. No daemon, no registry.
//!
//! An image is somebody else's bytes. Whatever its entries are called and wherever its links point, nothing is read, written or removed
//! outside of its directory: every path is resolved by the kernel inside of it (`root`). Layers are applied in order, with whiteouts
//! (`layer`); which they are and what the process is to be is read from JSON (`manifest`).

mod archive;
mod compression;
mod error;
mod layer;
mod manifest;
mod root;

pub use error::Error;
pub use layer::Limits;
pub use manifest::Config;

use archive::Archive;
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// An image that was unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its files.
    pub root: PathBuf,
    /// What it says about its process.
    pub config: Config,
}

/// Images below one directory. Running environments may use each of them, so none is removed while danki runs.
const IMAGES: usize = 64;

/// Unpacks an archive below `into`, unless the same image is already there. `architecture` is OCI's name of the machine's: `amd64`, `arm64`.
pub fn unpack(archive: &Path, into: &Path, architecture: &str) -> Result<Image, Error> {
    let at = |source: io::Error| Error::File { path: archive.to_path_buf(), source };
    let mut archive = Archive::index(File::open(archive).map_err(at)?)?;
    let manifest = manifest::read(&mut archive, architecture)?;
    let root = into.join(&manifest.id);
    if !root.is_dir() {
        let made = |source: io::Error| Error::File { path: into.to_path_buf(), source };
        fs::create_dir_all(into).map_err(made)?;
        if fs::read_dir(into).map_err(made)?.count() >= IMAGES {
            return Err(Error::TooLarge {
                what: "images that this danki has unpacked; start it again",
                allowed: IMAGES as u64,
            });
        }
        let partial = tempfile::Builder::new().prefix("partial-").tempdir_in(into).map_err(made)?;
        fs::set_permissions(partial.path(), Permissions::from_mode(0o755)).map_err(made)?;
        apply(&mut archive, &manifest, partial.path(), Limits::default(), into)?;
        match fs::rename(partial.path(), &root) {
            Ok(()) => drop(partial.keep()),
            // Somebody else was faster; it is the same image.
            Err(_) if root.is_dir() => {}
            Err(source) => return Err(made(source)),
        }
    }
    Ok(Image { root, config: manifest.config })
}

/// Applies all layers of an archive that is read from anywhere to a directory; for fuzzing and for tests.
#[doc(hidden)]
pub fn unpack_from(reader: impl Read + Seek, root: &Path, limits: Limits) -> Result<Config, Error> {
    let mut archive = Archive::index(reader)?;
    let manifest = manifest::read(&mut archive, "amd64")?;
    apply(&mut archive, &manifest, root, limits, root.parent().unwrap_or(root))?;
    Ok(manifest.config)
}

fn apply<R: Read + Seek>(
    archive: &mut Archive<R>,
    manifest: &manifest::Manifest,
    root: &Path,
    limits: Limits,
    scratch: &Path,
) -> Result<(), Error> {
    let root = root::Root::open(root)?;
    let mut left = limits;
    manifest.layers.iter().try_for_each(|layer| layer::apply(archive, layer, &root, &mut left, scratch))
}

impl Image {
    /// Whether a path inside leads to a file.
    pub fn has_file(&self, path: &Path) -> bool {
        self.opened().is_some_and(|root| root.mode(path).is_some())
    }

    /// Whether a path inside leads to a directory.
    pub fn has_dir(&self, path: &Path) -> bool {
        self.opened().is_some_and(|root| root.existing(path).is_ok_and(|dir| dir.is_some()))
    }

    /// The program that a name means: a path as it is, below `cwd` if it is relative; a bare name where `search` finds it first.
    pub fn program(&self, name: &str, search: &str, cwd: &Path) -> Option<PathBuf> {
        let root = self.opened()?;
        let runs = |path: &PathBuf| root.mode(path).is_some_and(|mode| mode & 0o111 != 0);
        match name.contains('/') {
            true => Some(cwd.join(name)).filter(runs),
            false => search.split(':').map(|dir| cwd.join(dir).join(name)).find(runs),
        }
    }

    /// Makes sure that a path inside is a plain file that something can be laid over; a link there goes.
    pub fn place(&self, file: &Path) -> Result<(), Error> {
        let failed = |source: io::Error| Error::File { path: self.root.join(file), source };
        let (Some(parent), Some(name)) = (file.parent(), file.file_name()) else {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        };
        let parent = parent.strip_prefix("/").unwrap_or(parent);
        let dir = root::Root::open(&self.root)?.dir(parent).map_err(|e| failed(e.into()))?;
        root::place(&dir, name).map_err(failed)
    }

    fn opened(&self) -> Option<root::Root> {
        root::Root::open(&self.root).ok()
    }
}

impl Config {
    /// Program and arguments: the image's, or what is said instead. A new entry point takes the image's `CMD` away, as with `docker run`.
    pub fn command(&self, entry_point: Option<&[String]>, command: Option<&[String]>) -> Vec<String> {
        let own = if entry_point.is_some() { &[][..] } else { &self.command };
        [entry_point.unwrap_or(&self.entry_point), command.unwrap_or(own)].concat()
    }

    /// `ENV`, by name.
    pub fn variables(&self) -> BTreeMap<String, String> {
        let pair =
            |text: &String| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        self.environment.iter().filter_map(pair).filter(|(name, _)| !name.is_empty()).collect()
    }
}
