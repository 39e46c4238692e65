//! What a function finds around it: variables, user, limits, files, CPUs.

#![allow(clippy::unwrap_used, reason = "test code, but clippy knows only test functions")]

use danki_model::{ImageSpec, Runtime};
use danki_testkit::{Lab, Settings, bash_image, skipped};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const LOOK: &str = "
import errno, os, resource, socket
def refused(path):
    try:
        with open(path, 'w') as f:
            f.write('x')
        return None
    except OSError as e:
        return errno.errorcode[e.errno]
limits = ['AS', 'CORE', 'CPU', 'DATA', 'FSIZE', 'MEMLOCK', 'NOFILE', 'NPROC', 'RSS', 'STACK']
def handler(event, context):
    return {
        'env': dict(os.environ),
        'uid': [os.getuid(), os.geteuid(), os.getgid()],
        'groups': os.getgroups(),
        'cwd': os.getcwd(),
        'limits': {n: list(resource.getrlimit(getattr(resource, 'RLIMIT_' + n))) for n in limits},
        'cpus': len(os.sched_getaffinity(0)),
        'written': {d: refused(d + '/probe') for d in ['/var/task', '/var/runtime', '/opt', '/', '/etc', '/usr', '/tmp', '/dev', '/proc']},
        'tmp_mb': os.statvfs('/tmp').f_blocks * os.statvfs('/tmp').f_frsize / 2**20,
        'root': sorted(os.listdir('/')),
        'host': socket.gethostname(),
        'pids': sorted(int(p) for p in os.listdir('/proc') if p.isdigit()),
        'remaining': context.get_remaining_time_in_millis(),
        'capabilities': [l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapEff', 'CapPrm'))],
        'privileges': [l.split()[1] for l in open('/proc/self/status') if l.startswith('NoNewPrivs')],
        'fds': sorted(os.readlink('/proc/self/fd/' + f).split(':')[0] for f in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + f)),
    }
";

#[test]
fn a_function_finds_what_lambda_has() {
    if skipped("environment") {
        return;
    }
    let lab = Lab::start("environment", Settings::default()).unwrap();
    let mut spec = lab.write("lambda_function.py", LOOK).unwrap();
    spec.environment = BTreeMap::from([("TABLE".to_owned(), "t".to_owned())]);
    spec.region = "ap-northeast-1".to_owned();
    let (name, runtime) = (spec.name.clone(), spec.runtime);
    let seen = lab.deploy(spec).unwrap().invoke(&json!({})).unwrap();
    assert_eq!(seen.function_error, None, "{}", seen.text());
    let seen = seen.json();
    check_variables(&seen["env"], &name, &runtime.to_string());
    let uid = seen["uid"].as_array().unwrap();
    assert!(
        uid.iter().all(|id| id.as_u64().unwrap() >= 100_000),
        "not root, no user of this machine: {uid:?}"
    );
    assert!(seen["groups"].as_array().unwrap().iter().all(|id| id.as_u64().unwrap() >= 100_000), "{seen}");
    assert_eq!(seen["capabilities"], json!(["0000000000000000", "0000000000000000"]));
    assert_eq!(seen["cwd"], "/var/task");
    for (limit, soft, hard) in danki_model::limits::RLIMITS {
        let value = |v: u64| if v == danki_model::limits::UNLIMITED { json!(-1) } else { json!(v) };
        assert_eq!(seen["limits"][limit], json!([value(soft), value(hard)]), "{limit}");
    }
    let here = std::thread::available_parallelism().unwrap().get();
    assert_eq!(seen["cpus"], 2.min(here), "two visible CPUs up to 3,008 MB");
    for (dir, expect) in seen["written"].as_object().unwrap() {
        match dir.as_str() {
            "/tmp" => assert_eq!(*expect, Value::Null, "/tmp can be written"),
            _ => assert!(expect.is_string(), "{dir} must not be writable"),
        }
    }
    assert_eq!(seen["written"]["/var/task"], "EROFS");
    let tmp_mb = seen["tmp_mb"].as_f64().unwrap();
    assert!((450.0..=530.0).contains(&tmp_mb), "{tmp_mb} MB of /tmp");
    assert!(seen["pids"].as_array().unwrap().len() <= 3, "no process of anybody else: {}", seen["pids"]);
    let remaining = seen["remaining"].as_u64().unwrap();
    assert!((1..=3_000).contains(&remaining), "{remaining} ms");
    assert_eq!(lab.stop().unwrap().left, Vec::<String>::new());
}

