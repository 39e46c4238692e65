//! Which layers an image has, in which order, and what it says about its process.
//!
//! `docker save` writes `manifest.json`, which names files of the archive; the OCI layout has `index.json`, which names blobs by digest, and
//! may lead to an index of platforms first. Recent versions of Docker write both; the former is read then, because it says everything at once.

use crate::Error;
use crate::archive::{Archive, sha256};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::{Read, Seek};

/// OCI images may have more, Docker's have 127.
const LAYERS: usize = 127;
/// An index that leads to an index and so on.
const INDEXES: usize = 4;

/// What an image says about its process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// `ENTRYPOINT`
    pub entry_point: Vec<String>,
    /// `CMD`
    pub command: Vec<String>,
    /// `ENV`, each `NAME=VALUE`.
    pub environment: Vec<String>,
    /// `WORKDIR`; empty if there is none.
    pub working_directory: String,
}

/// An image's parts in the archive.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// SHA-256 of the configuration, which holds the digests of all layers: the same image has the same.
    pub id: String,
    pub config: Config,
    pub layers: Vec<Blob>,
}

/// A file of the archive, and its SHA-256 if it is named by it.
#[derive(Clone, Debug)]
pub(crate) struct Blob {
    pub name: String,
    pub sha256: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    layers: Vec<String>,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    digest: String,
    #[serde(default)]
    media_type: String,
    platform: Option<Platform>,
}

#[derive(Clone, Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

#[derive(Deserialize)]
struct OciManifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    os: String,
    #[serde(default)]
    config: Option<Process>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Process {
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    env: Option<Vec<String>>,
    working_dir: String,
}

/// The one image of an archive that this machine can run.
pub(crate) fn read<R: Read + Seek>(archive: &mut Archive<R>, architecture: &str) -> Result<Manifest, Error> {
    let (config, layers) = if archive.has("manifest.json") {
        saved(archive)?
    } else if archive.has("index.json") {
        oci(archive, architecture)?
    } else {
        return Err(Error::NoManifest);
    };
    if layers.len() > LAYERS {
        return Err(Error::TooLarge { what: "layers", allowed: LAYERS as u64 });
    }
    let bytes = checked(archive, &config)?;
    let file: File = parse(&config.name, &bytes)?;
    let (os, built_for) = (file.os.as_str(), file.architecture.as_str());
    if (!os.is_empty() && os != "linux") || (!built_for.is_empty() && built_for != architecture) {
        let (found, wanted) = (format!("{os}/{built_for}"), architecture.to_owned());
        return Err(Error::Platform { found, wanted });
    }
    let process = file.config.unwrap_or_default();
    let config = Config {
        entry_point: process.entrypoint.unwrap_or_default(),
        command: process.cmd.unwrap_or_default(),
        environment: process.env.unwrap_or_default(),
        working_directory: process.working_dir,
    };
    // The older format names files as it likes: then the list of them is part of what the image is.
    let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
    let id = sha256(format!("{}\n{}", sha256(&bytes), names.join("\n")).as_bytes());
    Ok(Manifest { id, config, layers })
}

fn saved<R: Read + Seek>(archive: &mut Archive<R>) -> Result<(Blob, Vec<Blob>), Error> {
    let name = "manifest.json";
    let images: Vec<Saved> = parse(name, &archive.json(name)?)?;
    let [image] = images.as_slice() else {
        let problem = format!("{} images; one is expected\nhint: save one image at a time", images.len());
        return Err(Error::Manifest { name: name.to_owned(), problem });
    };
    Ok((named(&image.config), image.layers.iter().map(|layer| named(layer)).collect()))
}

/// A file that is called by its digest is checked against it.
fn named(name: &str) -> Blob {
    let sha256 = name.strip_prefix("blobs/sha256/").filter(|hex| is_hex(hex)).map(str::to_owned);
    Blob { name: name.to_owned(), sha256 }
}

fn oci<R: Read + Seek>(archive: &mut Archive<R>, architecture: &str) -> Result<(Blob, Vec<Blob>), Error> {
    let mut name = "index.json".to_owned();
    let mut bytes = archive.json(&name)?;
    for _ in 0..INDEXES {
        let index: Index = parse(&name, &bytes)?;
        let chosen = chosen(&index.manifests, architecture)?;
        let blob = blob(&name, &chosen)?;
        bytes = checked(archive, &blob)?;
        name = blob.name;
        // Without a type, what it has tells what it is.
        let is_index = chosen.media_type.contains("index") || chosen.media_type.contains("manifest.list");
        if is_index || parse::<Index>(&name, &bytes).is_ok() {
            continue;
        }
        let manifest: OciManifest = parse(&name, &bytes)?;
        let layers = manifest.layers.iter().map(|layer| self::blob(&name, layer));
        return Ok((self::blob(&name, &manifest.config)?, layers.collect::<Result<_, _>>()?));
    }
    Err(Error::Manifest { name, problem: "an index leads to an index too often".to_owned() })
}

/// The one for this machine; where only one is there, it is meant, and its configuration will tell.
fn chosen(all: &[Descriptor], architecture: &str) -> Result<Descriptor, Error> {
    let fits = |d: &&Descriptor| {
        d.platform.as_ref().is_some_and(|p| p.os == "linux" && p.architecture == architecture)
    };
    // Attestations stand beside images as `unknown/unknown`.
    let images: Vec<&Descriptor> =
        all.iter().filter(|d| d.platform.as_ref().is_none_or(|p| p.os != "unknown")).collect();
    match (images.iter().copied().find(fits), images.as_slice()) {
        (Some(one), _) => Ok(one.clone()),
        (None, [one]) => Ok((*one).clone()),
        (None, others) => {
            let platforms = others.iter().filter_map(|d| d.platform.as_ref());
            let found: Vec<String> = platforms.map(|p| format!("{}/{}", p.os, p.architecture)).collect();
            let found = if found.is_empty() { "no platform".to_owned() } else { found.join(", ") };
            Err(Error::Platform { found, wanted: architecture.to_owned() })
        }
    }
}

fn blob(at: &str, descriptor: &Descriptor) -> Result<Blob, Error> {
    let hex = descriptor.digest.strip_prefix("sha256:").filter(|hex| is_hex(hex));
    let hex = hex.ok_or_else(|| Error::Manifest {
        name: at.to_owned(),
        problem: format!("digest {:?} is not sha256: and 64 digits", descriptor.digest),
    })?;
    Ok(Blob { name: format!("blobs/sha256/{hex}"), sha256: Some(hex.to_owned()) })
}

fn is_hex(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn checked<R: Read + Seek>(archive: &mut Archive<R>, blob: &Blob) -> Result<Vec<u8>, Error> {
    let bytes = archive.json(&blob.name)?;
    match &blob.sha256 {
        Some(digest) if *digest != sha256(&bytes) => Err(Error::Digest(blob.name.clone())),
        _ => Ok(bytes),
    }
}

fn parse<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes)
        .map_err(|e| Error::Manifest { name: name.to_owned(), problem: e.to_string() })
}
