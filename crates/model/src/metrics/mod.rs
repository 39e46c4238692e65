//! Lambda's CloudWatch metrics: their names, units and dimensions, and a ledger of their values by the minute.
//!
//! A value belongs to whatever was invoked (function, qualifier, version). Counts are added up over all that a query's dimensions leave
//! open; what is measured for one set of dimensions only (concurrency of a function is no sum over its versions' maxima) is recorded for
//! exactly that set. Source: AWS developer guide, types of metrics.

mod distribution;
mod ledger;

pub use distribution::Distribution;
pub use ledger::{Ledger, Point};

/// Where CloudWatch keeps them.
pub const NAMESPACE: &str = "AWS/Lambda";
/// CloudWatch keeps standard metrics by the minute.
pub const RESOLUTION_S: u64 = 60;

/// What is counted or measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Asynchronous events: from their acceptance to an attempt.
    AsyncEventAge,
    /// Asynchronous events that ended without a success.
    AsyncEventsDropped,
    /// Asynchronous events accepted.
    AsyncEventsReceived,
    /// Invocations under way, and reservations and provisioned concurrency whether used or not.
    ClaimedAccountConcurrency,
    /// Invocations under way.
    ConcurrentExecutions,
    /// Events that could not be sent to their dead letter target.
    DeadLetterErrors,
    /// Records that could not be sent to their destination.
    DestinationDeliveryFailures,
    /// How long the function ran, without init.
    Duration,
    /// Invocations that ended in an error; 0 for the others.
    Errors,
    /// Invocations that ran.
    Invocations,
    /// What extensions went on for after the answer.
    PostRuntimeExtensionsDuration,
    /// Provisioned environments that hold an invocation.
    ProvisionedConcurrentExecutions,
    /// Invocations that a provisioned environment took.
    ProvisionedConcurrencyInvocations,
    /// Invocations that found all provisioned environments taken.
    ProvisionedConcurrencySpilloverInvocations,
    /// Share of the provisioned environments that hold an invocation.
    ProvisionedConcurrencyUtilization,
    /// Events that went round too often.
    RecursiveInvocationsDropped,
    /// Invocations that were not taken.
    Throttles,
    /// Invocations under way of functions without reserved concurrency.
    UnreservedConcurrentExecutions,
}

use Metric::*;

impl Metric {
    /// All of them, by name.
    pub const ALL: [Metric; 18] = [
        AsyncEventAge,
        AsyncEventsDropped,
        AsyncEventsReceived,
        ClaimedAccountConcurrency,
        ConcurrentExecutions,
        DeadLetterErrors,
        DestinationDeliveryFailures,
        Duration,
        Errors,
        Invocations,
        PostRuntimeExtensionsDuration,
        ProvisionedConcurrentExecutions,
        ProvisionedConcurrencyInvocations,
        ProvisionedConcurrencySpilloverInvocations,
        ProvisionedConcurrencyUtilization,
        RecursiveInvocationsDropped,
        Throttles,
        UnreservedConcurrentExecutions,
    ];

    /// CloudWatch's name.
    pub fn name(self) -> &'static str {
        match self {
            AsyncEventAge => "AsyncEventAge",
            AsyncEventsDropped => "AsyncEventsDropped",
            AsyncEventsReceived => "AsyncEventsReceived",
            ClaimedAccountConcurrency => "ClaimedAccountConcurrency",
            ConcurrentExecutions => "ConcurrentExecutions",
            DeadLetterErrors => "DeadLetterErrors",
            DestinationDeliveryFailures => "DestinationDeliveryFailures",
            Duration => "Duration",
            Errors => "Errors",
            Invocations => "Invocations",
            PostRuntimeExtensionsDuration => "PostRuntimeExtensionsDuration",
            ProvisionedConcurrentExecutions => "ProvisionedConcurrentExecutions",
            ProvisionedConcurrencyInvocations => "ProvisionedConcurrencyInvocations",
            ProvisionedConcurrencySpilloverInvocations => "ProvisionedConcurrencySpilloverInvocations",
            ProvisionedConcurrencyUtilization => "ProvisionedConcurrencyUtilization",
            RecursiveInvocationsDropped => "RecursiveInvocationsDropped",
            Throttles => "Throttles",
            UnreservedConcurrentExecutions => "UnreservedConcurrentExecutions",
        }
    }

    /// The metric of a name.
    pub fn named(name: &str) -> Option<Metric> {
        Metric::ALL.into_iter().find(|metric| metric.name() == name)
    }

    /// CloudWatch's unit.
    pub fn unit(self) -> &'static str {
        match self {
            Duration | PostRuntimeExtensionsDuration | AsyncEventAge => "Milliseconds",
            _ => "Count",
        }
    }

    /// Recorded for exactly one set of dimensions; never added up.
    pub fn is_gauge(self) -> bool {
        matches!(
            self,
            ClaimedAccountConcurrency
                | ConcurrentExecutions
                | ProvisionedConcurrentExecutions
                | ProvisionedConcurrencyUtilization
                | UnreservedConcurrentExecutions
        )
    }
}

