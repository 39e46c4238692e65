//! What is counted, and the line that carries it. An extension cannot send to the Telemetry API, but each line that it prints is
//! delivered by it as an `extension` record; in CloudWatch's embedded metric format it becomes a metric there as well.

use std::time::Duration;

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident = $metric:literal,)*) => {
        /// Numbers of events since the start.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts { $($(#[$doc])* pub $name: u64,)* }

        impl Counts {
            /// Metric names and numbers.
            pub fn list(&self) -> Vec<(&'static str, u64)> {
                vec![$(($metric, self.$name)),*]
            }

            /// What happened since an earlier reading.
            #[must_use]
            pub fn since(&self, earlier: &Counts) -> Counts {
                Counts { $($name: self.$name - earlier.$name),* }
            }
        }
    };
}

counts! {
    /// Answers from the cache, within their time to live.
    hits = "Hits",
    /// Requests that had to wait for an upstream call that they caused.
    misses = "Misses",
    /// Requests that waited for a call that another had caused.
    joined = "Joined",
    /// Answers from the cache past their time to live, as asked for.
    stale = "Stale",
    /// Failures answered from the cache.
    negative = "Negative",
    /// Upstream calls begun, a batch counting each of its values.
    fetches = "Fetches",
    /// Upstream calls that brought no value.
    failures = "Failures",
    /// Requests refused before it came to a value.
    refused = "Refused",
    /// Entries that had to make room.
    evicted = "Evicted",
}

/// One line in CloudWatch's embedded metric format; none if nothing happened.
pub fn line(counts: &Counts, function: &str, epoch: Duration) -> Option<String> {
    let list: Vec<_> = counts.list().into_iter().filter(|(_, count)| *count > 0).collect();
    if list.is_empty() {
        return None;
    }
    let names: Vec<String> =
        list.iter().map(|(name, _)| format!("{{\"Name\":\"{name}\",\"Unit\":\"Count\"}}")).collect();
    let values: Vec<String> = list.iter().map(|(name, count)| format!("\"{name}\":{count}")).collect();
    let mut quoted = Vec::new();
    crate::json::push_string(&mut quoted, function);
    Some(format!(
        "{{\"_aws\":{{\"Timestamp\":{},\"CloudWatchMetrics\":[{{\"Namespace\":\"danki-secrets\",\"Dimensions\":[[\"FunctionName\"]],\
         \"Metrics\":[{}]}}]}},\"FunctionName\":{},{}}}",
        epoch.as_millis(),
        names.join(","),
        String::from_utf8_lossy(&quoted),
        values.join(",")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_carries_what_happened() {
        let before = Counts { hits: 5, ..Counts::default() };
        let after = Counts { hits: 12, misses: 1, ..before };
        let line = line(&after.since(&before), "f\"1", Duration::from_millis(1_700_000_000_123))
            .expect("something happened");
        let json: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(
            (&json["Hits"], &json["Misses"], &json["Stale"]),
            (&7.into(), &1.into(), &serde_json::Value::Null)
        );
        assert_eq!(json["_aws"]["Timestamp"], 1_700_000_000_123_u64);
        assert_eq!(json["_aws"]["CloudWatchMetrics"][0]["Metrics"][0]["Name"], "Hits");
        assert_eq!(json["FunctionName"], "f\"1");
    }

    #[test]
    fn nothing_happened_says_nothing() {
        assert_eq!(line(&Counts::default(), "f", Duration::ZERO), None);
    }
}
