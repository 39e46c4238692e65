//! What the daemon answers on TCP: the SDKs ask it for sampling rules before they decide about a request of their own.
//!
//! In a Lambda function the platform has decided already (the header says `Sampled`), but the SDKs' pollers ask all the same when a
//! function opens segments by itself. The rule is AWS's default: one request a second, then 5 %.

use serde_json::{Value, json};

/// Rules change when a user changes them, which nobody does here.
const CREATED_S: f64 = 0.0;
/// How long an answer holds (API reference, `SamplingTargetDocument`: 10 s).
const INTERVAL_S: u64 = 10;

/// The answer to a POST to `path`; none if it is no path of the sampling API.
pub fn answer(path: &str, body: &[u8], now_s: f64) -> Option<Value> {
    match path {
        "/GetSamplingRules" => Some(rules()),
        "/SamplingTargets" | "/GetSamplingTargets" => Some(targets(body, now_s)),
        _ => None,
    }
}

fn rules() -> Value {
    json!({
        "NextToken": null,
        "SamplingRuleRecords": [{
            "CreatedAt": CREATED_S,
            "ModifiedAt": CREATED_S,
            "SamplingRule": {
                "Attributes": {},
                "FixedRate": 0.05,
                "HTTPMethod": "*",
                "Host": "*",
                "Priority": 10_000,
                "ReservoirSize": 1,
                "ResourceARN": "*",
                "RuleARN": "arn:aws:xray:us-east-1:123456789012:sampling-rule/Default",
                "RuleName": "Default",
                "ServiceName": "*",
                "ServiceType": "*",
                "URLPath": "*",
                "Version": 1,
            },
        }],
    })
}

/// Every rule that statistics were sent for gets its quota; one that is not known is said to be so.
fn targets(body: &[u8], now_s: f64) -> Value {
    let asked: Value = serde_json::from_slice(body).unwrap_or_default();
    let statistics = asked["SamplingStatisticsDocuments"].as_array().cloned().unwrap_or_default();
    let names: Vec<String> =
        statistics.iter().take(25).filter_map(|s| s["RuleName"].as_str()).map(str::to_owned).collect();
    let (known, unknown): (Vec<String>, Vec<String>) = names.into_iter().partition(|name| name == "Default");
    let target = |name: &String| {
        json!({
            "FixedRate": 0.05,
            "Interval": INTERVAL_S,
            "ReservoirQuota": 1,
            "ReservoirQuotaTTL": now_s + INTERVAL_S as f64,
            "RuleName": name,
        })
    };
    let lacking = |name: &String| json!({ "ErrorCode": "UnknownRule", "Message": "this rule does not exist", "RuleName": name });
    json!({
        "LastRuleModification": CREATED_S,
        "SamplingTargetDocuments": known.iter().map(target).collect::<Vec<_>>(),
        "UnprocessedStatistics": unknown.iter().map(lacking).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_targets() {
        let rules = answer("/GetSamplingRules", b"", 5.0).expect("known");
        assert_eq!(rules["SamplingRuleRecords"][0]["SamplingRule"]["RuleName"], "Default");
        let statistics = br#"{"SamplingStatisticsDocuments":[{"RuleName":"Default"},{"RuleName":"x"}]}"#;
        let targets = answer("/SamplingTargets", statistics, 5.0).expect("known");
        assert_eq!(targets["SamplingTargetDocuments"][0]["ReservoirQuotaTTL"], 15.0);
        assert_eq!(targets["UnprocessedStatistics"][0]["RuleName"], "x");
        assert!(answer("/SamplingTargets", b"\xff", 5.0).is_some());
        assert_eq!(answer("/", b"", 5.0), None);
    }
}
