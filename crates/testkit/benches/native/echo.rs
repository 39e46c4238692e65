//! The lightest runtime there is, for benchmarks of more than one environment: with Node in sixteen of them on two cores, a count of
//! invocations would be one of Node's.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "Lambda tells a runtime where it is by its environment; a failure is its end"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The benchmark's own executable serves as `bootstrap`: it is one where Lambda says so.
pub fn is_runtime() -> bool {
    std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_some()
}

/// Puts it where a function's code is.
pub fn deploy(dir: &Path) {
    let bootstrap = dir.join("bootstrap");
    std::fs::copy(std::env::current_exe().unwrap(), &bootstrap).unwrap();
    std::fs::set_permissions(&bootstrap, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(dir, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Answers each event with itself, until the platform is gone.
pub fn serve() {
    let api = std::env::var("AWS_LAMBDA_RUNTIME_API").unwrap();
    let mut stream = BufReader::new(TcpStream::connect(&api).unwrap());
    stream.get_ref().set_nodelay(true).unwrap();
    let path = "/2018-06-01/runtime/invocation";
    loop {
        let next = format!("GET {path}/next HTTP/1.1\r\nHost: {api}\r\n\r\n");
        let Some((id, event)) = exchange(&mut stream, next.as_bytes()) else { return };
        let length = event.len();
        let mut response =
            format!("POST {path}/{id}/response HTTP/1.1\r\nHost: {api}\r\nContent-Length: {length}\r\n\r\n")
                .into_bytes();
        response.extend(event);
        if exchange(&mut stream, &response).is_none() {
            return;
        }
    }
}

/// Sends a request; the answer's request id and body. None: nobody is there any more.
fn exchange(stream: &mut BufReader<TcpStream>, request: &[u8]) -> Option<(String, Vec<u8>)> {
    stream.get_mut().write_all(request).unwrap();
    let (mut id, mut length, mut line) = (String::new(), 0, String::new());
    loop {
        line.clear();
        if stream.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            match line.trim_end().is_empty() {
                true => break,
                false => continue,
            }
        };
        match name.to_ascii_lowercase().as_str() {
            "lambda-runtime-aws-request-id" => id = value.to_owned(),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    Some((id, body))
}
