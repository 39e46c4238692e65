//! Lambda's limits, each with its source (`lambda-platform.md` section).

use std::ops::RangeInclusive;

/// Time limit of an on-demand init in ms, from sandbox start to the runtime's first `/next` (§3.1, AWS docs).
pub const INIT_LIMIT_MS: u64 = 10_000;

/// Time limit in ms of an init that provisioned concurrency asked for (§3.1, AWS docs: 130 s or the function's timeout, whichever is
/// longer).
pub fn provisioned_init_limit_ms(timeout_ms: u64) -> u64 {
    timeout_ms.max(130_000)
}

/// Largest synchronous request payload in bytes (§7.3, AWS docs and recorded 413 text).
pub const REQUEST_BYTES: usize = 6 * 1024 * 1024;

/// Largest response payload in bytes: 6 MiB + 100 (§1.6, AWS source and recorded payload).
pub const RESPONSE_BYTES: usize = 6 * 1024 * 1024 + 100;

/// All customer environment variables together, names and values, in bytes (§4.4, AWS docs).
pub const ENVIRONMENT_BYTES: usize = 4 * 1024;

/// Layers of a function (§4.4, AWS docs).
pub const LAYERS: usize = 5;

/// Function timeout in ms (§4.4, AWS docs: 1 to 900 s).
pub const TIMEOUT_MS: RangeInclusive<u64> = 1_000..=900_000;

/// Size of `/tmp` in MB (§4.4, AWS docs).
pub const EPHEMERAL_MB: RangeInclusive<u32> = 512..=10_240;

/// Processes and threads of an env (§4.4, AWS docs; RLIMIT_NPROC was recorded lower, see [`RLIMITS`]).
pub const PROCESSES: u32 = 1_024;

/// Longest function name in characters (AWS API reference, `CreateFunction`).
pub const NAME_CHARS: usize = 64;

/// Longest handler in characters (AWS API reference, `CreateFunction`).
pub const HANDLER_CHARS: usize = 128;

/// Largest tail of the log in an invocation's answer, in bytes (§7.1, AWS docs).
pub const LOG_TAIL_BYTES: usize = 4 * 1024;

/// No limit, as the kernel spells it (`RLIM_INFINITY`).
pub const UNLIMITED: u64 = u64::MAX;

/// Resource limits of the function's processes: name as in `/proc/self/limits`' constants without `RLIMIT_`, soft,
/// hard. Recorded on AWS at 128 MB (§4.4, LocalStack `test_runtime_ulimits`).
pub const RLIMITS: [(&str, u64, u64); 10] = [
    ("AS", UNLIMITED, UNLIMITED),
    ("CORE", 10_737_418_240, 10_737_418_240),
    ("CPU", UNLIMITED, UNLIMITED),
    ("DATA", UNLIMITED, UNLIMITED),
    ("FSIZE", UNLIMITED, UNLIMITED),
    ("MEMLOCK", 65_536, 65_536),
    ("NOFILE", 1_024, 1_024),
    ("NPROC", 742, 742),
    ("RSS", UNLIMITED, UNLIMITED),
    ("STACK", 8_388_608, UNLIMITED),
];
