//! What an env is made of, decided here and applied by `sys`. Pure: the plan of a function is the same on every machine that
//! has the same directories, and is snapshot-tested without root.

use crate::config::QuotaPhase;
use crate::deployed::Deployed;
use crate::files::{HOSTS, resolv_conf};
use crate::image::Ready;
use crate::shared::Shared;
use danki_model::{EnvId, FunctionSpec, InitializationType, Runtime, environment, limits};
use danki_sys::plan::{
    CgroupPlan, EnvPlan, MountPlan, NetPlan, ProcessPlan, Refill, RlimitPlan, RootPlan, SocketPlan, TunPlan,
    UserPlan,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Where the Runtime API and the resolver are, beside the env (recorded on AWS in 2026: `169.254.100.1:9001`).
pub const BESIDE: Ipv4Addr = Ipv4Addr::new(169, 254, 100, 1);
/// Port of the Runtime API.
pub const RUNTIME_API_PORT: u16 = 9001;
/// Users of envs are numbered from here. Lambda's user is `sbx_user1051`, one per virtual machine; here every env has a number of its
/// own, because the limit on processes (RLIMIT_NPROC) counts a user's processes on the whole machine.
const FIRST_UID: u32 = 100_000;
/// Everything outside the env: the link decides what exists of it.
const REGION: (Ipv4Addr, u8) = (Ipv4Addr::new(198, 18, 0, 0), 15);

/// The address of an env: one of 10.0.0.0/8, never one that ends in 0 or 255.
pub fn address(env: EnvId) -> Ipv4Addr {
    let (high, low) = (env.0 / 254, env.0 % 254 + 1);
    Ipv4Addr::from(0x0a00_0000 | (high << 8) | low)
}

/// The plan of one env of a function.
pub fn env_plan(shared: &Shared, function: &Deployed, env: EnvId) -> EnvPlan {
    let places = Places::of_this_machine(shared);
    let cpu = (shared.boosted_quota_us(function), refill(shared.config.quota_phase));
    let mut plan = assemble(&places, function, env, shared.config.offload, cpu);
    if shared.config.tracing.is_some() {
        plan.net.sockets.extend(daemon_sockets());
    }
    plan
}

/// The X-Ray daemon's: documents come by UDP, questions about sampling rules by TCP.
fn daemon_sockets() -> [SocketPlan; 2] {
    let addr = environment::XRAY_DAEMON.parse().expect("the constant is an address");
    [SocketPlan::Udp { addr }, SocketPlan::Tcp { addr, backlog: 16 }]
}

/// Directories and files of the machine that a plan refers to.
pub struct Places {
    /// `/bin`, `/lib`… as links to `/usr`, or as directories of their own.
    pub system: Vec<MountPlan>,
    /// Files and directories of `/etc` that exist here.
    pub etc: Vec<PathBuf>,
    /// Settings of a PHP that belongs to the system, which name its extensions.
    pub php: Option<PathBuf>,
    /// Becomes `/var/runtime`.
    pub runtime: PathBuf,
    /// System roots and the run's root.
    pub ca_bundle: PathBuf,
    /// The run's root alone.
    pub ca_root: PathBuf,
    /// Laid over those of an image.
    pub resolv_conf: PathBuf,
    /// The same.
    pub hosts: PathBuf,
    /// Where CPU profiles go, if they are made.
    pub profiles: Option<PathBuf>,
}

impl Places {
    fn of_this_machine(shared: &Shared) -> Places {
        let etc = ["/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl", "/etc/localtime", "/etc/mime.types"];
        Places {
            system: danki_sys::system_dirs(),
            etc: etc.iter().map(PathBuf::from).filter(|path| path.exists()).collect(),
            php: Some(PathBuf::from("/etc/php")).filter(|path| path.is_dir()),
            runtime: shared.files.runtime_dir(),
            ca_bundle: shared.files.ca_bundle(),
            ca_root: shared.files.ca_root(),
            resolv_conf: shared.files.resolv_conf(),
            hosts: shared.files.hosts(),
            profiles: shared.config.profiles.clone(),
        }
    }
}

fn refill(phase: QuotaPhase) -> Refill {
    match phase {
        QuotaPhase::Aws => Refill::AtTick,
        QuotaPhase::Drawn => Refill::Drawn,
    }
}

/// Puts a plan together.
pub fn assemble(
    places: &Places,
    function: &Deployed,
    env: EnvId,
    offload: bool,
    (cpu_quota_us, cpu_refill): (u64, Refill),
) -> EnvPlan {
    let spec = &function.spec;
    let uid = FIRST_UID + env.0;
    EnvPlan {
        id: env.0,
        hostname: BESIDE.to_string(),
        user: UserPlan { uid, gid: uid },
        rlimits: limits::RLIMITS
            .iter()
            .map(|(name, soft, hard)| RlimitPlan { name: (*name).to_owned(), soft: *soft, hard: *hard })
            .collect(),
        visible_cpus: spec.memory.visible_cpus(),
        cgroup: CgroupPlan {
            cpu_quota_us: Some(cpu_quota_us),
            cpu_period_us: danki_model::PERIOD_US,
            cpu_refill,
            memory_bytes: Some(spec.memory.bytes()),
            pids_max: Some(limits::PROCESSES),
        },
        net: net(env, offload),
        root: Some(RootPlan { mounts: mounts(places, function, uid) }),
    }
}

fn net(env: EnvId, offload: bool) -> NetPlan {
    let beside = |port| SocketAddr::new(IpAddr::V4(BESIDE), port);
    NetPlan {
        tun: Some(TunPlan { address: address(env), prefix: 32, mtu: 1500, offload, default_route: true }),
        loopback: vec![BESIDE],
        local_any: None,
        routes: vec![REGION],
        sockets: vec![
            SocketPlan::Tcp { addr: beside(RUNTIME_API_PORT), backlog: 128 },
            SocketPlan::Udp { addr: beside(53) },
        ],
    }
}

fn mounts(places: &Places, function: &Deployed, uid: u32) -> Vec<MountPlan> {
    let spec = &function.spec;
    if let Some(image) = &function.image {
        return of_image(places, function, image);
    }
    let mut mounts = vec![bind(Path::new("/usr"), "/usr")];
    mounts.extend(places.system.iter().cloned());
    mounts.extend(places.etc.iter().map(|path| bind(path, path)));
    if matches!(spec.runtime, Runtime::Php(_)) {
        mounts.extend(places.php.iter().map(|path| bind(path, path)));
    }
    mounts.extend(etc_files(uid));
    mounts.push(bind(&spec.code, "/var/task"));
    mounts.push(layers(spec));
    mounts.push(bind(&places.runtime, "/var/runtime"));
    mounts.extend(
        function.interpreter.as_ref().and_then(|i| i.prefix.as_ref()).map(|dir| bind(dir, "/var/lang")),
    );
    mounts.push(MountPlan::Proc { target: "/proc".into() });
    mounts.push(MountPlan::Dev { target: "/dev".into() });
    mounts.push(MountPlan::Disk { target: "/tmp".into(), size_mb: spec.ephemeral_mb, mode: 0o1777 });
    mounts.extend(trust(places, function));
    let profiles = places.profiles.clone();
    let target = PathBuf::from(PROFILES_INSIDE);
    mounts.extend(profiles.map(|source| MountPlan::Bind { source, target, read_only: false }));
    mounts
}

/// An image brings all files of its own; what Lambda has beside and over them is the same.
fn of_image(places: &Places, function: &Deployed, image: &Ready) -> Vec<MountPlan> {
    let mut mounts = image.mounts.clone();
    mounts.push(bind(&places.resolv_conf, "/etc/resolv.conf"));
    mounts.push(bind(&places.hosts, "/etc/hosts"));
    mounts.push(MountPlan::Proc { target: "/proc".into() });
    mounts.push(MountPlan::Dev { target: "/dev".into() });
    let size_mb = function.spec.ephemeral_mb;
    mounts.push(MountPlan::Disk { target: "/tmp".into(), size_mb, mode: 0o1777 });
    mounts.extend(function.bundled_roots.iter().map(|path| bind(&places.ca_bundle, path)));
    mounts.push(bind(&places.ca_root, CA_ROOT_INSIDE));
    mounts
}

/// Where the CPU profiles of a profiled run go, inside the env.
const PROFILES_INSIDE: &str = "/var/profiles";
/// Loads the profiler before the runtime.
const PROFILE_OPTION: &str = "--require /var/runtime/profile.cjs";

/// Variables of a profiled function, beside its own.
fn profiled(variables: &mut BTreeMap<String, String>) {
    let options = variables.entry("NODE_OPTIONS".to_owned()).or_default();
    *options = format!("{options} {PROFILE_OPTION}").trim_start().to_owned();
    variables.insert("DANKI_PROFILES".to_owned(), PROFILES_INSIDE.to_owned());
}

/// `/opt`: empty, one layer as it is, or several merged in order.
fn layers(spec: &FunctionSpec) -> MountPlan {
    let target = PathBuf::from("/opt");
    match spec.layers.as_slice() {
        [] => MountPlan::Tmpfs { target, size_mb: 1, mode: 0o755 },
        [one] => bind(one, target),
        several => MountPlan::Overlay { target, lower: several.to_vec() },
    }
}

fn etc_files(uid: u32) -> Vec<MountPlan> {
    let file =
        |target: &str, content: String| MountPlan::File { target: target.into(), content, mode: 0o644 };
    let users = format!(
        "root:x:0:0:root:/root:/sbin/nologin\nsbx_user1051:x:{uid}:{uid}::/home/sbx_user1051:/sbin/nologin\n"
    );
    vec![
        file("/etc/passwd", users),
        file("/etc/group", format!("root:x:0:\nsbx_user1051:x:{uid}:\n")),
        file("/etc/hosts", HOSTS.to_owned()),
        file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n".to_owned()),
        file("/etc/resolv.conf", resolv_conf()),
    ]
}

/// The bundle goes over every path that OpenSSL, certifi, botocore, Go and PHP read; Node gets the root by a variable.
fn trust(places: &Places, function: &Deployed) -> Vec<MountPlan> {
    let system =
        ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];
    let below_etc_ssl = places.etc.iter().any(|path| path == Path::new("/etc/ssl"));
    let usable = system.iter().map(PathBuf::from).filter(|path| {
        // A file can only be laid over one that exists, where the directory is the machine's own.
        !(below_etc_ssl && path.starts_with("/etc/ssl")) || path.exists()
    });
    let mut mounts: Vec<MountPlan> = usable
        .chain(function.bundled_roots.iter().cloned())
        .map(|path| bind(&places.ca_bundle, path))
        .collect();
    mounts.push(bind(&places.ca_root, CA_ROOT_INSIDE));
    mounts
}

