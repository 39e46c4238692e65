//! One layer onto a root. Twice through its entries: first what it takes away, then what it adds, because an opaque whiteout means
//! what lower layers have put there, wherever in the layer it stands.

use crate::Error;
use crate::archive::{Archive, Digested, check_headers};
use crate::compression;
use crate::manifest::Blob;
use crate::root::{self, Root};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use tar::{Entry, EntryType};

const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Other names that begin so are bookkeeping of AUFS.
const RESERVED: &[u8] = b".wh..wh.";

/// What an image may have in all.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of files, unpacked.
    pub bytes: u64,
    /// Entries of all layers.
    pub entries: u64,
}

impl Default for Limits {
    /// 10 GB (AWS's quotas page: uncompressed, all layers); AWS has no limit of entries, a bound must be.
    fn default() -> Limits {
        Limits { bytes: 10 * 1024 * 1024 * 1024, entries: 2_000_000 }
    }
}

/// Applies a layer; `left` shrinks by what it has. `scratch` is a directory for its unpacked form.
pub(crate) fn apply<R: Read + Seek>(
    archive: &mut Archive<R>,
    blob: &Blob,
    root: &Root,
    left: &mut Limits,
    scratch: &Path,
) -> Result<(), Error> {
    let mut layer = unpacked(archive, blob, left, scratch)?;
    check_headers(&mut layer)?;
    each(&mut layer, blob, left, |_, path| take_away(root, path))?;
    let mut bytes = left.bytes;
    each(&mut layer, blob, left, |entry, path| add(root, entry, path, &mut bytes))?;
    if bytes == EXHAUSTED {
        return Err(Error::TooLarge { what: "bytes of files", allowed: left.bytes });
    }
    left.bytes = bytes;
    Ok(())
}

/// What remains of the bytes when there were more of them.
const EXHAUSTED: u64 = u64::MAX;
/// A header with a long name and a time in full.
const HEADER_BYTES: u64 = 4_096;

/// The layer as a plain tar, in a file without a name: decompressed once, and read more than once. Only what has the digest that was asked
/// for is acted upon.
fn unpacked<R: Read + Seek>(
    archive: &mut Archive<R>,
    blob: &Blob,
    left: &Limits,
    scratch: &Path,
) -> Result<File, Error> {
    let broken = |source: io::Error| problem(blob, Path::new(""), source.to_string());
    let allowed = left.bytes.saturating_add(left.entries.saturating_mul(HEADER_BYTES));
    let mut file = tempfile::tempfile_in(scratch)
        .map_err(|source| Error::File { path: scratch.to_path_buf(), source })?;
    let mut digested = Digested::new(archive.open(&blob.name)?);
    let plain = compression::plain(BufReader::new(&mut digested)).map_err(broken)?;
    let written = io::copy(&mut plain.take(allowed.saturating_add(1)), &mut file).map_err(broken)?;
    if written > allowed {
        return Err(Error::TooLarge { what: "bytes of layers", allowed });
    }
    let found = digested.finish().map_err(broken)?;
    match &blob.sha256 {
        Some(wanted) if *wanted != found => Err(Error::Digest(blob.name.clone())),
        _ => Ok(file),
    }
}

fn each(
    layer: &mut File,
    blob: &Blob,
    left: &mut Limits,
    mut act: impl FnMut(&mut Entry<'_, &mut File>, &Path) -> io::Result<()>,
) -> Result<(), Error> {
    let broken = |source: io::Error| problem(blob, Path::new(""), source.to_string());
    layer.rewind().map_err(broken)?;
    let mut tar = tar::Archive::new(layer);
    for entry in tar.entries_with_seek().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let too_many = || Error::TooLarge { what: "entries of layers", allowed: Limits::default().entries };
        left.entries = left.entries.checked_sub(1).ok_or_else(too_many)?;
        let path = entry.path().map_err(broken)?.into_owned();
        let inside = inside(&path).ok_or_else(|| problem(blob, &path, "the path climbs".to_owned()))?;
        act(&mut entry, &inside).map_err(|e| problem(blob, &path, e.to_string()))?;
    }
    Ok(())
}

fn problem(blob: &Blob, entry: &Path, problem: String) -> Error {
    Error::Layer { layer: blob.name.clone(), entry: entry.to_path_buf(), problem }
}

/// The path below the root; none if it climbs.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut inside = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => inside.push(name),
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(inside)
}

fn split(path: &Path) -> Option<(&Path, &OsStr)> {
    Some((path.parent()?, path.file_name()?))
}

/// `.wh.name` takes `name` of lower layers away, `.wh..wh..opq` all that is in its directory.
fn take_away(root: &Root, path: &Path) -> io::Result<()> {
    let Some((parent, name)) = split(path) else { return Ok(()) };
    let bytes = name.as_bytes();
    if !bytes.starts_with(WHITEOUT) || (bytes.starts_with(RESERVED) && bytes != OPAQUE) {
        return Ok(());
    }
    let Some(dir) = root.existing(parent)? else { return Ok(()) };
    if bytes == OPAQUE {
        return root::empty(&dir);
    }
    match &bytes[WHITEOUT.len()..] {
        b"" | b"." | b".." => Ok(()),
        name => root::remove(&dir, OsStr::from_bytes(name)),
    }
}

fn add(root: &Root, entry: &mut Entry<'_, &mut File>, path: &Path, left: &mut u64) -> io::Result<()> {
    // The root itself has the permissions that it was made with.
    let Some((parent, name)) = split(path) else { return Ok(()) };
    if name.as_bytes().starts_with(WHITEOUT) || *left == EXHAUSTED {
        return Ok(());
    }
    let mode = entry.header().mode().unwrap_or(0o644);
    let link = || -> io::Result<PathBuf> {
        let none = || io::Error::new(io::ErrorKind::InvalidData, "a link to nothing");
        Ok(entry.link_name()?.filter(|to| !to.as_os_str().is_empty()).ok_or_else(none)?.into_owned())
    };
    match entry.header().entry_type() {
        EntryType::Directory => root::make_dir(&root.dir(parent)?, name, mode),
        EntryType::Symlink => root::symlink(&root.dir(parent)?, name, &link()?),
        EntryType::Link => {
            let climbs = || io::Error::new(io::ErrorKind::InvalidData, "a link that climbs");
            let target = inside(&link()?).ok_or_else(climbs)?;
            let (target_parent, target_name) = split(&target).ok_or_else(climbs)?;
            let target_name: OsString = target_name.to_owned();
            let from = root.existing(target_parent)?.ok_or(io::ErrorKind::NotFound)?;
            root::hard_link((&from, &target_name), (&root.dir(parent)?, name))
        }
        EntryType::Regular | EntryType::Continuous => {
            let mut file = root::create(&root.dir(parent)?, name)?;
            let written = io::copy(&mut entry.take(left.saturating_add(1)), &mut file)?;
            if written > *left {
                *left = EXHAUSTED;
                return Ok(());
            }
            *left -= written;
            root::finish(&file, mode, entry.header().mtime().unwrap_or(0))
        }
        // Devices, pipes: /dev is danki's, and nothing else of a function's files is one.
        _ => Ok(()),
    }
}