/// `lambda-platform.md` §8.1.
fn check_variables(env: &Value, name: &str, runtime: &str) {
    let text = |key: &str| env[key].as_str().unwrap_or_else(|| panic!("no {key} in {env:#}"));
    for (key, expect) in [
        ("AWS_EXECUTION_ENV", format!("AWS_Lambda_{runtime}")),
        ("AWS_REGION", "ap-northeast-1".to_owned()),
        ("AWS_DEFAULT_REGION", "ap-northeast-1".to_owned()),
        ("AWS_LAMBDA_FUNCTION_NAME", name.to_owned()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128".to_owned()),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand".to_owned()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{name}")),
        ("AWS_LAMBDA_RUNTIME_API", "169.254.100.1:9001".to_owned()),
        ("LAMBDA_TASK_ROOT", "/var/task".to_owned()),
        ("LAMBDA_RUNTIME_DIR", "/var/runtime".to_owned()),
        ("_HANDLER", "lambda_function.handler".to_owned()),
        ("TZ", ":UTC".to_owned()),
        ("LANG", "en_US.UTF-8".to_owned()),
        ("PATH", "/var/lang/bin:/usr/local/bin:/usr/bin/:/bin:/opt/bin".to_owned()),
        ("TABLE", "t".to_owned()),
    ] {
        assert_eq!(text(key), expect, "{key}");
    }
    assert!(text("_X_AMZN_TRACE_ID").starts_with("Root=1-"), "set for each invocation");
    assert!(text("AWS_LAMBDA_LOG_STREAM_NAME").contains("[$LATEST]"));
    assert!(!text("AWS_ACCESS_KEY_ID").is_empty() && !text("AWS_SECRET_ACCESS_KEY").is_empty());
    // Nothing of the machine's own environment comes through.
    for key in ["HOME", "USER", "CARGO_MANIFEST_DIR", "RUSTUP_HOME"] {
        assert!(env.get(key).is_none(), "{key}");
    }
}

#[test]
fn tmp_is_as_large_as_asked_for_and_not_memory() {
    if skipped("size of /tmp") {
        return;
    }
    let lab = Lab::start("tmp", Settings::default()).unwrap();
    let mut spec = danki_testkit::function("chaos-python").unwrap();
    (spec.timeout_ms, spec.ephemeral_mb) = (25_000, 512);
    assert_eq!(spec.memory.mb(), 128);
    let chaos = lab.deploy(spec).unwrap();
    let filled = chaos.invoke(&json!({"action": "fill_tmp"})).unwrap();
    let body = filled.json();
    assert_eq!(filled.function_error, None, "{}", filled.text());
    assert_eq!(body["refused"], "No space left on device");
    assert!((440..=512).contains(&body["mb"].as_u64().unwrap()), "{body}");
    let after = chaos.invoke(&json!({"action": "fine"})).unwrap();
    assert_eq!(after.json()["tmp"], json!(["filled"]));
    assert_eq!(lab.stop().unwrap().left, Vec::<String>::new());
}

#[test]
fn layers_are_merged_in_order() {
    if skipped("layers") {
        return;
    }
    let lab = Lab::start("layers", Settings::default()).unwrap();
    let code = "
import os, from_layer
def handler(event, context):
    return {'value': from_layer.value, 'files': sorted(os.listdir('/opt')), 'bin': os.popen('tool').read().strip()}
";
    let mut spec = lab.write("lambda_function.py", code).unwrap();
    for (layer, value) in [("one", 1), ("two", 2)] {
        let dir = lab.dir().join(layer);
        fs::create_dir_all(dir.join("python")).unwrap();
        fs::create_dir_all(dir.join("bin")).unwrap();
        fs::write(dir.join("python/from_layer.py"), format!("value = {value}\n")).unwrap();
        fs::write(dir.join(format!("only-{layer}")), "").unwrap();
        let tool = dir.join("bin/tool");
        fs::write(&tool, format!("#!/bin/sh\necho {value}\n")).unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        spec.layers.push(dir);
    }
    let reply = lab.deploy(spec.clone()).unwrap().invoke(&json!({})).unwrap();
    let expect = json!({"value": 2, "files": ["bin", "only-one", "only-two", "python"], "bin": "2"});
    assert_eq!(reply.json(), expect, "later layers win");
    spec.layers.reverse();
    let reply = lab.deploy(spec).unwrap().invoke(&json!({})).unwrap();
    assert_eq!(reply.json()["value"], 1);
    assert_eq!(lab.stop().unwrap().left, Vec::<String>::new());
}

/// A runtime in bash alone that answers with what it finds, a line of JSON text for each.
const INSIDE: &str = r#"#!/bin/bash
set -u
api=$AWS_LAMBDA_RUNTIME_API
refused() { (: > "$1") 2> /dev/null && echo written || echo refused; }
request() {
  local line
  exec 3<>"/dev/tcp/${api%:*}/${api##*:}"
  printf '%s /2018-06-01/runtime/%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' "$1" "$2" "${#3}" "$3" >&3
  while IFS= read -r line <&3 && line=${line%$'\r'} && [[ -n $line ]]; do
    case ${line,,} in lambda-runtime-aws-request-id:*) id=${line#*: } ;; esac
  done
  exec 3>&-
}
roots=(/*)
while true; do
  request GET invocation/next ''
  request POST "invocation/$id/response" "{\"cwd\": \"$PWD\", \"arguments\": \"$*\", \"greeting\": \"$GREETING\",
    \"region\": \"$AWS_REGION\", \"own\": \"${OWN-}\", \"handler\": \"${_HANDLER-none}\", \"uid\": $UID, \"root\": \"${roots[*]}\",
    \"secret\": \"$([[ -e /app/secret ]] && echo there || echo gone)\", \"resolver\": \"$(read -r l < /etc/resolv.conf; echo "$l")\",
    \"app\": \"$(refused /app/x)\", \"slash\": \"$(refused /x)\", \"tmp\": \"$(refused /tmp/x)\", \"null\": \"$(refused /dev/null)\"}"
done
"#;

#[test]
fn a_container_image_is_its_own_root() {
    if skipped("container image") {
        return;
    }
    let lab = Lab::start("image", Settings::default()).unwrap();
    let archive = lab.dir().join("image.tar");
    bash_image(&archive, INSIDE).unwrap();
    let mut spec = danki_testkit::function("hello-provided").unwrap();
    let image = ImageSpec { archive, entry_point: None, command: None, working_directory: None };
    (spec.runtime, spec.handler, spec.image) = (Runtime::Provided, String::new(), Some(image.clone()));
    spec.environment = BTreeMap::from([("OWN".to_owned(), "mine".to_owned())]);
    let region = spec.region.clone();
    let seen = lab.deploy(spec.clone()).unwrap().invoke(&json!({})).unwrap();
    assert_eq!(seen.function_error, None, "{}", seen.text());
    let seen = seen.json();
    for (key, expect) in [
        ("cwd", "/app"),
        ("arguments", "app.handler"),
        ("greeting", "from the image"),
        // Lambda's variables are over the image's.
        ("region", region.as_str()),
        ("own", "mine"),
        ("handler", "none"),
        ("secret", "gone"),
        ("resolver", "nameserver 169.254.100.1"),
        ("app", "refused"),
        ("slash", "refused"),
        ("tmp", "written"),
        ("null", "written"),
    ] {
        assert_eq!(seen[key], expect, "{key}: {seen}");
    }
    assert!(seen["uid"].as_u64().unwrap() >= 100_000, "{seen}");
    let root = seen["root"].as_str().unwrap();
    assert!(root.contains("/app") && root.contains("/tmp") && !root.contains("/usr/share"), "{root}");
    // `ImageConfig` instead of the image's own command.
    spec.image = Some(ImageSpec { command: Some(vec!["other.handler".to_owned()]), ..image.clone() });
    let other = lab.deploy(spec.clone()).unwrap().invoke(&json!({})).unwrap();
    assert_eq!(other.json()["arguments"], "other.handler", "{}", other.text());
    spec.image = Some(ImageSpec { entry_point: Some(vec!["nothing".to_owned()]), ..image });
    let refused = lab.deploy(spec).err().unwrap().to_string();
    assert!(refused.contains("\"nothing\" is not an executable file in it"), "{refused}");
    assert_eq!(lab.stop().unwrap().left, Vec::<String>::new());
}
