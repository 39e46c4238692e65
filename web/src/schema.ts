// Generated from the Rust types by `cargo xtask schema`; do not edit. `cargo xtask tidy` compares.

/** The run's set-up. Written when the run starts and once more when it ends. */
export interface Manifest {
  schema: number;
  danki: string;
  name: string;
  experiment: unknown;
  started_epoch_ms: number;
  started_ns: number;
  epoch_offset_ns: number;
  seed: number;
  time_scale: number;
  quick: boolean;
  machine: Machine;
  capabilities: unknown;
  calibration: Calibration;
  complete: boolean;
}

/** The machine a run ran on. */
export interface Machine {
  kernel: string;
  cpus: number;
  cpu_model: string;
}

/** Single-thread speed of this machine against a Lambda vCPU. */
export interface Calibration {
  cpu_factor: number | null;
  measurements: Measurement[];
}

/** One workload's time here and on AWS. */
export interface Measurement {
  workload: string;
  here_ms: number;
  runs: number;
  aws_ms: number;
  source: string;
}

/** Something the facts say. */
export interface Finding {
  variant: string | null;
  kind: string;
  level: Level;
  text: string;
  evidence: Evidence[];
  examples: string[];
  connections: number[];
  share: number | null;
  confidence: Confidence;
  remedy: Remedy | null;
}

/** A number behind a sentence. */
export interface Evidence {
  name: string;
  value: number;
  unit: string;
}

/** What a finding means for its reader. The order is that of reports. */
export type Level = "problem" | "note" | "good";

/** How sure an attribution is. */
export type Confidence = "high" | "medium" | "low";

/** What would change it. */
export interface Remedy {
  text: string;
  saves_ms: number | null;
  saves_usd_per_million: number | null;
  change: Change | null;
}

/** A change that danki can apply to a variant without touching the function's code. */
export type Change = { apply: "memory"; mb: number; } | { apply: "environment"; name: string;   value: string; } | { apply: "keep_alive"; } | { apply: "provisioned_concurrency"; envs: number; } | { apply: "no_db_proxy"; } | { apply: "db_proxy"; } | { apply: "ping"; every_s: number; };

/** A run in numbers. */
export interface Summary {
  schema: number;
  name: string;
  complete: boolean;
  seed: number;
  time_scale: number;
  repetitions: number;
  variants: VariantSummary[];
  expect: Expectation[];
  findings: Finding[];
  calibration: Calibration;
  link: unknown;
  caveats: string[];
}

/** One variant in numbers. */
export interface VariantSummary {
  name: string;
  memory_mb: number;
  invocations: number;
  errors: number;
  timeouts: number;
  cold_starts: number;
  duration_ms: Quantiles;
  warm_duration_ms: Quantiles;
  client_ms: Quantiles;
  late_ms: Quantiles;
  init_ms: number[];
  calls: Record<string, Quantiles>;
  durations: Record<string, Quantiles>;
  throttles: number;
  requests: RequestCounts | null;
  database: DatabaseCounts | null;
  returned: Record<string, Quantiles>;
  connections: ConnectionCounts;
  capture: CaptureCounts;
  connections_per_invocation: number;
  handshakes_per_invocation: number;
  throttled_ratio: number;
  cpu_share: number;
  unattributed_ratio: number;
  waterfall_ms: Record<string, Quantiles>;
}

/** Requests of a load with several clients. */
export interface RequestCounts {
  per_s: number;
  non_2xx: number;
  percent_ms: Record<string, number>;
}

/** Connections to a database, and waiting for them. */
export interface DatabaseCounts {
  proxy: string | null;
  max_connections: number;
  opened: number;
  peak: number;
  over_time: [number, number][];
  clients: number;
  borrow_wait_ms: Quantiles;
  borrow_timeouts: number;
  wait_share_of_p95: number;
  pins: number;
  pinned_by: Record<string, number>;
  statement_ms: Quantiles;
}

/** TCP connections and TLS handshakes of a variant. */
export interface ConnectionCounts {
  opened: number;
  reused: number;
  tls_handshakes: number;
  tls_resumed: number;
  reset: number;
}

