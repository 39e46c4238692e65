//! Keeps idle CPUs from sleeping deeply while a link runs.
//!
//! A packet passes a handful of idle threads, and waking a CPU of a virtual machine takes 50–100 µs each time: on the development
//! machine a connect over 20 ms took 20.18 ms, and 20.09 ms with this. The kernel's PM QoS interface (`admin-guide/pm/cpuidle`) undoes
//! it when the file is closed, however the process ends.

use std::fs::{File, OpenOptions, read_to_string};
use std::io::Write;

/// Takes, as a 32-bit number, the longest wake-up in µs that is tolerable, for as long as it is open.
const PM_QOS: &str = "/dev/cpu_dma_latency";
const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";
/// The idle driver of KVM guests, which states 1 µs for what the hypervisor makes of a halt.
const GUEST_DRIVER: &str = "haltpoll";
/// Poll instead of halting.
const GUEST_US: i32 = 0;
/// Bare metal states what is true: this allows C1 (some µs), which leaves power for turbo, and nothing deeper.
const METAL_US: i32 = 10;

/// The request, withdrawn when it is dropped.
pub(crate) struct Awake {
    _file: File,
}

impl Awake {
    pub(crate) fn request() -> std::io::Result<Awake> {
        let guest = read_to_string(DRIVER).is_ok_and(|driver| driver.trim() == GUEST_DRIVER);
        let longest_us = if guest { GUEST_US } else { METAL_US };
        let mut file = OpenOptions::new().write(true).open(PM_QOS)?;
        file.write_all(&longest_us.to_ne_bytes())?;
        Ok(Awake { _file: file })
    }
}
