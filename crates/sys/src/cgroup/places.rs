//! Where danki may create cgroups: read from `/proc/self/mountinfo` and `/proc/self/cgroup`, so that a danki that runs in a container
//! or a delegated scope stays in it. Pure but for [`here`].

use super::tree::LEAF;
use super::words::{Controller, Version};
use std::path::{Path, PathBuf};

/// A directory below which cgroups for a controller are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub controller: Controller,
    pub version: Version,
    /// Mount point of the hierarchy.
    pub top: PathBuf,
    /// The cgroup that danki itself is in, or was before it made room (then it is in [`LEAF`]); below `top`.
    pub own: PathBuf,
}

/// The places of this process.
pub(crate) fn here() -> Vec<Place> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let offered = |top: &Path| std::fs::read_to_string(top.join("cgroup.controllers")).unwrap_or_default();
    find(&mounts, &own, offered)
}

/// Version 1 where it has the controller, else version 2. `offered` reads `cgroup.controllers` of a version 2 directory.
fn find(mountinfo: &str, own: &str, offered: impl Fn(&Path) -> String) -> Vec<Place> {
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
    let place = |controller: Controller| {
        let v1 = mounts
            .iter()
            .find(|m| m.version == Version::V1 && m.options.split(',').any(|o| o == controller.name()));
        let found = v1.or_else(|| {
            mounts.iter().find(|m| {
                m.version == Version::V2
                    && (has_no_file(controller) || lists(&offered(&m.point), controller.name()))
            })
        })?;
        let path = own.lines().find_map(|line| own_path(line, found.version, controller))?;
        let own = found.resolve(path);
        let own = if own.ends_with(LEAF) { own.parent().map_or(own.clone(), Path::to_owned) } else { own };
        Some(Place { controller, version: found.version, top: found.point.clone(), own })
    };
    let mut places: Vec<Place> = Controller::ALL.into_iter().filter_map(place).collect();
    drop_lonely_v2_cpuacct(&mut places);
    places
}

/// Part of version 2's core, not listed in `cgroup.controllers`.
fn has_no_file(controller: Controller) -> bool {
    matches!(controller, Controller::Cpuacct | Controller::Freezer)
}

/// `cpu.stat` of version 2 counts CPU time even where the cpu controller is elsewhere; it is read only with the cpu controller.
fn drop_lonely_v2_cpuacct(places: &mut Vec<Place>) {
    let cpu_is_v2 = places.iter().any(|p| p.controller == Controller::Cpu && p.version == Version::V2);
    places.retain(|p| p.controller != Controller::Cpuacct || p.version == Version::V1 || cpu_is_v2);
}

fn lists(controllers: &str, name: &str) -> bool {
    controllers.split_whitespace().any(|word| word == name)
}

/// `4:memory:/a/b` → `/a/b` if the line is about this controller.
fn own_path(line: &str, version: Version, controller: Controller) -> Option<&str> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let matches = match version {
        Version::V1 => controllers.split(',').any(|name| name == controller.name()),
        Version::V2 => controllers.is_empty(),
    };
    matches.then_some(path)
}

struct Mount {
    version: Version,
    /// Which directory of the hierarchy is mounted.
    root: PathBuf,
    point: PathBuf,
    options: String,
}

impl Mount {
    /// `35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory`, see proc(5).
    fn parse(line: &str) -> Option<Mount> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, point) = (left.next()?, left.next()?);
        let mut right = right.split(' ');
        let version = match right.next()? {
            "cgroup" => Version::V1,
            "cgroup2" => Version::V2,
            _ => return None,
        };
        let options = right.nth(1)?.to_owned();
        Some(Mount { version, root: unescape(root), point: unescape(point), options })
    }

    /// Where `path` of the hierarchy is seen. Paths outside of what is mounted (a cgroup namespace prints `/../..`) fall back to the
    /// mount point itself.
    fn resolve(&self, path: &str) -> PathBuf {
        let below = Path::new(path).strip_prefix(&self.root).ok();
        let inside = below.filter(|p| p.components().all(|c| matches!(c, std::path::Component::Normal(_))));
        inside.filter(|p| !p.as_os_str().is_empty()).map_or(self.point.clone(), |p| self.point.join(p))
    }
}

/// `\040` is a space in mountinfo.
fn unescape(field: &str) -> PathBuf {
    PathBuf::from(field.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mountinfo: &str, own: &str, offered: &str, expect: &[(&str, Version, &str, &str)]) {
        let got = find(mountinfo, own, |_| offered.to_owned());
        let got: Vec<_> = got
            .iter()
            .map(|p| (p.controller.name(), p.version, p.top.to_str().unwrap(), p.own.to_str().unwrap()))
            .collect();
        assert_eq!(got, expect);
    }

    #[test]
    fn version_1_with_a_nested_memory_cgroup() {
        check(
            "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
             33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n\
             35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             37 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            "6:freezer:/\n4:memory:/process_api/a90d\n2:cpuacct:/\n1:cpu:/\n0::/\n",
            "hugetlb\n",
            &[
                ("cpu", Version::V1, "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu"),
                ("cpuacct", Version::V1, "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpuacct"),
                ("memory", Version::V1, "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/process_api/a90d"),
                ("freezer", Version::V1, "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/freezer"),
            ],
        );
    }

    #[test]
    fn version_1_co_mounted_in_a_container() {
        check(
            "50 49 0:26 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n",
            "4:cpu,cpuacct:/docker/abc\n",
            "",
            &[
                ("cpu", Version::V1, "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct"),
                ("cpuacct", Version::V1, "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct"),
            ],
        );
    }

    #[test]
    fn version_2_in_a_user_scope() {
        let own = "/sys/fs/cgroup/user.slice/user-1000.slice/danki.scope";
        let top = "/sys/fs/cgroup";
        // Also when it has made room in it.
        for from in ["danki.scope", "danki.scope/danki-main"] {
            check(
                "30 24 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n",
                &format!("0::/user.slice/user-1000.slice/{from}\n"),
                "cpuset cpu io memory pids\n",
                &[
                    ("cpu", Version::V2, top, own),
                    ("cpuacct", Version::V2, top, own),
                    ("memory", Version::V2, top, own),
                    ("freezer", Version::V2, top, own),
                    ("pids", Version::V2, top, own),
                ],
            );
        }
    }

    #[test]
    fn a_cgroup_namespace_that_points_outside_uses_the_mount() {
        check(
            "30 24 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "0::/../..\n",
            "pids",
            &[
                ("freezer", Version::V2, "/sys/fs/cgroup", "/sys/fs/cgroup"),
                ("pids", Version::V2, "/sys/fs/cgroup", "/sys/fs/cgroup"),
            ],
        );
    }

    #[test]
    fn nothing_mounted_is_nothing_found() {
        check("22 1 8:1 / / rw - ext4 /dev/vda rw\n", "0::/\n", "", &[]);
    }
}
