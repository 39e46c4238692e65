//! Events of a run, grouped by env and joined: a request belongs to the connection that had its client address at its
//! time (ports are reused), a call to the invocation of its env that was open when the endpoint read it.

use crate::database;
use crate::spans::span;
use danki_model::{ConnId, EnvId, InitializationType};
use danki_record::{
    Connection, CpuSeries, CpuWaitSeries, DatabaseEvent, DnsQuery, EnvEvent, EnvWhat, Event, Flight,
    Invocation, Refused, Request, Span,
};
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

/// One connection with what happened on it.
#[derive(Clone, Debug)]
pub struct ConnFacts {
    /// The connection.
    pub connection: Connection,
    /// When packets of it were in the link, by begin.
    pub flights: Vec<Span>,
    /// What passed before bytes came from the endpoint and nothing was under way, by begin.
    pub turns: Vec<Span>,
    /// Requests on it, in order of arrival.
    pub requests: Vec<Request>,
}

/// What is known about one env.
#[derive(Clone, Debug, Default)]
pub struct EnvFacts {
    /// Connections, by SYN.
    pub connections: Vec<ConnFacts>,
    /// DNS queries, by begin.
    pub dns: Vec<DnsQuery>,
    /// CPU series, by first sample; samples are in order of time.
    pub cpu: Vec<CpuSeries>,
    /// Waits for a CPU, by first sample; samples are in order of time.
    pub cpu_wait: Vec<CpuWaitSeries>,
    /// How long calls to servers inside the env took, ms, as the function's X-Ray SDK told: the link does not see them.
    pub local_calls_ms: Vec<f64>,
    /// Init phases that ended, on the caller's path or not.
    pub inits: Vec<Span>,
    /// What happened to its clients at proxies before a database, in order.
    pub at_proxies: Vec<DatabaseEvent>,
    /// The longest of their waits.
    pub slowest_at_proxies_ns: u64,
    /// The variant it belongs to, if that was recorded.
    pub variant: Option<String>,
    /// Why it was created, if that was recorded.
    pub initialization: Option<InitializationType>,
}

/// A run's facts.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// By env.
    pub envs: BTreeMap<EnvId, EnvFacts>,
    /// All invocations, by dispatch.
    pub invocations: Vec<Invocation>,
    /// What proxies did to their connections to a database, in order.
    pub proxies: Vec<DatabaseEvent>,
    /// Invocations answered 429, in order.
    pub refused: Vec<Refused>,
    /// Requests that match no recorded connection (events were dropped, or the link was not in their way).
    pub orphans: Vec<Request>,
}

impl ConnFacts {
    /// Last instant at which it is known to have existed.
    pub(crate) fn end_ns(&self) -> u64 {
        self.connection.closed_ns.unwrap_or(u64::MAX)
    }

    /// When it was last of use: its last answer, else its opening. The last byte is later: TLS says goodbye (close_notify) right
    /// before the FIN, and a frozen env gets both when it is thawed.
    pub(crate) fn used_until_ns(&self) -> u64 {
        let opened = self.connection.established_ns.unwrap_or(self.connection.syn_ns);
        self.requests.iter().map(|r| r.service_time.to_ns).max().unwrap_or(opened)
    }

    /// One-way delay, from its own handshake; 0 when it was never established.
    pub(crate) fn one_way_ns(&self) -> u64 {
        let c = &self.connection;
        c.established_ns.map_or(0, |established| established.saturating_sub(c.syn_ns) / 2)
    }
}

impl Facts {
    /// Groups and joins events, which may come in any order.
    pub fn gather(events: &[Event]) -> Facts {
        let mut facts = Facts::default();
        let mut flights: HashMap<ConnId, Vec<Flight>> = HashMap::new();
        let mut requests = Vec::new();
        let mut at_proxies = Vec::new();
        for event in events {
            match event {
                Event::Invocation(invocation) if invocation.ping => {}
                Event::Invocation(invocation) => facts.invocations.push(invocation.clone()),
                Event::Cpu(series) => facts.add_cpu(series.clone()),
                Event::CpuWait(series) => facts.add_cpu_wait(series.clone()),
                Event::Dns(query) => facts.env(query.env).dns.push(query.clone()),
                Event::Connection(connection) => facts.add_connection(connection),
                Event::Flight(flight) => flights.entry(flight.conn).or_default().push(*flight),
                Event::Database(event) if event.client.is_some() => at_proxies.push(event.clone()),
                Event::Database(event) => facts.proxies.push(event.clone()),
                Event::Request(request) => requests.push(request.clone()),
                Event::Env(event) => facts.add_env(event),
                Event::Segment(segment) => {
                    let took_ms = local_call_ms(&segment.document);
                    facts.env(segment.env).local_calls_ms.extend(took_ms);
                }
                Event::Refused(refused) => facts.refused.push(refused.clone()),
                // Logs, caveats and what newer producers record say nothing about where time went.
                _ => {}
            }
        }
        facts.invocations.sort_by_key(|i| (i.dispatched_ns, i.env));
        for env in facts.envs.values_mut() {
            env.sort(&mut flights);
        }
        facts.proxies.sort_by_key(|event| event.at_ns);
        facts.join_proxies(at_proxies);
        facts.join(requests);
        facts
    }

