//! Counters and gauges under the names that CloudWatch has for RDS Proxy, in Prometheus' text format.

use std::fmt::Write;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A sum and a count, whose quotient CloudWatch shows as Average.
#[derive(Debug, Default)]
pub struct Latency {
    sum_us: AtomicU64,
    count: AtomicU64,
}

impl Latency {
    pub(crate) fn add(&self, us: u64) {
        self.sum_us.fetch_add(us, Relaxed);
        self.count.fetch_add(1, Relaxed);
    }

    /// Sum in microseconds, and count.
    pub fn sum_and_count(&self) -> (u64, u64) {
        (self.sum_us.load(Relaxed), self.count.load(Relaxed))
    }
}

macro_rules! metrics {
    ($($name:ident $kind:literal $public:literal $help:literal;)*) => {
        /// All figures of a proxy.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $(#[doc = $help] pub $name: AtomicU64,)*
            /// From the wish for a connection to having it.
            pub database_connections_borrow_latency: Latency,
            /// From a statement's last byte to the last of its reply.
            pub query_database_response_latency: Latency,
        }

        impl Metrics {
            /// Prometheus' text format.
            pub fn text(&self, proxy: &str) -> String {
                let mut out = String::new();
                $(line(&mut out, $public, $kind, $help, proxy, self.$name.load(Relaxed));)*
                let latencies = [
                    ("DatabaseConnectionsBorrowLatency", &self.database_connections_borrow_latency),
                    ("QueryDatabaseResponseLatency", &self.query_database_response_latency),
                ];
                for (name, latency) in latencies {
                    let (sum, count) = latency.sum_and_count();
                    let _infallible = writeln!(out, "# TYPE {name} summary");
                    let _infallible = writeln!(out, "{name}_sum{{ProxyName={proxy:?}}} {sum}");
                    let _infallible = writeln!(out, "{name}_count{{ProxyName={proxy:?}}} {count}");
                }
                out
            }
        }
    };
}

metrics! {
    availability_percentage "gauge" "AvailabilityPercentage" "Whether the last health check succeeded: 100 or 0";
    client_connections "gauge" "ClientConnections" "Clients connected";
    client_connections_closed "counter" "ClientConnectionsClosed" "Clients gone";
    client_connections_received "counter" "ClientConnectionsReceived" "Connections accepted";
    client_connections_setup_failed_auth "counter" "ClientConnectionsSetupFailedAuth" "Logins refused";
    client_connections_setup_succeeded "counter" "ClientConnectionsSetupSucceeded" "Logins accepted";
    client_connections_tls "counter" "ClientConnectionsTLS" "Logins over TLS";
    client_connections_no_tls "counter" "ClientConnectionsNoTLS" "Logins without TLS";
    database_connection_requests "counter" "DatabaseConnectionRequests" "Wishes for a connection";
    database_connections "gauge" "DatabaseConnections" "Connections to the database";
    database_connections_currently_borrowed "gauge" "DatabaseConnectionsCurrentlyBorrowed" "Connections that clients have";
    database_connections_currently_in_transaction "gauge" "DatabaseConnectionsCurrentlyInTransaction" "Connections in a transaction";
    database_connections_currently_session_pinned "gauge" "DatabaseConnectionsCurrentlySessionPinned" "Connections tied to a session";
    database_connections_setup_failed "counter" "DatabaseConnectionsSetupFailed" "Connections that could not be opened";
    database_connections_setup_succeeded "counter" "DatabaseConnectionsSetupSucceeded" "Connections opened";
    database_connections_with_tls "gauge" "DatabaseConnectionsWithTLS" "Connections to the database over TLS";
    max_database_connections_allowed "gauge" "MaxDatabaseConnectionsAllowed" "The pool's cap";
    query_requests "counter" "QueryRequests" "Statements received";
    borrow_timeouts "counter" "DankiBorrowTimeouts" "Clients that waited in vain";
    sessions_pinned "counter" "DankiSessionsPinned" "Sessions tied to a connection";
    waiting_clients "gauge" "DankiWaitingClients" "Clients that wait for a connection";
    longest_hold "gauge" "DankiLongestHoldMicroseconds" "The longest that a client had a connection";
}

fn line(out: &mut String, name: &str, kind: &str, help: &str, proxy: &str, value: u64) {
    let _infallible =
        writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{{ProxyName={proxy:?}}} {value}");
}
