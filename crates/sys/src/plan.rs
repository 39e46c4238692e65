//! What an env is made of, as data. `host` decides and snapshot-tests it; the keeper's children apply it word by word.

use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// A whole env, but for the processes in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvPlan {
    /// Number of the env within its run; names its cgroup.
    pub id: u32,
    /// Host name inside.
    pub hostname: String,
    /// Who the processes are.
    pub user: UserPlan,
    /// Resource limits of the processes.
    pub rlimits: Vec<RlimitPlan>,
    /// CPUs that the processes may run on (`sched_setaffinity`); at most those that the host has.
    pub visible_cpus: u32,
    /// Limits of all processes together.
    pub cgroup: CgroupPlan,
    /// Network of its own.
    pub net: NetPlan,
    /// Files. `None`: only a network, in which no process can be started.
    pub root: Option<RootPlan>,
}

/// User of the env's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserPlan {
    /// User number inside.
    pub uid: u32,
    /// Group number inside; there are no further groups.
    pub gid: u32,
}

/// One resource limit. Clamped to what danki itself may have; a clamped one is a caveat of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RlimitPlan {
    /// Name without `RLIMIT_`, in any case: `NOFILE`.
    pub name: String,
    /// Soft limit; `u64::MAX` is no limit.
    pub soft: u64,
    /// Hard limit; `u64::MAX` is no limit.
    pub hard: u64,
}

/// Limits of all processes of the env together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CgroupPlan {
    /// CPU time in µs per period; at least 1,000. `None`: no quota.
    pub cpu_quota_us: Option<u64>,
    /// Length of a period in µs.
    pub cpu_period_us: u64,
    /// When in time the quota is refilled.
    pub cpu_refill: Refill,
    /// Memory in bytes, swap forbidden. `None`: no limit.
    pub memory_bytes: Option<u64>,
    /// Processes and threads. `None`: no limit.
    pub pids_max: Option<u32>,
}

/// When a CPU quota is refilled, relative to the scheduler's tick. A process that has used up its quota runs on until the next tick, so
/// this decides how long it runs between two pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refill {
    /// As the kernel draws it for each cgroup (Linux 6.4 and later; before, it was the same for all).
    #[default]
    Drawn,
    /// On a tick.
    AtTick,
}

/// Network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetPlan {
    /// The only way out.
    pub tun: Option<TunPlan>,
    /// Addresses added to `lo`, each `/32`. 127.0.0.1 is always there.
    pub loopback: Vec<Ipv4Addr>,
    /// `ip route add local NET dev lo`: every address of the net is this machine's own.
    pub local_any: Option<(Ipv4Addr, u8)>,
    /// Networks that are reached through the TUN.
    pub routes: Vec<(Ipv4Addr, u8)>,
    /// Sockets made inside and handed to danki, in this order.
    pub sockets: Vec<SocketPlan>,
}

/// A TUN device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunPlan {
    /// Address of the env.
    pub address: Ipv4Addr,
    /// Length of its network's prefix.
    pub prefix: u8,
    /// Largest packet in bytes.
    pub mtu: u32,
    /// `IFF_VNET_HDR` with checksum and segmentation offload: a 10-byte `virtio_net_hdr` comes before each packet.
    pub offload: bool,
    /// Everything that has no other route goes through the TUN.
    pub default_route: bool,
}

/// A socket inside the env's network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SocketPlan {
    /// Listening, non-blocking.
    Tcp {
        /// Where.
        addr: SocketAddr,
        /// Connections that wait to be accepted.
        backlog: i32,
    },
    /// Bound, non-blocking.
    Udp {
        /// Where.
        addr: SocketAddr,
    },
}

/// File system of the env: a tmpfs with mounts in it, read-only at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootPlan {
    /// Applied in this order. Missing directories of targets are made as long as they lie in the root itself.
    pub mounts: Vec<MountPlan>,
}