/// Whom a value belongs to, or what a query asks for: the account, a function, what was invoked of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    /// `FunctionName`; none is the whole account.
    pub function: Option<String>,
    /// `Resource`: the function as it was invoked, `name` or `name:qualifier`.
    pub resource: Option<String>,
    /// `ExecutedVersion`, where an alias was invoked.
    pub version: Option<String>,
}

impl Subject {
    /// A function, however it was invoked.
    pub fn function(name: &str) -> Subject {
        Subject { function: Some(name.to_owned()), ..Subject::default() }
    }

    /// A function as it was invoked, and by which version it was served.
    pub fn invoked(name: &str, qualifier: Option<&str>, version: &str) -> Subject {
        let is_alias = qualifier.is_some_and(|q| q != version);
        let resource = qualifier.map_or_else(|| name.to_owned(), |q| format!("{name}:{q}"));
        Subject {
            function: Some(name.to_owned()),
            resource: Some(resource),
            version: is_alias.then(|| version.to_owned()),
        }
    }

    /// CloudWatch's dimensions.
    pub fn dimensions(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let named = [
            ("FunctionName", &self.function),
            ("Resource", &self.resource),
            ("ExecutedVersion", &self.version),
        ];
        named.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }

    /// The subject of these dimensions; none if Lambda has no such dimension.
    pub fn of<'d>(dimensions: impl IntoIterator<Item = (&'d str, &'d str)>) -> Option<Subject> {
        let mut subject = Subject::default();
        for (name, value) in dimensions {
            let place = match name {
                "FunctionName" => &mut subject.function,
                "Resource" => &mut subject.resource,
                "ExecutedVersion" => &mut subject.version,
                _ => return None,
            };
            *place = Some(value.to_owned());
        }
        Some(subject)
    }

    /// The sets of dimensions under which CloudWatch shows a value of this subject, the widest first.
    pub fn widened(&self) -> Vec<Subject> {
        let mut all = vec![Subject::default()];
        for depth in 1..=3 {
            let subject = Subject {
                function: self.function.clone(),
                resource: self.resource.clone().filter(|_| depth > 1),
                version: self.version.clone().filter(|_| depth > 2),
            };
            if all.last() != Some(&subject) {
                all.push(subject);
            }
        }
        all
    }

    /// Is the other one a part of this?
    fn includes(&self, other: &Subject) -> bool {
        let fits = |mine: &Option<String>, its: &Option<String>| mine.is_none() || mine == its;
        fits(&self.function, &other.function)
            && fits(&self.resource, &other.resource)
            && fits(&self.version, &other.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for metric in Metric::ALL {
            assert_eq!(Metric::named(metric.name()), Some(metric));
        }
        assert_eq!(Metric::named("Invocation"), None);
    }

    #[test]
    fn subjects_have_cloudwatch_s_dimensions() {
        let check = |qualifier, version, expect: &[(&str, &str)]| {
            let subject = Subject::invoked("f", qualifier, version);
            assert_eq!(subject.dimensions().collect::<Vec<_>>(), expect);
            assert_eq!(Subject::of(expect.iter().copied()), Some(subject));
        };
        check(None, "$LATEST", &[("FunctionName", "f"), ("Resource", "f")]);
        check(Some("2"), "2", &[("FunctionName", "f"), ("Resource", "f:2")]);
        let live = [("FunctionName", "f"), ("Resource", "f:live"), ("ExecutedVersion", "2")];
        check(Some("live"), "2", &live);
        assert_eq!(Subject::of([("Queue", "q")]), None);
        assert_eq!(Subject::invoked("f", Some("live"), "2").widened().len(), 4);
        assert_eq!(Subject::function("f").widened(), [Subject::default(), Subject::function("f")]);
    }
}