/** Handshakes counted in a capture, each once however often its packets were sent. */
export interface CaptureCounts {
  tcp_handshakes: number;
  tls_handshakes: number;
}

/** A sample's summary. Quantiles of an empty sample are absent. */
export interface Quantiles {
  n: number;
  min: number | null;
  p50: number | null;
  p90: number | null;
  p95: number | null;
  p99: number | null;
  max: number | null;
  mean: number | null;
  method: string;
  p50_interval: [number, number] | null;
}

/** A published figure beside the measured one. */
export interface Expectation {
  name: string;
  metric: string;
  published: number | null;
  measured: number | null;
  ratio: number | null;
  within: boolean;
  allowed: string;
  source: string;
  reason: string;
}

/** Calls of a variant's function to one operation of one service. */
export interface Edge {
  variant: string;
  service: string;
  operation: string;
  invocations: number;
  calls: number;
  faults: number;
  throttles: number;
  errors: number;
  opened: number;
  took_ms: Quantiles;
  service_ms: Quantiles;
}

/** A run, as the page shows it. */
export interface Page {
  manifest: Manifest;
  summary: Summary;
  description: string;
  parts: string[];
  invocations: Invocations;
  calls: Calls;
  envs: EnvLife[];
  connections: Connections;
  edges: Edge[];
  costs: Cost[];
  databases: Database[];
}

/** A column of numbers. */
export type Columns = number[];

/** Pairs of numbers, flat. */
export type Spans = number[];

/** Columns, one entry per invocation. */
export interface Invocations {
  id: string[];
  variant: Columns;
  env: Columns;
  start: Columns;
  failure: Columns;
  failures: string[];
  dispatched_delta: Columns;
  span: Columns;
  after: Columns;
  duration: Columns;
  init: Columns;
  cpu: Columns;
  throttled: Columns;
  memory: Columns;
  segments: Spans[];
}

/** Columns, one entry per request to the region. Times in µs relative to the invocation's dispatch. */
export interface Calls {
  invocation: Columns;
  name: Columns;
  names: string[];
  status: Columns;
  conn: Columns;
  from: Columns;
  sent: Columns;
  read: Columns;
  answered: Columns;
  done: Columns;
  dns: Columns;
  tcp: Columns;
  tls: Columns;
  idle: Columns;
}

/** An environment's life. */
export interface EnvLife {
  env: number;
  variant: number;
  initialization: string;
  created: number;
  inits: Spans;
  ended: number;
}

/** Columns, one entry per TCP connection. Times in µs since its SYN; -1: never. */
export interface Connections {
  conn: Columns;
  env: Columns;
  port: Columns;
  server: Columns;
  servers: string[];
  syn_delta: Columns;
  established: Columns;
  last_byte: Columns;
  closed: Columns;
  closed_by: Columns;
  up: Columns;
  down: Columns;
  requests: Columns;
}

/** What a variant costs. */
export interface Cost {
  variant: string;
  usd_per_million: number;
  requests_usd: number;
  gb_seconds: number;
  source: string;
}

/** Connections at a database over time. */
export interface Database {
  name: string;
  open: Spans;
}

/** What there is now. */
export interface Live {
  danki: string;
  region: string;
  freezes: boolean;
  started_epoch_ms: number;
  dropped: number;
  functions: LiveFunction[];
  envs: LiveEnv[];
}

/** A function, its versions together. */
export interface LiveFunction {
  name: string;
  runtime: string;
  memory_mb: number;
  state: string;
  reserved: number | null;
  provisioned: number;
  invocations: number;
  errors: number;
  throttles: number;
}

/** An execution environment. */
export interface LiveEnv {
  env: number;
  function: string;
  version: string;
  provisioned: boolean;
  state: string;
  since_epoch_ms: number;
}

/** An invocation that has ended. */
export interface LiveInvocation {
  id: string;
  function: string;
  env: number;
  start: string;
  status: string;
  at_epoch_ms: number;
  span_ms: number;
  duration_ms: number;
  init_ms: number | null;
  cpu_ms: number;
  throttled_ms: number;
  memory_used_mb: number;
}

/** Invocations that have ended since the last such message. */
export interface News {
  invocations: LiveInvocation[];
  missed: number;
}