/// One mount, file or link. Targets are absolute paths inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MountPlan {
    /// A directory or file of the host, with what is mounted below it.
    Bind {
        /// On the host.
        source: PathBuf,
        /// Inside.
        target: PathBuf,
        /// Nothing can be written through it.
        read_only: bool,
    },
    /// Memory that is charged to the env.
    Tmpfs {
        /// Inside.
        target: PathBuf,
        /// Size in MiB.
        size_mb: u32,
        /// Permissions of its root.
        mode: u32,
    },
    /// A disk of its own (ext4 on a loop device), not charged to the env's memory beyond page cache that the kernel takes back.
    /// Where that is not possible it becomes a tmpfs, with a caveat.
    Disk {
        /// Inside.
        target: PathBuf,
        /// Size in MiB.
        size_mb: u32,
        /// Permissions of its root.
        mode: u32,
    },
    /// Several directories merged, read-only.
    Overlay {
        /// Inside.
        target: PathBuf,
        /// On the host; the last one wins.
        lower: Vec<PathBuf>,
    },
    /// `/proc` of the env's own processes.
    Proc {
        /// Inside.
        target: PathBuf,
    },
    /// `null zero full random urandom tty` and the links `fd stdin stdout stderr`. No `shm`: mount a tmpfs where wanted.
    Dev {
        /// Inside.
        target: PathBuf,
    },
    /// A file with this content in the root itself, read-only like it.
    File {
        /// Inside.
        target: PathBuf,
        /// Text.
        content: String,
        /// Permissions.
        mode: u32,
    },
    /// A symbolic link in the root itself.
    Symlink {
        /// Inside.
        target: PathBuf,
        /// What it says.
        to: PathBuf,
    },
}

/// A process to start in an env.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessPlan {
    /// Program (an absolute path inside) and its arguments.
    pub argv: Vec<String>,
    /// The whole environment, in this order.
    pub env: Vec<(String, String)>,
    /// Working directory inside.
    pub cwd: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> EnvPlan {
        EnvPlan {
            id: 7,
            hostname: "169.254.100.1".to_owned(),
            user: UserPlan { uid: 993, gid: 990 },
            rlimits: vec![RlimitPlan { name: "NOFILE".to_owned(), soft: 1_024, hard: u64::MAX }],
            visible_cpus: 2,
            cgroup: CgroupPlan {
                cpu_quota_us: Some(1_447),
                cpu_period_us: 20_000,
                cpu_refill: Refill::AtTick,
                memory_bytes: Some(134_217_728),
                pids_max: None,
            },
            net: NetPlan {
                tun: Some(TunPlan {
                    address: Ipv4Addr::new(10, 0, 0, 7),
                    prefix: 32,
                    mtu: 1_500,
                    offload: true,
                    default_route: true,
                }),
                loopback: vec![Ipv4Addr::new(169, 254, 100, 1)],
                local_any: Some((Ipv4Addr::new(198, 18, 0, 0), 15)),
                routes: vec![(Ipv4Addr::new(10, 0, 0, 0), 8)],
                sockets: vec![SocketPlan::Tcp { addr: "169.254.100.1:9001".parse().unwrap(), backlog: 128 }],
            },
            root: Some(RootPlan {
                mounts: vec![
                    MountPlan::Bind { source: "/usr".into(), target: "/usr".into(), read_only: true },
                    MountPlan::Disk { target: "/tmp".into(), size_mb: 512, mode: 0o1777 },
                    MountPlan::Overlay { target: "/opt".into(), lower: vec!["/a".into(), "/b".into()] },
                    MountPlan::File {
                        target: "/etc/hosts".into(),
                        content: "127.0.0.1".to_owned(),
                        mode: 0o644,
                    },
                    MountPlan::Dev { target: "/dev".into() },
                ],
            }),
        }
    }

    /// The format that keeper, envs and snapshots of `host` share.
    const JSON: &str = r#"{"id":7,"hostname":"169.254.100.1","user":{"uid":993,"gid":990},"rlimits":[{"name":"NOFILE","soft":1024,"hard":18446744073709551615}],"visible_cpus":2,"cgroup":{"cpu_quota_us":1447,"cpu_period_us":20000,"cpu_refill":"at_tick","memory_bytes":134217728,"pids_max":null},"net":{"tun":{"address":"10.0.0.7","prefix":32,"mtu":1500,"offload":true,"default_route":true},"loopback":["169.254.100.1"],"local_any":["198.18.0.0",15],"routes":[["10.0.0.0",8]],"sockets":[{"tcp":{"addr":"169.254.100.1:9001","backlog":128}}]},"root":{"mounts":[{"bind":{"source":"/usr","target":"/usr","read_only":true}},{"disk":{"target":"/tmp","size_mb":512,"mode":1023}},{"overlay":{"target":"/opt","lower":["/a","/b"]}},{"file":{"target":"/etc/hosts","content":"127.0.0.1","mode":420}},{"dev":{"target":"/dev"}}]}}"#;

    #[test]
    fn a_plan_is_this_json_and_back() {
        assert_eq!(serde_json::to_string(&example()).unwrap(), JSON);
        assert_eq!(serde_json::from_str::<EnvPlan>(JSON).unwrap(), example());
        let unknown = JSON.replacen("\"id\"", "\"wish\":1,\"id\"", 1);
        assert!(serde_json::from_str::<EnvPlan>(&unknown).is_err());
    }
}
