//! The program as a process, seen from outside.

use danki_secrets::clock::now;
use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A port that nobody has at this moment.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// Tries until somebody listens there.
pub fn wait_for(port: u16) -> u16 {
    let began = now();
    while let Err(error) = TcpStream::connect(("127.0.0.1", port)) {
        assert!(error.kind() == ErrorKind::ConnectionRefused && now().since(began).as_secs() < 10, "{error}");
        std::thread::park_timeout(Duration::from_micros(200));
    }
    port
}

/// CPU time of all threads that live, in nanoseconds.
pub fn cpu_ns(pid: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    let times = tasks.filter_map(|task| {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    times.sum()
}

/// Resident memory, in KiB.
pub fn rss_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().split(' ').next().and_then(|kib| kib.parse().ok()).expect("a number")
}

/// Open descriptors.
pub fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives").count()
}
