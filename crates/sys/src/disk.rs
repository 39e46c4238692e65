//! Disks of envs: an ext4 file system on a loop device over a sparse file that has no name, so that what a function writes to `/tmp` is
//! neither charged to its memory for good nor left behind. One file system per size is made by `mkfs.ext4`; the rest are copies.

use crate::Error;
use crate::error::Trying;
use crate::mounts;
use rustix::fs::{CWD, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

// linux/loop.h
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LO_FLAGS_AUTOCLEAR: u32 = 4;

/// Somebody else may take the free device that was just found; each of 64 callers at once loses to fewer than this.
const ATTEMPTS: u32 = 64;

/// Without this the kernel fills inode tables in the background, and each commit waits for the host's disk.
const MOUNT_OPTIONS: [(&str, Option<&str>); 2] = [("noinit_itable", None), ("nobarrier", None)];

/// Makes disks. Templates live in the run's directory.
#[derive(Debug)]
pub(crate) struct Disks {
    dir: PathBuf,
    templates: Mutex<HashMap<u32, Result<Arc<File>, String>>>,
}

impl Disks {
    pub(crate) fn new(dir: &Path) -> Disks {
        Disks { dir: dir.to_owned(), templates: Mutex::default() }
    }

    /// A new, empty disk, mounted but not yet attached. The error says why it has to be a tmpfs.
    pub(crate) fn make(&self, size_mb: u32) -> Result<OwnedFd, String> {
        let template = self.template(size_mb)?;
        self.mount(&template, size_mb).map_err(|error| error.to_string())
    }

    fn template(&self, size_mb: u32) -> Result<Arc<File>, String> {
        let mut templates = self.templates.lock().unwrap_or_else(PoisonError::into_inner);
        let made = templates.entry(size_mb).or_insert_with(|| self.make_template(size_mb).map(Arc::new));
        made.clone()
    }

    fn make_template(&self, size_mb: u32) -> Result<File, String> {
        let path = self.dir.join(format!("disk-{size_mb}.img"));
        let run = || -> std::io::Result<_> {
            File::create(&path)?.set_len(u64::from(size_mb) * 1024 * 1024)?;
            let features =
                ["-O", "^has_journal,^resize_inode", "-E", "lazy_itable_init=1,nodiscard,root_owner=0:0"];
            let mut mkfs = Command::new("mkfs.ext4");
            mkfs.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").args(["-q", "-F", "-m", "0", "-b", "4096"]);
            mkfs.args(features).arg(&path).stdin(Stdio::null()).output()
        };
        let output = run().map_err(|error| format!("mkfs.ext4: {error}"))?;
        let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        std::fs::remove_file(&path).ok();
        match output.status.success() {
            true => Ok(file),
            false => Err(format!("mkfs.ext4: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    }

    fn mount(&self, template: &File, size_mb: u32) -> Result<OwnedFd, Error> {
        let image = rustix::fs::openat(
            CWD,
            &self.dir,
            OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC,
            Mode::from_raw_mode(0o600),
        )
        .trying(|| format!("make a file in {}", self.dir.display()))?;
        copy_sparse(template, &image, size_mb).trying(|| format!("copy a disk of {size_mb} MiB"))?;
        let (device, path) = attach(&image).trying(|| "attach a loop device".to_owned())?;
        let source = ("source", path.to_str());
        let options: Vec<_> = [source].into_iter().chain(MOUNT_OPTIONS).collect();
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOATIME;
        let mount = mounts::new("ext4", &options, attributes)
            .trying(|| format!("mount ext4 from {}", path.display()));
        drop(device);
        mount
    }
}

/// Copies the parts that hold data; the rest stays a hole.
fn copy_sparse(from: &File, to: &OwnedFd, size_mb: u32) -> Result<(), Errno> {
    rustix::fs::ftruncate(to, u64::from(size_mb) * 1024 * 1024)?;
    let mut at = 0;
    loop {
        // Other threads copy from the same description: only its size of holes is looked at, never its position.
        let start = match rustix::fs::seek(from, SeekFrom::Data(at)) {
            Err(Errno::NXIO) => return Ok(()),
            other => other?,
        };
        let end = rustix::fs::seek(from, SeekFrom::Hole(start))?;
        let (mut read, mut written) = (start, start);
        while read < end {
            let length = usize::try_from(end - read).expect("a piece of a disk fits into memory");
            if rustix::fs::copy_file_range(from, Some(&mut read), to, Some(&mut written), length)? == 0 {
                return Err(Errno::IO);
            }
        }
        at = end;
    }
}

/// A loop device over the image, which detaches itself when nobody uses it any more.
fn attach(image: &OwnedFd) -> Result<(OwnedFd, PathBuf), Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let control = rustix::fs::open("/dev/loop-control", flags, Mode::empty())?;
    for _ in 0..ATTEMPTS {
        // SAFETY: LOOP_CTL_GET_FREE takes no argument.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
        if number < 0 {
            return Err(last_error());
        }
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = rustix::fs::open(&path, flags, Mode::empty())?;
        match configure(&device, image) {
            Err(Errno::BUSY) => {}
            other => return other.map(|()| (device, path)),
        }
    }
    Err(Errno::BUSY)
}

/// `struct loop_config`; offsets and sizes from linux/loop.h.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    /// Device, inode, rdevice, offset and size limit.
    numbers: [u64; 5],
    /// Number, encryption type and key size.
    kinds: [u32; 3],
    flags: u32,
    /// Names, key and `lo_init`.
    names: [u64; 22],
    reserved: [u64; 8],
}
const _: () = assert!(size_of::<LoopConfig>() == 304);

fn configure(device: &OwnedFd, image: &OwnedFd) -> Result<(), Errno> {
    let config = LoopConfig {
        fd: image.as_raw_fd().cast_unsigned(),
        block_size: 4096,
        numbers: [0; 5],
        kinds: [0; 3],
        flags: LO_FLAGS_AUTOCLEAR,
        names: [0; 22],
        reserved: [0; 8],
    };
    // SAFETY: LOOP_CONFIGURE reads one `loop_config`, which outlives the call.
    match unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
