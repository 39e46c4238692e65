//! Code as it arrives: a zip, unpacked below the state directory, a directory of the user's own, or the file of a container image.
//!
//! A zip is somebody else's bytes. Nothing of it may land outside of its directory, whatever it is called and wherever its links
//! point, and it may not be larger than Lambda allows, whatever its headers claim. Code is kept under its hash: the same zip twice is
//! one directory.

use crate::fault::Fault;
use crate::store::CodeOf;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fs::{self, File, Permissions};
use std::io::{self, Cursor, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use zip::ZipArchive;

/// A zip sent in the request (§7.3 and AWS's quotas page: 50 MB zipped).
pub const ZIP_BYTES: usize = 50 * 1024 * 1024;
/// All files of a function and its layers (AWS's quotas page: 250 MB).
pub const UNZIPPED_BYTES: u64 = 250 * 1024 * 1024;
/// Files of a zip: AWS has no such limit; a bound must be.
const ENTRIES: usize = 200_000;
/// Longest target of a symbolic link (the kernel's own limit).
const LINK_BYTES: u64 = 4_096;
/// What a `S3Bucket` of this name means: `S3Key` is a directory of this machine.
pub const LOCAL_BUCKET: &str = "danki-local";

/// Base64 of SHA-256, as `CodeSha256` has it.
pub fn sha256(bytes: &[u8]) -> String {
    STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, bytes))
}

/// Decodes a `ZipFile` of a request.
pub fn decode(text: &str) -> Result<Vec<u8>, Fault> {
    STANDARD.decode(text).map_err(|_| unreadable())
}

/// Unpacks a zip below `into`, unless the same zip is already there.
pub fn unpack(zip: &[u8], into: &Path) -> Result<CodeOf, Fault> {
    let sha256 = sha256(zip);
    let name: String = sha256.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let (dir, kept) = (into.join(&name), into.join(format!("{name}.zip")));
    let code = CodeOf { dir, zip: Some(kept), sha256, size: zip.len() as u64, local: false };
    if code.dir.is_dir() {
        return Ok(code);
    }
    let partial = into.join(format!("{name}.partial"));
    let disk = |error: io::Error| Fault::service(format!("danki cannot keep the code: {error}"));
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(disk)?;
    }
    fs::create_dir_all(&partial).map_err(disk)?;
    let unpacked = extract(zip, &partial, UNZIPPED_BYTES);
    if let Err(fault) = unpacked {
        fs::remove_dir_all(&partial).ok();
        return Err(fault);
    }
    fs::write(into.join(format!("{name}.zip")), zip).map_err(disk)?;
    fs::rename(&partial, &code.dir).map_err(disk)?;
    Ok(code)
}

/// A directory of the user's as code.
pub fn local(path: &str) -> Result<CodeOf, Fault> {
    let dir = Path::new(path);
    if !dir.is_absolute() || !dir.is_dir() {
        return Err(Fault::invalid(format!(
            "S3Key {path:?} of bucket {LOCAL_BUCKET} must be the absolute path of a directory on this machine"
        )));
    }
    let sha256 = sha256(path.as_bytes());
    Ok(CodeOf { dir: dir.to_path_buf(), zip: None, sha256, size: size_of(dir), local: true })
}

/// A container image as code: `ImageUri` is a file here, because there is no registry.
pub fn image(uri: &str) -> Result<CodeOf, Fault> {
    let path = Path::new(uri.strip_prefix("file://").unwrap_or(uri));
    if !path.is_absolute() || !path.is_file() {
        return Err(Fault::invalid(format!(
            "ImageUri {uri:?} must be the absolute path of a file on this machine: what `docker save IMAGE -o FILE` wrote, or an OCI archive"
        )));
    }
    let size = path.metadata().map_or(0, |file| file.len());
    Ok(CodeOf { dir: path.to_path_buf(), zip: None, sha256: sha256(uri.as_bytes()), size, local: true })
}

fn size_of(dir: &Path) -> u64 {
    let entries = dir.read_dir().into_iter().flatten().flatten();
    entries.filter_map(|e| e.metadata().ok()).filter(|m| m.is_file()).map(|m| m.len()).sum()
}

fn unreadable() -> Fault {
    Fault::invalid("Could not unzip uploaded file. Please check your file, then try to upload again.")
}

fn too_large(limit: u64) -> Fault {
    Fault::invalid(format!("Unzipped size must be smaller than {limit} bytes"))
}

/// Files first, links last: so nothing is ever written through a link of the same zip.
fn extract(zip: &[u8], root: &Path, limit: u64) -> Result<(), Fault> {
    let mut archive = ZipArchive::new(Cursor::new(zip)).map_err(|_| unreadable())?;
    if archive.is_empty() || archive.len() > ENTRIES {
        return Err(unreadable());
    }
    let mut left = limit;
    let mut links = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|_| unreadable())?;
        let name = entry.enclosed_name().ok_or_else(unreadable)?;
        let path = root.join(&name);
        if entry.is_dir() {
            fs::create_dir_all(&path).map_err(|_| unreadable())?;
        } else if entry.is_symlink() {
            let mut target = String::new();
            entry.take(LINK_BYTES).read_to_string(&mut target).map_err(|_| unreadable())?;
            links.push((name, PathBuf::from(target)));
        } else {
            let mode = entry.unix_mode().unwrap_or(0o644);
            left -= write(&mut entry, &path, mode, left, limit)?;
        }
    }
    links.into_iter().try_for_each(|(name, target)| link(root, &name, &target))
}