/// Where the run's root lies inside the env, for Node's `NODE_EXTRA_CA_CERTS`.
const CA_ROOT_INSIDE: &str = "/etc/danki/ca-root.crt";

fn bind(source: &Path, target: impl Into<PathBuf>) -> MountPlan {
    MountPlan::Bind { source: source.to_path_buf(), target: target.into(), read_only: true }
}

/// The runtime's process: command and environment.
pub fn process(
    shared: &Shared,
    function: &Deployed,
    env: EnvId,
    initialization: InitializationType,
) -> ProcessPlan {
    let spec = &function.spec;
    let (version, log_stream) = (function.version.clone(), shared.log_stream(env, &function.version));
    let identity = environment::Identity { version, log_stream, initialization };
    let mut variables = environment::process_environment(spec, &identity);
    if let Some(image) = &function.image {
        let own = |(name, _): &(&String, &String)| !spec.environment.contains_key(*name);
        let of_image = image.variables.iter().filter(own);
        variables.extend(of_image.map(|(name, value)| (name.clone(), value.clone())));
        variables.insert("PWD".to_owned(), image.cwd.display().to_string());
        // Whatever runs inside: who is not Node does not look at it.
        variables.entry("NODE_EXTRA_CA_CERTS".to_owned()).or_insert_with(|| CA_ROOT_INSIDE.to_owned());
    }
    if let Runtime::NodeJs(_) = spec.runtime {
        variables.entry("NODE_EXTRA_CA_CERTS".to_owned()).or_insert_with(|| CA_ROOT_INSIDE.to_owned());
        if shared.config.profiles.is_some() {
            profiled(&mut variables);
        }
    }
    let cwd = function.image.as_ref().map_or_else(|| "/var/task".into(), |image| image.cwd.clone());
    ProcessPlan { argv: command(function), env: variables.into_iter().collect(), cwd }
}

