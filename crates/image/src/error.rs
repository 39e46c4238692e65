//! What is wrong with an image.

use std::io;
use std::path::PathBuf;

/// An image that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of this machine.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The archive is compressed as a whole.
    #[error("the archive is compressed as a whole\nhint: gunzip it; layers inside may be compressed")]
    Compressed,
    /// The archive is not a tar, or breaks off.
    #[error("the archive cannot be read: {0}")]
    Archive(io::Error),
    /// Neither `manifest.json` nor `index.json`.
    #[error(
        "neither manifest.json nor index.json is in the archive\nhint: make it with `docker save IMAGE -o FILE`, `podman save` or `skopeo copy … oci-archive:FILE`"
    )]
    NoManifest,
    /// Something that the manifest names is not there.
    #[error("{0:?} is not in the archive")]
    Missing(String),
    /// JSON that is no manifest, index or configuration.
    #[error("{name}: {problem}")]
    Manifest {
        /// Which file of the archive.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// For another machine.
    #[error(
        "the image is for {found}; this machine runs linux/{wanted}\nhint: docker build --platform linux/{wanted}"
    )]
    Platform {
        /// What the image says.
        found: String,
        /// What would run here.
        wanted: String,
    },
    /// A blob's bytes are not those that the manifest means.
    #[error("{0}: the bytes do not have this digest")]
    Digest(String),
    /// A layer cannot be applied.
    #[error("layer {layer}: {entry:?}: {problem}")]
    Layer {
        /// Its name in the archive.
        layer: String,
        /// Path of the entry; empty if it is about the layer's bytes.
        entry: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// More than a bound allows.
    #[error("{what}: more than {allowed}")]
    TooLarge {
        /// Of what there is too much.
        what: &'static str,
        /// How much is allowed.
        allowed: u64,
    },
}
