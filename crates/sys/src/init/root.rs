//! The file system of an env: a tmpfs that is filled, made read-only and put in place of the host's.
//!
//! Paths inside are resolved with `RESOLVE_IN_ROOT`: a link in a function's package cannot make anything happen outside.

use crate::message::{Failure, Step};
use crate::mounts;
use crate::plan::{MountPlan, RootPlan};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, makedev, mkdirat, mknodat, openat2, symlinkat};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountFlags, MountPropagationFlags, UnmountFlags};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The root holds directories and small files only.
const ROOT_SIZE: &str = "16m";

/// Fills a new root and makes it ours. `disks` are the file systems for the plan's disks, in order; `None` becomes a tmpfs.
pub(super) fn apply(plan: &RootPlan, staging: &Path, disks: Vec<Option<OwnedFd>>) -> Result<(), Failure> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).step(|| "make the mounts private".to_owned())?;
    let options = [("mode", Some("755")), ("size", Some(ROOT_SIZE))];
    let root = mounts::new("tmpfs", &options, MountAttrFlags::MOUNT_ATTR_NOSUID)
        .step(|| "make a tmpfs".to_owned())?;
    let place = rustix::fs::open(staging, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .step(|| format!("open {}", staging.display()))?;
    mounts::attach(&root, &place).step(|| format!("mount the root at {}", staging.display()))?;
    let mut filler = Filler { root, disks: disks.into_iter() };
    for mount in &plan.mounts {
        filler.add(mount)?;
    }
    filler.enter().step(|| "enter the new root".to_owned())
}

struct Filler {
    root: OwnedFd,
    disks: std::vec::IntoIter<Option<OwnedFd>>,
}

impl Filler {
    fn add(&mut self, plan: &MountPlan) -> Result<(), Failure> {
        match plan {
            MountPlan::Bind { source, target, read_only } => self
                .bind(source, target, *read_only)
                .step(|| format!("bind {} to {}", source.display(), target.display())),
            MountPlan::Tmpfs { target, size_mb, mode } => self
                .tmpfs(target, *size_mb, *mode)
                .step(|| format!("mount a tmpfs of {size_mb} MiB at {}", target.display())),
            MountPlan::Disk { target, size_mb, mode } => match self.disks.next().flatten() {
                Some(disk) => {
                    self.disk(&disk, target, *mode).step(|| format!("mount the disk at {}", target.display()))
                }
                None => self
                    .tmpfs(target, *size_mb, *mode)
                    .step(|| format!("mount a tmpfs at {}", target.display())),
            },
            MountPlan::Overlay { target, lower } => self
                .overlay(target, lower)
                .step(|| format!("merge {} directories at {}", lower.len(), target.display())),
            MountPlan::Proc { target } => {
                self.proc(target).step(|| format!("mount proc at {}", target.display()))
            }
            MountPlan::Dev { target } => self.dev(target).step(|| format!("fill {}", target.display())),
            MountPlan::File { target, content, mode } => {
                self.file(target, content, *mode).step(|| format!("write {}", target.display()))
            }
            MountPlan::Symlink { target, to } => {
                self.symlink(target, to).step(|| format!("link {} to {}", target.display(), to.display()))
            }
        }
    }

    fn bind(&self, source: &Path, target: &Path, read_only: bool) -> Result<(), Errno> {
        let tree = mounts::copy(source)?;
        let is_dir =
            rustix::fs::fstat(&tree).map(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory)?;
        let read_only = if read_only { MountAttrFlags::MOUNT_ATTR_RDONLY } else { MountAttrFlags::empty() };
        mounts::restrict(&tree, read_only | MountAttrFlags::MOUNT_ATTR_NOSUID, true)?;
        mounts::attach(&tree, self.place(target, is_dir)?)
    }

    fn tmpfs(&self, target: &Path, size_mb: u32, mode: u32) -> Result<(), Errno> {
        let (size, mode) = (format!("{size_mb}m"), format!("{mode:o}"));
        let options = [("mode", Some(mode.as_str())), ("size", Some(size.as_str()))];
        mounts::attach(mounts::new("tmpfs", &options, untrusted())?, self.place(target, true)?)
    }

