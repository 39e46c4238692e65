//! A file that somebody exported from CloudWatch, or any other: every line is a report or is counted as none, and a report's numbers are
//! finite.
#![no_main]

use danki_judge::read_aws_logs;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (reports, _) = read_aws_logs(text);
    for report in reports {
        assert!(report.duration_ms.is_finite() && report.duration_ms >= 0.0);
        assert!(report.init_ms.is_none_or(|ms| ms.is_finite() && ms >= 0.0));
    }
});