/// An external extension's process, from the runtime's variables.
pub fn extension(name: &str, runtime: &[(String, String)]) -> ProcessPlan {
    let variables = environment::extension_environment(&runtime.iter().cloned().collect());
    ProcessPlan {
        argv: vec![format!("/opt/extensions/{name}")],
        env: variables.into_iter().collect(),
        cwd: "/".into(),
    }
}

fn command(function: &Deployed) -> Vec<String> {
    if let Some(image) = &function.image {
        return image.argv.clone();
    }
    let inside = function.interpreter.as_ref().map(|i| i.inside.display().to_string());
    let mb = function.spec.memory.mb();
    match (function.spec.runtime, inside) {
        // The managed Node runtime sizes V8's heap by the memory size; 90 % and 5 % are commonly cited, not documented.
        (Runtime::NodeJs(_), Some(node)) => vec![
            node,
            "--expose-gc".to_owned(),
            format!("--max-semi-space-size={}", (mb / 20).max(1)),
            format!("--max-old-space-size={}", mb * 9 / 10),
            "/var/runtime/bootstrap.mjs".to_owned(),
        ],
        (Runtime::Php(_), Some(php)) => {
            vec!["/bin/sh".to_owned(), "/var/runtime/bootstrap.sh".to_owned(), php]
        }
        (Runtime::Python(_), Some(python)) => vec![python, "/var/runtime/bootstrap.py".to_owned()],
        _ => vec![bootstrap(function)],
    }
}