    /// What is known about an env; nothing for an unknown one.
    pub fn of_env(&self, env: EnvId) -> Option<&EnvFacts> {
        self.envs.get(&env)
    }

    fn env(&mut self, env: EnvId) -> &mut EnvFacts {
        self.envs.entry(env).or_default()
    }

    fn add_env(&mut self, event: &EnvEvent) {
        let env = self.env(event.env);
        env.variant = Some(event.variant.clone());
        match &event.what {
            EnvWhat::InitDone { span, .. } => env.inits.push(*span),
            EnvWhat::Creating { initialization } => env.initialization = Some(*initialization),
            _ => {}
        }
    }

    fn add_cpu(&mut self, mut series: CpuSeries) {
        series.samples.sort_by_key(|s| s.at_ns);
        self.env(series.env).cpu.push(series);
    }

    fn add_cpu_wait(&mut self, mut series: CpuWaitSeries) {
        series.samples.sort_by_key(|s| s.at_ns);
        self.env(series.env).cpu_wait.push(series);
    }

    fn add_connection(&mut self, connection: &Connection) {
        let connection = ConnFacts {
            connection: connection.clone(),
            flights: Vec::new(),
            turns: Vec::new(),
            requests: Vec::new(),
        };
        self.env(connection.connection.env).connections.push(connection);
    }

    /// By the client's address: every env of a run has its own.
    fn join_proxies(&mut self, mut events: Vec<DatabaseEvent>) {
        events.sort_by_key(|event| event.at_ns);
        let connections = |(env, facts): (&EnvId, &EnvFacts)| {
            facts.connections.first().map(|c| (c.connection.client.ip(), *env))
        };
        let of_address: HashMap<IpAddr, EnvId> = self.envs.iter().filter_map(connections).collect();
        for event in events {
            let env = event.client.and_then(|client| of_address.get(&client.ip()).copied());
            if let Some(facts) = env.and_then(|env| self.envs.get_mut(&env)) {
                let took_ns = database::took_ns(&event).unwrap_or(0);
                facts.slowest_at_proxies_ns = facts.slowest_at_proxies_ns.max(took_ns);
                facts.at_proxies.push(event);
            }
        }
    }

    fn join(&mut self, mut requests: Vec<Request>) {
        requests.sort_by_key(|r| (r.received.from_ns, r.ordinal));
        let mut by_client: HashMap<SocketAddr, Vec<(u64, EnvId, usize)>> = HashMap::new();
        for (env, facts) in &self.envs {
            for (at, c) in facts.connections.iter().enumerate() {
                by_client.entry(c.connection.client).or_default().push((c.connection.syn_ns, *env, at));
            }
        }
        by_client.values_mut().for_each(|holders| holders.sort_unstable());
        for request in requests {
            let holder = by_client.get(&request.client).and_then(|holders| {
                let after = holders.partition_point(|(syn_ns, ..)| *syn_ns <= request.received.from_ns);
                after.checked_sub(1).map(|at| holders[at])
            });
            match holder.and_then(|(_, env, at)| self.envs.get_mut(&env).map(|e| &mut e.connections[at])) {
                Some(conn) => conn.requests.push(request),
                None => self.orphans.push(request),
            }
        }
    }
}

/// Length of a finished call to localhost, such as an extension's; none if the document tells of something else.
fn local_call_ms(document: &serde_json::Value) -> Option<f64> {
    let name = document["name"].as_str()?;
    let local =
        document["namespace"] == "remote" && (name.starts_with("localhost") || name.starts_with("127."));
    let took_s = document["end_time"].as_f64()? - document["start_time"].as_f64()?;
    (local && took_s >= 0.0).then_some(took_s * 1e3)
}

impl EnvFacts {
    fn sort(&mut self, flights: &mut HashMap<ConnId, Vec<Flight>>) {
        self.connections.sort_by_key(|c| (c.connection.syn_ns, c.connection.conn));
        for c in &mut self.connections {
            let mut flights = flights.remove(&c.connection.conn).unwrap_or_default();
            flights.sort_by_key(|f| (f.span.from_ns, f.span.to_ns));
            let answered = flights.windows(2).filter(|pair| pair[1].answers);
            c.turns = answered.map(|pair| span(pair[0].span.to_ns, pair[1].span.from_ns)).collect();
            c.flights = flights.iter().map(|f| f.span).collect();
        }
        self.dns.sort_by_key(|q| (q.span.from_ns, q.span.to_ns));
        self.cpu.sort_by_key(|series| series.samples.first().map(|s| s.at_ns));
        self.cpu_wait.sort_by_key(|series| series.samples.first().map(|s| s.at_ns));
        self.inits.sort_by_key(|s| s.from_ns);
    }

    /// Connections that existed at some instant of `s`.
    pub(crate) fn connections_during(&self, s: Span) -> impl Iterator<Item = &ConnFacts> {
        let until = self.connections.partition_point(|c| c.connection.syn_ns <= s.to_ns);
        // After its FIN a connection still has packets under way: its flights are looked at one by one.
        self.connections[..until].iter().filter(move |c| {
            let last_flight = c.flights.last().map_or(0, |f| f.to_ns);
            c.end_ns().max(last_flight) >= s.from_ns
        })
    }
}
