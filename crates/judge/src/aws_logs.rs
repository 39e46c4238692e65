//! What AWS itself logged: REPORT lines of a user's own account, beside a run of the same function here.
//!
//! Read are plain lines, lines of `aws logs tail` and `filter-log-events` (text or JSON), and platform.report records in
//! JSON: wherever in a line a report stands, it is found. Anything else is left out and counted.

use crate::compare::{Measure, by_env, question};
use danki_runview::Run;
use danki_stats::{Comparison, compare};
use serde_json::Value;

/// One REPORT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AwsReport {
    /// `Duration`, ms.
    pub duration_ms: f64,
    /// `Init Duration`, ms.
    pub init_ms: Option<f64>,
    /// `Memory Size`, MB.
    pub memory_mb: u32,
    /// `Max Memory Used`, MB.
    pub max_memory_used_mb: u32,
}

/// A variant of a run against AWS: ratios danki / AWS.
#[derive(Clone, Debug, PartialEq)]
pub struct Validity {
    /// Which variant.
    pub variant: String,
    /// Its memory size; only AWS's reports of that size count.
    pub memory_mb: u32,
    /// How many reports AWS has.
    pub n_aws: usize,
    /// Duration of warm invocations.
    pub duration: Option<Comparison>,
    /// Init Duration.
    pub init: Option<Comparison>,
}

/// All reports in a text, and how many lines had none.
pub fn read_aws_logs(text: &str) -> (Vec<AwsReport>, usize) {
    // `filter-log-events` prints one JSON document.
    if let Ok(Value::Object(whole)) = serde_json::from_str::<Value>(text)
        && let Some(Value::Array(events)) = whole.get("events")
    {
        let messages = events.iter().filter_map(|e| e["message"].as_str());
        return split(messages.flat_map(str::lines).map(report));
    }
    split(text.lines().filter(|line| !line.trim().is_empty()).map(report))
}

fn split(lines: impl Iterator<Item = Option<AwsReport>>) -> (Vec<AwsReport>, usize) {
    let (mut reports, mut others) = (Vec::new(), 0);
    for line in lines {
        match line {
            Some(report) => reports.push(report),
            None => others += 1,
        }
    }
    (reports, others)
}

fn report(line: &str) -> Option<AwsReport> {
    text_report(line).or_else(|| json_report(line))
}

fn text_report(line: &str) -> Option<AwsReport> {
    let rest = &line[line.find("REPORT RequestId:")?..];
    let ms =
        |field: &str| number(rest, &format!("\t{field}: ")).or_else(|| number(rest, &format!(" {field}: ")));
    Some(AwsReport {
        // "Billed Duration" and "Init Duration" end in the same word: the first one is plain.
        duration_ms: plain_duration(rest)?,
        init_ms: ms("Init Duration"),
        memory_mb: ms("Memory Size")? as u32,
        max_memory_used_mb: ms("Max Memory Used").unwrap_or(0.0) as u32,
    })
}

fn plain_duration(rest: &str) -> Option<f64> {
    let at = rest.match_indices("Duration: ").find(|(at, _)| {
        let before = rest[..*at].trim_end();
        !before.ends_with("Billed") && !before.ends_with("Init") && !before.ends_with("Restore")
    })?;
    leading(&rest[at.0 + "Duration: ".len()..])
}

fn number(text: &str, before: &str) -> Option<f64> {
    leading(&text[text.find(before)? + before.len()..])
}

fn leading(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().ok().filter(|v: &f64| v.is_finite())
}

/// `{"type": "platform.report", "record": {"metrics": {"durationMs": …}}}`, with whatever stands before it.
fn json_report(line: &str) -> Option<AwsReport> {
    let value: Value = serde_json::from_str(&line[line.find('{')?..]).ok()?;
    let record = if value["type"] == "platform.report" { &value["record"] } else { return None };
    let metrics = &record["metrics"];
    Some(AwsReport {
        duration_ms: metrics["durationMs"].as_f64()?,
        init_ms: metrics["initDurationMs"].as_f64(),
        memory_mb: u32::try_from(metrics["memorySizeMB"].as_u64()?).ok()?,
        max_memory_used_mb: u32::try_from(metrics["maxMemoryUsedMB"].as_u64().unwrap_or(0)).ok()?,
    })
}

/// Each variant of a run against AWS's reports of its memory size.
pub fn validity(run: &Run, reports: &[AwsReport]) -> Vec<Validity> {
    let one = |v: &danki_record::VariantSummary| {
        let of_size: Vec<&AwsReport> = reports.iter().filter(|r| r.memory_mb == v.memory_mb).collect();
        let warm = of_size.iter().filter(|r| r.init_ms.is_none()).map(|r| r.duration_ms).collect();
        let init = of_size.iter().filter_map(|r| r.init_ms).collect();
        let against = |measure: Measure, aws: Vec<f64>| {
            compare(&[aws], &by_env(run, &v.name, measure), &question(measure, run.manifest.seed))
        };
        Validity {
            variant: v.name.clone(),
            memory_mb: v.memory_mb,
            n_aws: of_size.len(),
            duration: against(Measure::DurationP50, warm),
            init: against(Measure::InitP50, init),
        }
    };
    run.summary.variants.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REPORT: &str = "REPORT RequestId: 6f68\tDuration: 1220.41 ms\tBilled Duration: 1221 ms\tMemory Size: 256 MB\tMax Memory \
                          Used: 86 MB\tInit Duration: 2395.82 ms\t";

    #[test]
    fn reports_are_found_in_every_shape() {
        let expect = AwsReport {
            duration_ms: 1220.41,
            init_ms: Some(2395.82),
            memory_mb: 256,
            max_memory_used_mb: 86,
        };
        let check = |text: &str, expect: &[AwsReport], others: usize| {
            assert_eq!(read_aws_logs(text), (expect.to_vec(), others), "{text}");
        };
        check(REPORT, &[expect], 0);
        check(&REPORT.replace('\t', " "), &[expect], 0);
        check(
            &format!("2024-03-05T14:33:22 2024/03/05/[43]abc {REPORT}\nSTART RequestId: 1\n\n"),
            &[expect],
            1,
        );
        let events =
            serde_json::json!({"events": [{"message": format!("{REPORT}\n")}, {"message": "hello\n"}]});
        check(&events.to_string(), &[expect], 1);
        let record = r#"{"time":"t","type":"platform.report","record":{"requestId":"1","metrics":{"durationMs":1220.41,
            "billedDurationMs":1221,"memorySizeMB":256,"maxMemoryUsedMB":86,"initDurationMs":2395.82}}}"#;
        check(&format!("2024-03-05 {}", record.replace('\n', "")), &[expect], 0);
        check("REPORT RequestId: 1 Billed Duration: 5 ms Memory Size: 128 MB", &[], 1);
    }

    proptest! {
        #[test]
        fn whatever_the_text_it_is_read_or_left_out(text in "(REPORT RequestId:|Duration: |[0-9.]{0,9}| ms|\t|\\{|\\}|\"|[a-zé]{0,5}|\n){0,30}") {
            let (reports, others) = read_aws_logs(&text);
            let lines = text.lines().filter(|l| !l.trim().is_empty()).count();
            prop_assert_eq!(reports.len() + others, lines);
        }
    }
}