    fn disk(&self, disk: &OwnedFd, target: &Path, mode: u32) -> Result<(), Errno> {
        let place = self.place(target, true)?;
        mounts::attach(disk, &place)?;
        // Of mkfs; a new disk is empty.
        rustix::fs::unlinkat(disk, "lost+found", rustix::fs::AtFlags::REMOVEDIR).ok();
        rustix::fs::chmodat(disk, ".", Mode::from_raw_mode(mode), rustix::fs::AtFlags::empty())
    }

    /// The older interface: an option of the new one holds 255 bytes, a list of directories can be longer.
    fn overlay(&self, target: &Path, lower: &[PathBuf]) -> Result<(), Errno> {
        let escaped = |dir: &PathBuf| {
            dir.display().to_string().replace('\\', "\\\\").replace(':', "\\:").replace(',', "\\,")
        };
        let dirs: Vec<String> = lower.iter().rev().map(escaped).collect();
        let place = self.place(target, true)?;
        let target = format!("/proc/self/fd/{}", place.as_raw_fd());
        let data =
            std::ffi::CString::new(format!("lowerdir={}", dirs.join(":"))).map_err(|_| Errno::INVAL)?;
        let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount("overlay", target, "overlay", flags, data.as_c_str())
    }

    /// Processes of other users (there is only pid 1) are not shown.
    fn proc(&self, target: &Path) -> Result<(), Errno> {
        let attributes = untrusted() | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let proc = mounts::new("proc", &[("hidepid", Some("2"))], attributes)
            .or_else(|_| mounts::new("proc", &[], attributes))?;
        mounts::attach(proc, self.place(target, true)?)
    }

    fn dev(&self, target: &Path) -> Result<(), Errno> {
        let dir = self.place(target, true)?;
        for (name, major, minor) in [
            ("null", 1, 3),
            ("zero", 1, 5),
            ("full", 1, 7),
            ("random", 1, 8),
            ("urandom", 1, 9),
            ("tty", 5, 0),
        ] {
            match mknodat(
                &dir,
                name,
                FileType::CharacterDevice,
                Mode::from_raw_mode(0o666),
                makedev(major, minor),
            ) {
                // In a user namespace devices cannot be made, only borrowed.
                Err(Errno::PERM) => self.bind(&Path::new("/dev").join(name), &target.join(name), false)?,
                other => other?,
            }
        }
        for (name, to) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
            symlinkat(format!("/proc/self/fd{to}"), &dir, name)?;
        }
        Ok(())
    }

    fn file(&self, target: &Path, content: &str, mode: u32) -> Result<(), Errno> {
        let (dir, name) = self.parent(target)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(mode))?);
        file.write_all(content.as_bytes()).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))
    }

    fn symlink(&self, target: &Path, to: &Path) -> Result<(), Errno> {
        let (dir, name) = self.parent(target)?;
        symlinkat(to, dir, name)
    }

    /// Opens the place of a mount, making it where it is missing.
    fn place(&self, target: &Path, is_dir: bool) -> Result<OwnedFd, Errno> {
        match self.open(target) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        let (dir, name) = self.parent(target)?;
        if is_dir {
            mkdirat(&dir, name, Mode::from_raw_mode(0o755))?;
        } else {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            rustix::fs::openat(&dir, name, flags, Mode::from_raw_mode(0o644))?;
        }
        self.open(target)
    }

    fn open(&self, target: &Path) -> Result<OwnedFd, Errno> {
        openat2(&self.root, target, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::IN_ROOT)
    }

    fn parent<'p>(&self, target: &'p Path) -> Result<(OwnedFd, &'p [u8]), Errno> {
        let name = target.file_name().ok_or(Errno::INVAL)?;
        let parent = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("/"));
        Ok((self.place(parent, true)?, name.as_bytes()))
    }

    /// The host's tree is detached from the namespace; nothing inside leads back to it.
    fn enter(self) -> Result<(), Errno> {
        mounts::restrict(&self.root, MountAttrFlags::MOUNT_ATTR_RDONLY, false)?;
        rustix::process::fchdir(&self.root)?;
        rustix::process::pivot_root(".", ".")?;
        rustix::mount::unmount(".", UnmountFlags::DETACH)?;
        rustix::process::chdir("/")
    }
}

fn untrusted() -> MountAttrFlags {
    MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV
}

/// The disks of a plan, in order.
pub(crate) fn disks(plan: &RootPlan) -> impl Iterator<Item = u32> {
    plan.mounts.iter().filter_map(|mount| match mount {
        MountPlan::Disk { size_mb, .. } => Some(*size_mb),
        _ => None,
    })
}
