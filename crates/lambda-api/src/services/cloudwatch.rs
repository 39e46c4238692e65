//! CloudWatch: Lambda's metrics, to read. SDKs of today speak CBOR to it, those of yesterday JSON; the tree is the same.

use super::cbor;
use crate::api::{Api, now_ms};
use crate::fault::{Fault, Kind};
use crate::request::{Outcome, Reply, Request};
use danki_model::metrics::{Distribution, Ledger, Metric, NAMESPACE, Point, RESOLUTION_S, Subject};
use hyper::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Queries of one GetMetricData (its own maximum).
const QUERIES: usize = 500;
/// Points of one GetMetricData, and of one GetMetricStatistics (their own maxima).
const POINTS: usize = 100_800;
const STATISTICS_POINTS: u64 = 1_440;
/// Metrics of one page.
const LISTED: usize = 500;
/// Longest period: a day.
const PERIOD_MAX_S: u64 = 86_400;
/// `RecentlyActive` has one value: the last three hours.
const RECENT_S: u64 = 3 * 3_600;

/// What a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Smithy's RPC v2.
    Cbor,
    /// AWS's JSON 1.0.
    Json,
}

impl Wire {
    /// By the protocol that a request names.
    pub fn of(headers: &HeaderMap) -> Wire {
        let is_cbor = headers.get("smithy-protocol").is_some_and(|name| name == "rpc-v2-cbor");
        if is_cbor { Wire::Cbor } else { Wire::Json }
    }