/// `provided`: the package's own bootstrap, or a layer's.
fn bootstrap(function: &Deployed) -> String {
    match function.spec.code.join("bootstrap").is_file() {
        true => "/var/task/bootstrap".to_owned(),
        false => "/opt/bootstrap".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpreter::Interpreter;
    use danki_model::MemoryMb;
    use std::collections::BTreeSet;

    fn places() -> Places {
        Places {
            system: vec![MountPlan::Symlink { target: "/bin".into(), to: "usr/bin".into() }],
            etc: vec!["/etc/ld.so.cache".into()],
            php: Some("/etc/php".into()),
            runtime: "/run/danki/runtime".into(),
            ca_bundle: "/run/danki/ca-bundle.crt".into(),
            ca_root: "/run/danki/ca-root.crt".into(),
            resolv_conf: "/run/danki/resolv.conf".into(),
            hosts: "/run/danki/hosts".into(),
            profiles: None,
        }
    }

    fn deployed(runtime: &str, interpreter: Option<Interpreter>) -> Deployed {
        let spec = FunctionSpec {
            name: "f".to_owned(),
            runtime: runtime.parse().expect("known"),
            handler: "app.handler".to_owned(),
            code: "/work/f".into(),
            layers: vec!["/work/one".into(), "/work/two".into()],
            memory: MemoryMb::try_from(256).expect("in range"),
            timeout_ms: 3_000,
            ephemeral_mb: 512,
            environment: Default::default(),
            region: "us-east-1".to_owned(),
            logging: danki_model::Logging::default(),
            image: None,
        };
        let bundled_roots = vec!["/var/task/certifi/cacert.pem".into()];
        Deployed {
            quota_us: spec.memory.quota_us(),
            spec,
            variant: "v".to_owned(),
            version: danki_model::log::LATEST.to_owned(),
            interpreter,
            bundled_roots,
            thaw_order: None,
            image: None,
        }
    }

    fn python() -> Interpreter {
        Interpreter {
            executable: "/home/u/.pyenv/versions/3.11.7/bin/python3.11".into(),
            prefix: Some("/home/u/.pyenv/versions/3.11.7".into()),
            version: "3.11.7".to_owned(),
            inside: "/var/lang/bin/python3.11".into(),
        }
    }

    #[test]
    fn the_plan_of_a_python_function_with_two_layers() {
        let plan = assemble(
            &places(),
            &deployed("python3.11", Some(python())),
            EnvId(7),
            true,
            (20_000, Refill::AtTick),
        );
        insta::assert_json_snapshot!(plan);
    }

    #[test]
    fn an_image_is_its_own_root_with_lambda_s_files_over_it() {
        let image = Ready {
            mounts: vec![bind(Path::new("/images/x/usr"), "/usr"), bind(Path::new("/images/x/etc"), "/etc")],
            argv: vec!["/lambda-entrypoint.sh".to_owned(), "app.handler".to_owned()],
            cwd: "/var/task".into(),
            variables: BTreeMap::new(),
            opt: None,
            bundles: Vec::new(),
        };
        let function = Deployed { image: Some(image.clone()), ..deployed("provided.al2023", None) };
        assert_eq!(command(&function), image.argv);
        let target = |mount: MountPlan| match mount {
            MountPlan::Bind { target, read_only: true, .. } => target.display().to_string(),
            other => format!("{other:?}").chars().take_while(|c| *c != ' ').collect(),
        };
        let told: Vec<String> = mounts(&places(), &function, 1).into_iter().map(target).collect();
        let bundle = "/var/task/certifi/cacert.pem";
        let over =
            ["/usr", "/etc", "/etc/resolv.conf", "/etc/hosts", "Proc", "Dev", "Disk", bundle, CA_ROOT_INSIDE];
        assert_eq!(told, over);
    }

    #[test]
    fn each_runtime_has_its_command() {
        let php = Interpreter { inside: "/usr/bin/php8.2".into(), prefix: None, ..python() };
        let node = Interpreter { inside: "/usr/bin/node".into(), prefix: None, ..python() };
        let check = |runtime: &str, interpreter: Option<&Interpreter>, expect: &str| {
            assert_eq!(command(&deployed(runtime, interpreter.cloned())).join(" "), expect);
        };
        let flags = "--expose-gc --max-semi-space-size=12 --max-old-space-size=230";
        check("nodejs20.x", Some(&node), &format!("/usr/bin/node {flags} /var/runtime/bootstrap.mjs"));
        check("python3.11", Some(&python()), "/var/lang/bin/python3.11 /var/runtime/bootstrap.py");
        check("php-82", Some(&php), "/bin/sh /var/runtime/bootstrap.sh /usr/bin/php8.2");
        check("provided.al2023", None, "/opt/bootstrap");
        let has_settings = |runtime: &str, interpreter: &Interpreter| {
            let all = mounts(&places(), &deployed(runtime, Some(interpreter.clone())), 1);
            all.contains(&bind(Path::new("/etc/php"), "/etc/php"))
        };
        assert!(has_settings("php-82", &php) && !has_settings("nodejs20.x", &node));
    }

    #[test]
    fn a_profiled_function_loads_the_profiler_beside_its_own_options() {
        let mut own = BTreeMap::from([("NODE_OPTIONS".to_owned(), "--no-warnings".to_owned())]);
        profiled(&mut own);
        assert_eq!(own["NODE_OPTIONS"], format!("--no-warnings {PROFILE_OPTION}"));
        let mut none = BTreeMap::new();
        profiled(&mut none);
        assert_eq!(none["NODE_OPTIONS"], PROFILE_OPTION);
        let places = Places { profiles: Some("/runs/x/profiles".into()), ..places() };
        let last = mounts(&places, &deployed("nodejs20.x", None), 1).pop();
        let expect = MountPlan::Bind {
            source: "/runs/x/profiles".into(),
            target: PROFILES_INSIDE.into(),
            read_only: false,
        };
        assert_eq!(last, Some(expect));
    }

    #[test]
    fn addresses_are_unique_and_ordinary() {
        let all: BTreeSet<Ipv4Addr> = (1..=10_000).map(|n| address(EnvId(n))).collect();
        assert_eq!(all.len(), 10_000);
        assert!(all.iter().all(|a| !matches!(a.octets()[3], 0 | 255) && a.octets()[0] == 10));
    }
}