/// Writes at most `left` bytes. Files are readable for everyone: the function's user is not the owner.
fn write(entry: &mut impl Read, path: &Path, mode: u32, left: u64, limit: u64) -> Result<u64, Fault> {
    let parent = path.parent().ok_or_else(unreadable)?;
    fs::create_dir_all(parent).map_err(|_| unreadable())?;
    let mut file = File::create(path).map_err(|_| unreadable())?;
    let written = io::copy(&mut entry.take(left + 1), &mut file).map_err(|_| unreadable())?;
    if written > left {
        return Err(too_large(limit));
    }
    let mode = (mode & 0o777) | 0o444;
    file.set_permissions(Permissions::from_mode(mode)).map_err(|_| unreadable())?;
    Ok(written)
}

/// A link may climb only at its beginning, and not above the root; every directory on the way to it is a real one.
fn link(root: &Path, name: &Path, target: &Path) -> Result<(), Fault> {
    let depth = name.components().count() - 1;
    let mut climbing = 0;
    let mut descended = false;
    for part in target.components() {
        match part {
            Component::ParentDir if !descended => climbing += 1,
            Component::Normal(_) => descended = true,
            Component::CurDir => {}
            _ => return Err(unreadable()),
        }
    }
    if climbing > depth || target.as_os_str().is_empty() {
        return Err(unreadable());
    }
    let path = root.join(name);
    let parents = name.ancestors().skip(1).map(|a| root.join(a));
    for parent in parents {
        if parent.symlink_metadata().is_ok_and(|m| m.is_symlink()) {
            return Err(unreadable());
        }
    }
    fs::create_dir_all(path.parent().ok_or_else(unreadable)?).map_err(|_| unreadable())?;
    symlink(target, path).map_err(|_| unreadable())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    fn zip_of(build: impl FnOnce(&mut ZipWriter<Cursor<Vec<u8>>>)) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        build(&mut writer);
        writer.finish().expect("written").into_inner()
    }

    fn file(writer: &mut ZipWriter<Cursor<Vec<u8>>>, name: &str, content: &[u8], mode: u32) {
        writer.start_file(name, SimpleFileOptions::default().unix_permissions(mode)).expect("started");
        writer.write_all(content).expect("written");
    }

    #[test]
    fn a_zip_is_unpacked_once_and_readable() {
        let root = tempfile::tempdir().expect("a directory");
        let zip = zip_of(|w| {
            file(w, "a/app.py", b"x", 0o600);
            file(w, "bootstrap", b"y", 0o755);
            w.add_symlink("a/link", "../bootstrap", SimpleFileOptions::default()).expect("added");
        });
        let code = unpack(&zip, root.path()).expect("fine");
        let mode = |name: &str| code.dir.join(name).metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!((mode("a/app.py"), mode("bootstrap")), (0o644, 0o755));
        assert_eq!(fs::read(code.dir.join("a/link")).expect("followed"), b"y");
        assert_eq!(unpack(&zip, root.path()).expect("again"), code);
    }

    #[test]
    fn nothing_escapes() {
        for name in ["../evil", "/etc/evil", "a/../../evil"] {
            let root = tempfile::tempdir().expect("a directory");
            let zip = zip_of(|w| file(w, name, b"x", 0o644));
            let inside = root.path().join("deep");
            fs::create_dir(&inside).expect("made");
            unpack(&zip, &inside).ok();
            assert!(!root.path().join("evil").exists() && !Path::new("/etc/evil").exists(), "{name}");
        }
        for (name, target) in
            [("l", "/etc/passwd"), ("l", ".."), ("a/l", "../../x"), ("a/l", "b/../../../x"), ("l", "")]
        {
            let root = tempfile::tempdir().expect("a directory");
            let zip = zip_of(|w| {
                file(w, "app.py", b"x", 0o644);
                w.add_symlink(name, target, SimpleFileOptions::default()).expect("added");
            });
            assert!(unpack(&zip, root.path()).is_err(), "{name} -> {target}");
        }
        let root = tempfile::tempdir().expect("a directory");
        let zip = zip_of(|w| {
            w.add_symlink("d", "e", SimpleFileOptions::default()).expect("added");
            w.add_symlink("d/l", "../x", SimpleFileOptions::default()).expect("added");
        });
        assert!(unpack(&zip, root.path()).is_err(), "a link below a link");
    }

    #[test]
    fn a_bomb_is_cut() {
        let root = tempfile::tempdir().expect("a directory");
        let zip = zip_of(|w| file(w, "zeros", &vec![0; 1 << 20], 0o644));
        let fault = extract(&zip, root.path(), 1 << 19).expect_err("too large");
        assert_eq!(fault.message, "Unzipped size must be smaller than 524288 bytes");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_refused_or_unpacked(mut bytes in prop::collection::vec(any::<u8>(), 0..400), at in 0_usize..200) {
            let root = tempfile::tempdir().expect("a directory");
            unpack(&bytes, root.path()).ok();
            let mut zip = zip_of(|w| file(w, "a", b"hello", 0o644));
            if let (Some(byte), Some(new)) = (zip.get_mut(at), bytes.pop()) {
                *byte = new;
            }
            unpack(&zip, root.path()).ok();
        }
    }
}
