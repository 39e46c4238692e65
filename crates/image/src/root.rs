//! A directory as the root of its own paths: a link in it leads to a place in it, whatever it says, because the kernel resolves
//! every path with `RESOLVE_IN_ROOT`.

use crate::Error;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Timespec, Timestamps, UTIME_OMIT, fchmod, fstat,
    futimens, linkat, mkdirat, openat, openat2, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Directories on the way to an entry that are made where they are missing.
const DIR_MODE: u32 = 0o755;

/// An open directory.
pub(crate) struct Root(OwnedFd);

impl Root {
    pub fn open(dir: &Path) -> Result<Root, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, dir, flags, Mode::empty());
        opened.map(Root).map_err(|e| Error::File { path: dir.to_path_buf(), source: e.into() })
    }

    /// A directory inside, if it is there.
    pub fn existing(&self, path: &Path) -> Result<Option<OwnedFd>, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match openat2(&self.0, path, flags, Mode::empty(), resolve) {
            Ok(dir) => Ok(Some(dir)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Permissions of the file that a path leads to; none if it leads to no file.
    pub fn mode(&self, path: &Path) -> Option<u32> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let file = openat2(&self.0, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve).ok()?;
        let stat = fstat(&file).ok()?;
        (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some(stat.st_mode & 0o777)
    }

    /// A directory inside, made with all on the way where it is missing. `path` is relative and does not climb.
    pub fn dir(&self, path: &Path) -> Result<OwnedFd, Errno> {
        if let Some(dir) = self.existing(path)? {
            return Ok(dir);
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
        let parent = self.dir(parent)?;
        mkdirat(&parent, name, Mode::from_raw_mode(DIR_MODE))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&parent, name, flags, Mode::empty())
    }
}

/// What has this name, itself and not what it leads to.
fn kind(dir: &OwnedFd, name: &OsStr) -> Option<FileType> {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| FileType::from_raw_mode(stat.st_mode))
}

/// Takes away what has this name, with all below it. `name` is one name, not `.` or `..`.
pub(crate) fn remove(dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match kind(dir, name) {
        None => Ok(()),
        Some(FileType::Directory) => fs::remove_dir_all(path_of(dir).join(name)),
        Some(_) => Ok(unlinkat(dir, name, AtFlags::empty())?),
    }
}

/// Takes away all that is in a directory.
pub(crate) fn empty(dir: &OwnedFd) -> io::Result<()> {
    for entry in fs::read_dir(path_of(dir))? {
        remove(dir, &entry?.file_name())?;
    }
    Ok(())
}

/// A new, empty file under this name, open for writing.
pub(crate) fn create(dir: &OwnedFd, name: &OsStr) -> io::Result<File> {
    remove(dir, name)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(dir, name, flags, Mode::from_raw_mode(0o600))?))
}

/// Permissions and time of a file that was written. Python compares the time with that of its compiled form.
pub(crate) fn finish(file: &File, mode: u32, mtime_s: u64) -> io::Result<()> {
    fchmod(file, Mode::from_raw_mode(mode & 0o777))?;
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let modified = Timespec { tv_sec: i64::try_from(mtime_s).unwrap_or(0), tv_nsec: 0 };
    Ok(futimens(file, &Timestamps { last_access: now, last_modification: modified })?)
}

/// A directory under this name: the one that is there, or a new one. It stays open to its owner, who has to fill and remove it.
pub(crate) fn make_dir(dir: &OwnedFd, name: &OsStr, mode: u32) -> io::Result<()> {
    if kind(dir, name) != Some(FileType::Directory) {
        remove(dir, name)?;
        mkdirat(dir, name, Mode::from_raw_mode(0o700))?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = openat(dir, name, flags, Mode::empty())?;
    Ok(fchmod(made, Mode::from_raw_mode((mode & 0o1777) | 0o700))?)
}

/// A plain file under this name: the one that is there, or an empty one.
pub(crate) fn place(dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match kind(dir, name) {
        Some(FileType::RegularFile) => Ok(()),
        Some(FileType::Directory) => Err(io::ErrorKind::IsADirectory.into()),
        _ => finish(&create(dir, name)?, 0o644, 0),
    }
}

pub(crate) fn symlink(dir: &OwnedFd, name: &OsStr, target: &Path) -> io::Result<()> {
    remove(dir, name)?;
    Ok(symlinkat(target, dir, name)?)
}

/// Another name for a file; of a link to one, the link.
pub(crate) fn hard_link(from: (&OwnedFd, &OsStr), to: (&OwnedFd, &OsStr)) -> io::Result<()> {
    let id = |(dir, name): (&OwnedFd, &OsStr)| {
        statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| (stat.st_dev, stat.st_ino))
    };
    if id(from).is_some() && id(from) == id(to) {
        return Ok(());
    }
    remove(to.0, to.1)?;
    Ok(linkat(from.0, from.1, to.0, to.1, AtFlags::empty())?)
}

fn path_of(dir: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()))
}
