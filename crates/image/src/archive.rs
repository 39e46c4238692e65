//! The outer tar: which file is where. Its blobs are read where they lie.

use crate::Error;
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Take};
use std::path::{Component, Path};

/// Files of an archive: an image has 127 layers at most, each with a few files in the older format.
const FILES: usize = 4_096;
/// Links that lead to links.
const LINKS: usize = 8;
/// A manifest or a configuration.
const JSON_BYTES: u64 = 4 * 1024 * 1024;

/// An archive with its table of contents.
pub(crate) struct Archive<R> {
    reader: R,
    places: BTreeMap<String, Place>,
}

enum Place {
    At {
        offset: u64,
        size: u64,
    },
    /// The older `docker save` writes equal layers once.
    LinkTo(String),
}

impl<R: Read + Seek> Archive<R> {
    /// Reads the headers.
    pub fn index(mut reader: R) -> Result<Archive<R>, Error> {
        let mut magic = [0; 4];
        let read = reader.read(&mut magic).map_err(Error::Archive)?;
        if magic[..read].starts_with(&[0x1f, 0x8b]) || magic == [0x28, 0xb5, 0x2f, 0xfd] {
            return Err(Error::Compressed);
        }
        check_headers(&mut reader)?;
        reader.rewind().map_err(Error::Archive)?;
        let mut places = BTreeMap::new();
        let mut tar = tar::Archive::new(&mut reader);
        for entry in tar.entries_with_seek().map_err(Error::Archive)? {
            let entry = entry.map_err(Error::Archive)?;
            if places.len() == FILES {
                return Err(Error::TooLarge { what: "files in the archive", allowed: FILES as u64 });
            }
            let Some(name) = entry.path().ok().and_then(|path| plain(&path)) else { continue };
            let kind = entry.header().entry_type();
            if kind.is_file() {
                let place = Place::At { offset: entry.raw_file_position(), size: entry.size() };
                places.insert(name, place);
            } else if kind.is_symlink() || kind.is_hard_link() {
                let from = if kind.is_symlink() { Path::new(&name).parent() } else { None };
                let target = entry.link_name().ok().flatten();
                let joined = target.map(|target| from.unwrap_or(Path::new("")).join(target));
                if let Some(target) = joined.and_then(|path| climbed(&path)) {
                    places.insert(name, Place::LinkTo(target));
                }
            }
        }
        Ok(Archive { reader, places })
    }

    /// Whether there is such a file.
    pub fn has(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    /// The bytes of a file, from its beginning.
    pub fn open(&mut self, name: &str) -> Result<Take<&mut R>, Error> {
        let (offset, size) = self.place(name).ok_or_else(|| Error::Missing(name.to_owned()))?;
        self.reader.seek(SeekFrom::Start(offset)).map_err(Error::Archive)?;
        Ok(self.reader.by_ref().take(size))
    }

    /// A small file as a whole.
    pub fn json(&mut self, name: &str) -> Result<Vec<u8>, Error> {
        let file = self.open(name)?;
        if file.limit() > JSON_BYTES {
            return Err(Error::TooLarge { what: "bytes of JSON", allowed: JSON_BYTES });
        }
        let mut bytes = Vec::new();
        file.take(JSON_BYTES).read_to_end(&mut bytes).map_err(Error::Archive)?;
        Ok(bytes)
    }

    fn place(&self, name: &str) -> Option<(u64, u64)> {
        let mut name = name;
        for _ in 0..LINKS {
            match self.places.get(name)? {
                Place::At { offset, size } => return Some((*offset, *size)),
                Place::LinkTo(target) => name = target,
            }
        }
        None
    }
}

/// A long name or extended header: names have 4,096 bytes at most, attributes 64 KB.
const EXTENSION_BYTES: u64 = 1024 * 1024;

/// Headers that are read as a whole must be small, and none may make the reader skip more or less than its entry has: what is looked at
/// here is what is read afterwards.
pub(crate) fn check_headers(reader: &mut (impl Read + Seek)) -> Result<(), Error> {
    let refused = |what: &str| Error::Archive(io::Error::new(io::ErrorKind::InvalidData, what));
    reader.rewind().map_err(Error::Archive)?;
    let mut tar = tar::Archive::new(reader);
    for entry in tar.entries_with_seek().map_err(Error::Archive)?.raw(true) {
        let mut entry = entry.map_err(Error::Archive)?;
        let kind = entry.header().entry_type();
        let is_extended = kind.is_pax_local_extensions() || kind.is_pax_global_extensions();
        if kind.is_gnu_sparse() {
            return Err(refused("sparse files are not offered"));
        }
        if (is_extended || kind.is_gnu_longname() || kind.is_gnu_longlink()) && entry.size() > EXTENSION_BYTES
        {
            return Err(Error::TooLarge { what: "bytes of a header", allowed: EXTENSION_BYTES });
        }
        if is_extended {
            let mut records = Vec::new();
            entry.read_to_end(&mut records).map_err(Error::Archive)?;
            let key = |record: io::Result<tar::PaxExtension<'_>>| record.map(|r| r.key_bytes().to_vec());
            for key in tar::PaxExtensions::new(&records).map(key) {
                if key.map_err(Error::Archive)? == b"size" {
                    return Err(refused("a file of more than 8 GB is not offered"));
                }
            }
        }
    }
    Ok(())
}

/// `./blobs/x` as `blobs/x`; none if it climbs or is not text.
fn plain(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::CurDir | Component::RootDir => {}
            _ => return None,
        }
    }
    Some(parts.join("/"))
}

/// As [`plain`], with each `..` taking a name away.
fn climbed(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::ParentDir => drop(parts.pop()?),
            _ => {}
        }
    }
    Some(parts.join("/"))
}

/// Reads on to the end and says what the bytes' digest is.
pub(crate) struct Digested<R> {
    inner: R,
    context: ring::digest::Context,
}

impl<R: Read> Digested<R> {
    pub fn new(inner: R) -> Digested<R> {
        Digested { inner, context: ring::digest::Context::new(&ring::digest::SHA256) }
    }

    /// In hexadecimal.
    pub fn finish(mut self) -> io::Result<String> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(hex(self.context.finish().as_ref()))
    }
}

impl<R: Read> Read for Digested<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.context.update(&buffer[..n]);
        Ok(n)
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref())
}
