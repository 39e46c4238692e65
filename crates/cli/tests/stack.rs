//! `danki up TEMPLATE`: a SAM template's functions behind their fronts, called as clients call them.
#![allow(clippy::unwrap_used, reason = "test code, but clippy knows only test functions")]
#![allow(clippy::print_stdout, reason = "a test that skips says so")]

use danki_testkit::{bash_image, eventually, repository};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running `danki up`; ended by a signal, as a user ends it.
struct Up {
    danki: Child,
    told: PathBuf,
}

impl Up {
    fn start(dir: &Path) -> Option<Up> {
        Up::serve(&repository().join("functions/shop-sam"), dir, "output   Orders")
    }

    /// Outputs are said last: `last` is one.
    fn serve(template: &Path, dir: &Path, last: &str) -> Option<Up> {
        let doctor = Command::new(env!("CARGO_BIN_EXE_danki")).arg("doctor").output().unwrap();
        if doctor.status.code() != Some(0) {
            println!("skipped: danki up: {}", String::from_utf8_lossy(&doctor.stdout).replace('\n', "; "));
            return None;
        }
        let told = dir.join("told");
        let file = fs::File::create(&told).unwrap();
        let danki = Command::new(env!("CARGO_BIN_EXE_danki"))
            .arg("up")
            .arg(template)
            .args(["--port", "0", "--http-port", "0", "--https-port", "0", "--state"])
            .arg(dir.join("state"))
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .unwrap();
        let up = Up { danki, told };
        assert!(eventually(Duration::from_secs(60), || up.told().contains(last)), "{}", up.told());
        Some(up)
    }

    fn told(&self) -> String {
        fs::read_to_string(&self.told).unwrap_or_default()
    }

    /// The first word of what it said that begins so; the dashboard's address is another matter.
    fn said(&self, start: &str) -> String {
        let told = self.told();
        let word =
            told.split_whitespace().find(|word| word.starts_with(start) && !word.ends_with("/_danki/ui"));
        word.unwrap_or_else(|| panic!("{start} in {told}")).to_owned()
    }

    fn stop(mut self) {
        kill_process(Pid::from_child(&self.danki), Signal::INT).unwrap();
        assert!(eventually(Duration::from_secs(20), || self.danki.try_wait().unwrap().is_some()));
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        self.danki.kill().ok();
        self.danki.wait().ok();
    }
}

/// Status, head and body of one request on a connection of its own.
fn get(url: &str, more: &str) -> (u16, String, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
}

fn json_of(url: &str, more: &str) -> Value {
    let (status, head, body) = get(url, more);
    assert_eq!(status, 200, "{head}\n{body}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn a_template_is_served_as_its_fronts_would() {
    let dir = tempfile::tempdir().unwrap();
    let Some(up) = Up::start(dir.path()) else { return };
    let http = up.said("http://127.0.0.1:");

    let told = up.told();
    assert!(told.contains("Queue: AWS::SQS::Queue is not run here"), "{told}");

    let rest = json_of(&format!("{http}/dev/orders/7?a=1&a=2"), "X-Twice: 1\r\nX-Twice: 2\r\n");
    assert_eq!(rest["event"]["pathParameters"], json!({"id": "7"}));
    assert_eq!(rest["event"]["multiValueQueryStringParameters"]["a"], json!(["1", "2"]));
    assert_eq!(rest["event"]["requestContext"]["path"], "/dev/orders/7");
    // The alias's version, the layer, the parameter, the table: all from the template.
    assert_eq!((&rest["version"], &rest["shared"]), (&json!("1"), &json!("from the layer")));
    assert_eq!((&rest["stage"], &rest["table"]), (&json!("dev"), &json!("orders")));

    let http_api = json_of(&format!("{http}/v2/x/y"), "Cookie: a=1; b=2\r\n");
    assert_eq!(http_api["event"]["cookies"], json!(["a=1", "b=2"]));
    assert_eq!(http_api["event"]["pathParameters"], json!({"rest": "x/y"}));

    let (status, head, _) = get(&format!("{http}/v2/z"), "");
    assert_eq!(status, 200);
    assert!(head.contains("set-cookie: seen=1") && head.contains("x-amzn-requestid: "), "{head}");

    assert_eq!(get(&format!("{http}/slow"), "").0, 503, "the front waits 300 ms");
    assert_eq!(get(&format!("{http}/dev/nothing"), "").0, 403, "a REST API's word for an unknown path");

    let url = up.said(&format!("{http}/_danki/url/"));
    let (status, head, body) = get(&format!("{url}p"), "");
    assert_eq!(status, 201);
    assert!(head.contains("x-path: /p") && head.contains("transfer-encoding: chunked"), "{head}");
    assert!(body.contains("one\n") && body.contains("two\n"), "{body}");
    up.stop();
}

/// `PackageType: Image` from a file, and a table with an index.
#[test]
fn an_image_is_deployed_from_a_template() {
    let dir = tempfile::tempdir().unwrap();
    let script = fs::read_to_string(repository().join("functions/hello-provided/bootstrap")).unwrap();
    // In the image there is nothing but bash.
    let script = script.replace("$(printf %s \"$3\" | wc -c)", "${#3}");
    bash_image(&dir.path().join("image.tar"), &script).unwrap();
    let template = dir.path().join("template.yaml");
    fs::write(&template, IMAGE).unwrap();
    let Some(up) = Up::serve(&template, dir.path(), "output   Done") else { return };
    let http = up.said("http://127.0.0.1:");
    let (status, head, body) = get(&format!("{http}/hello"), "");
    assert_eq!((status, body.as_str()), (200, "hello"), "{head}\n{}", up.told());
    up.stop();
}

const IMAGE: &str = "
Transform: AWS::Serverless-2016-10-31
Resources:
  Hello:
    Type: AWS::Serverless::Function
    Properties:
      PackageType: Image
      ImageUri: image.tar
      ImageConfig: { Command: [anything] }
      Events: { Get: { Type: HttpApi, Properties: { Path: /hello, Method: get } } }
Outputs:
  Done: { Value: yes }
";

/// Python's ssl checks name and chain as any client does, once it is told of the CA.
#[test]
fn https_is_trusted_with_the_ca() {
    let dir = tempfile::tempdir().unwrap();
    let Some(up) = Up::start(dir.path()) else { return };
    let https = up.said("https://127.0.0.1:");
    let program = "import ssl, sys, urllib.request as r\n\
                   print(r.urlopen(sys.argv[1], context=ssl.create_default_context(cafile=sys.argv[2])).status)";
    let asked = Command::new("python3")
        .args(["-c", program, &format!("{https}/dev/orders/1")])
        .arg(dir.path().join("state/ca.pem"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&asked.stdout), "200\n", "{}", String::from_utf8_lossy(&asked.stderr));
    up.stop();
}