    fn reply(self, status: u16, tree: &Value) -> Reply {
        match self {
            Wire::Cbor => {
                let reply = Reply::bytes(status, cbor::write(tree).into());
                Reply { content_type: "application/cbor", ..reply }.header("smithy-protocol", "rpc-v2-cbor")
            }
            Wire::Json => Reply { content_type: "application/x-amz-json-1.0", ..Reply::json(status, tree) },
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Input {
    metric_data_queries: Vec<Query>,
    scan_by: Option<String>,
    max_datapoints: Option<usize>,
    namespace: Option<String>,
    metric_name: Option<String>,
    dimensions: Vec<Dimension>,
    start_time: Option<f64>,
    end_time: Option<f64>,
    period: Option<u64>,
    statistics: Vec<String>,
    extended_statistics: Vec<String>,
    unit: Option<String>,
    recently_active: Option<String>,
    next_token: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Query {
    id: String,
    label: Option<String>,
    return_data: Option<bool>,
    metric_stat: Option<MetricStat>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct MetricStat {
    metric: MetricName,
    period: u64,
    stat: String,
    unit: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct MetricName {
    namespace: String,
    metric_name: String,
    dimensions: Vec<Dimension>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Dimension {
    name: String,
    value: Option<String>,
}

pub fn answer(api: &Arc<Api>, wire: Wire, request: &Request) -> Outcome {
    let named = request.header("x-amz-target").and_then(|target| target.rsplit('.').next());
    let operation = match wire {
        Wire::Cbor => request.path.rsplit('/').next().unwrap_or_default(),
        // The query protocol names the operation in its body.
        Wire::Json => named.ok_or_else(|| {
            let message =
                "danki's CloudWatch speaks CBOR (rpc-v2-cbor) and JSON; hint: an SDK of 2025 or later";
            Fault::new(Kind::NotOffered, message)
        })?,
    };
    let tree = match wire {
        Wire::Cbor if !request.body.is_empty() => cbor::read(&request.body)?,
        _ => request.json()?,
    };
    let bad = |error| Fault::invalid(format!("The request is not as the operation has it: {error}"));
    let input: Input = serde_json::from_value(tree).map_err(bad)?;
    let view = match operation {
        "GetMetricData" => data(api, &input)?,
        "GetMetricStatistics" => statistics(api, &input)?,
        "ListMetrics" => list(api, &input)?,
        other => {
            let message = format!("danki does not offer {other} of CloudWatch");
            return Err(Fault::new(Kind::NotOffered, message));
        }
    };
    Ok(wire.reply(200, &view))
}

/// A refusal, also for SDKs that know the names of the query protocol only.
pub fn refusal(wire: Wire, fault: &Fault) -> Reply {
    let (name, status) = fault.kind.wire();
    let tree = json!({ "__type": format!("com.amazonaws.cloudwatch#{name}"), "message": fault.message });
    let query_name = name.trim_end_matches("Exception");
    wire.reply(status, &tree).header("x-amzn-query-error", format!("{query_name};Sender"))
}

fn data(api: &Arc<Api>, input: &Input) -> Result<Value, Fault> {
    let (from_s, to_s) = span(input)?;
    if input.metric_data_queries.is_empty() || input.metric_data_queries.len() > QUERIES {
        return Err(Fault::invalid(format!("MetricDataQueries must have 1 to {QUERIES} members")));
    }
    let skip: usize =
        input.next_token.as_deref().map_or(Ok(0), |token| token.parse().map_err(|_| bad_token()))?;
    let limit = input.max_datapoints.unwrap_or(POINTS).clamp(1, POINTS);
    let (mut seen, mut results) = (0, Vec::new());
    for query in input.metric_data_queries.iter().filter(|query| query.return_data != Some(false)) {
        let Some(stat) = &query.metric_stat else {
            let message =
                format!("{}: danki evaluates no expressions; ask for the metrics themselves", query.id);
            return Err(Fault::invalid(message));
        };
        let statistic = Statistic::named(&stat.stat)?;
        let name = &stat.metric;
        let asked = asked(&name.namespace, &name.metric_name, &name.dimensions, stat.unit.as_deref());
        let period_s = period(stat.period)?;
        let mut points = asked.map_or_else(Vec::new, |(metric, subject)| {
            read(api, metric, |ledger| ledger.points(metric, &subject, from_s, to_s, period_s))
        });
        if input.scan_by.as_deref() != Some("TimestampAscending") {
            points.reverse();
        }
        // The pages of a request: all points in a row, cut where the limit says.
        let first = skip.saturating_sub(seen).min(points.len());
        let last = skip.saturating_add(limit).saturating_sub(seen).clamp(first, points.len());
        seen += points.len();
        let page = &points[first..last];
        results.push(json!({
            "Id": query.id,
            "Label": query.label.as_deref().unwrap_or(&name.metric_name),
            "Timestamps": page.iter().map(|point| point.at_s).collect::<Vec<_>>(),
            "Values": page.iter().map(|point| statistic.of(&point.values)).collect::<Vec<_>>(),
            "StatusCode": if last < points.len() { "PartialData" } else { "Complete" },
        }));
    }
    let mut view = json!({ "MetricDataResults": results, "Messages": [] });
    if skip.saturating_add(limit) < seen {
        view["NextToken"] = skip.saturating_add(limit).to_string().into();
    }
    Ok(view)
}

fn statistics(api: &Arc<Api>, input: &Input) -> Result<Value, Fault> {
    let (from_s, to_s) = span(input)?;
    let period_s = period(input.period.unwrap_or(RESOLUTION_S))?;
    let requested = (to_s - from_s).div_ceil(period_s);
    if requested > STATISTICS_POINTS {
        let message = format!(
            "You have requested up to {requested} datapoints, which exceeds the limit of {STATISTICS_POINTS}. You may reduce the \
             datapoints requested by increasing Period, or decreasing the time range."
        );
        return Err(Fault::new(Kind::InvalidParameterCombination, message));
    }
    if input.statistics.is_empty() && input.extended_statistics.is_empty() {
        return Err(Fault::invalid("Must specify either Statistics or ExtendedStatistics"));
    }
    let name = input.metric_name.as_deref().unwrap_or_default();
    let namespace = input.namespace.as_deref().unwrap_or_default();
    let asked = asked(namespace, name, &input.dimensions, input.unit.as_deref());
    let mut views = Vec::new();
    if let Some((metric, subject)) = asked {
        let points = read(api, metric, |ledger| ledger.points(metric, &subject, from_s, to_s, period_s));
        for Point { at_s, values } in points {
            let mut view = json!({ "Timestamp": at_s, "Unit": metric.unit() });
            for statistic in &input.statistics {
                view[statistic.as_str()] = Statistic::named(statistic)?.of(&values).into();
            }
            for statistic in &input.extended_statistics {
                view["ExtendedStatistics"][statistic.as_str()] =
                    Statistic::named(statistic)?.of(&values).into();
            }
            views.push(view);
        }
    }
    Ok(json!({ "Label": name, "Datapoints": views }))
}

fn list(api: &Arc<Api>, input: &Input) -> Result<Value, Fault> {
    let skip: usize =
        input.next_token.as_deref().map_or(Ok(0), |token| token.parse().map_err(|_| bad_token()))?;
    let since_s = input.recently_active.as_ref().map_or(0, |_| (now_ms() / 1_000).saturating_sub(RECENT_S));
    let mut all = api.metrics().metrics(since_s);
    all.extend(api.fleet.host_now().map(|host| host.metrics().metrics(since_s)).unwrap_or_default());
    let is_named = |metric: Metric| input.metric_name.as_ref().is_none_or(|name| metric.name() == name);
    let has = |subject: &Subject, asked: &Dimension| {
        let mut dimensions = subject.dimensions();
        dimensions.any(|(name, value)| name == asked.name && asked.value.as_ref().is_none_or(|v| v == value))
    };
    let found = all.iter().filter(|(metric, subject)| {
        is_named(*metric) && input.dimensions.iter().all(|asked| has(subject, asked))
    });
    let found: Vec<_> = match input.namespace.as_deref() {
        None | Some(NAMESPACE) => found.collect(),
        Some(_) => Vec::new(),
    };
    let page = found.iter().skip(skip).take(LISTED).map(|(metric, subject)| {
        let dimension = |(name, value)| json!({ "Name": name, "Value": value });
        let dimensions: Vec<Value> = subject.dimensions().map(dimension).collect();
        json!({ "Namespace": NAMESPACE, "MetricName": metric.name(), "Dimensions": dimensions })
    });
    let mut view = json!({ "Metrics": page.collect::<Vec<_>>() });
    if skip.saturating_add(LISTED) < found.len() {
        view["NextToken"] = skip.saturating_add(LISTED).to_string().into();
    }
    Ok(view)
}

/// What a query is about; none if Lambda has no such metric: then there is no data.
fn asked(
    namespace: &str,
    name: &str,
    dimensions: &[Dimension],
    unit: Option<&str>,
) -> Option<(Metric, Subject)> {
    let metric = Metric::named(name).filter(|_| namespace == NAMESPACE)?;
    let named = dimensions.iter().map(|d| (d.name.as_str(), d.value.as_deref().unwrap_or_default()));
    let subject = Subject::of(named)?;
    unit.is_none_or(|unit| unit == metric.unit()).then_some((metric, subject))
}

/// Events are counted where they wait, everything else where functions run.
fn read<T: Default>(api: &Arc<Api>, metric: Metric, look: impl FnOnce(&Ledger) -> T) -> T {
    if crate::asynchronous::METRICS.contains(&metric) {
        return look(&api.metrics());
    }
    api.fleet.host_now().map(|host| look(&host.metrics())).unwrap_or_default()
}

/// From and to, s; the beginning is rounded down to its minute.
fn span(input: &Input) -> Result<(u64, u64), Fault> {
    let (Some(from), Some(to)) = (input.start_time, input.end_time) else {
        return Err(Fault::invalid("StartTime and EndTime are required"));
    };
    if from >= to {
        let message = "The parameter StartTime must be less than the parameter EndTime.";
        return Err(Fault::invalid(message));
    }
    Ok((from.max(0.0) as u64 / RESOLUTION_S * RESOLUTION_S, to.max(0.0).ceil() as u64))
}

fn period(seconds: u64) -> Result<u64, Fault> {
    let legal = matches!(seconds, 1 | 5 | 10 | 20 | 30) || seconds.is_multiple_of(RESOLUTION_S);
    if legal && (1..=PERIOD_MAX_S).contains(&seconds) {
        return Ok(seconds.max(RESOLUTION_S));
    }
    Err(Fault::invalid(format!(
        "Period {seconds}: allowed are 1, 5, 10, 20, 30 and multiples of 60, up to {PERIOD_MAX_S}"
    )))
}

fn bad_token() -> Fault {
    Fault::invalid("NextToken is not one that was given out")
}

/// What is made of the values of a period.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Statistic {
    SampleCount,
    Average,
    Sum,
    Minimum,
    Maximum,
    Quantile(f64),
}

impl Statistic {
    fn named(name: &str) -> Result<Statistic, Fault> {
        let percent = |name: &str| -> Option<f64> {
            let digits =
                name.strip_prefix('p').filter(|digits| digits.starts_with(|c: char| c.is_ascii_digit()))?;
            digits.parse().ok().filter(|p| (0.0..=100.0).contains(p))
        };
        Ok(match name {
            "SampleCount" => Statistic::SampleCount,
            "Average" => Statistic::Average,
            "Sum" => Statistic::Sum,
            "Minimum" => Statistic::Minimum,
            "Maximum" => Statistic::Maximum,
            other => {
                let unknown = || {
                    let offered = "SampleCount, Average, Sum, Minimum, Maximum and p0 to p100";
                    Fault::invalid(format!("statistic {other}: danki offers {offered}"))
                };
                Statistic::Quantile(percent(other).ok_or_else(unknown)? / 100.0)
            }
        })
    }

    fn of(self, values: &Distribution) -> f64 {
        match self {
            Statistic::SampleCount => values.count as f64,
            Statistic::Average => values.mean(),
            Statistic::Sum => values.sum,
            Statistic::Minimum => values.min,
            Statistic::Maximum => values.max,
            Statistic::Quantile(p) => values.quantile(p),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_have_cloudwatch_s_names() {
        let mut values = Distribution::default();
        [1.0, 2.0, 3.0, 10.0].into_iter().for_each(|value| values.add(value));
        let check = |name: &str, expect: f64| {
            let found = Statistic::named(name).expect("a statistic").of(&values);
            assert!((found - expect).abs() < expect * 0.006, "{name}: {found}");
        };
        check("SampleCount", 4.0);
        check("Average", 4.0);
        check("Sum", 16.0);
        check("Minimum", 1.0);
        check("Maximum", 10.0);
        check("p50", 2.0);
        check("p99.9", 10.0);
        for bad in ["p101", "p", "p-1", "tm90", "median", "pinf"] {
            assert!(Statistic::named(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn periods_have_cloudwatch_s_lengths() {
        let check = |seconds, expect| assert_eq!(period(seconds).ok(), expect, "{seconds}");
        check(1, Some(60));
        check(60, Some(60));
        check(300, Some(300));
        check(86_400, Some(86_400));
        for bad in [0, 2, 61, 86_460, u64::MAX] {
            check(bad, None);
        }
    }
}
