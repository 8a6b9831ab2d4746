// The catalogue of krane's metrics. Each definition gives the typed member that code writes to, the line on the
// endpoint, and the row in docs/metrics.md; a test compares the page with this table both ways.
//
// Names and labels are those that existing dashboards and alerts use. No label holds a customer's id: one series per
// workspace would grow without limit, in krane and in Prometheus.

/** A label whose values are not listed. The writer keeps them few: a method name, never an id or a user's text. */
const anyValue = "any";

/** A label whose values are the controller names, which the kinds define, and some more. */
interface ControllerNames {
  readonly controllersAnd: readonly string[];
}

export type LabelDefinitions = Readonly<
  Record<string, readonly string[] | typeof anyValue | ControllerNames>
>;

export interface MetricDefinition<L extends LabelDefinitions = LabelDefinitions> {
  readonly type: "counter" | "gauge" | "histogram";
  readonly name: string;
  readonly help: string;
  readonly labels: L;
  /** Upper bounds of a histogram's buckets, ascending, without infinity. */
  readonly buckets?: readonly number[];
  /** The part of krane that writes it. */
  readonly writer: string;
}

/** The labels of one series: each label with one of its values. */
export type LabelsOf<L extends LabelDefinitions> = {
  readonly [Name in keyof L]: L[Name] extends readonly string[] ? L[Name][number] : string;
};

const durationBucketsSeconds = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2, 3, 5, 10,
] as const;

const controller: ControllerNames = { controllersAnd: [] };
// The agent's reports about itself have their own connection, and so have the logs that people read.
const connection: ControllerNames = { controllersAnd: ["agent", "logs"] };
// The secrets service and the logs have their own connections to the API server, like each controller.
const kubernetesUser: ControllerNames = { controllersAnd: ["secrets", "logs"] };
const result = ["success", "error"] as const;
const verb = ["get", "list", "watch", "create", "patch", "delete"] as const;
const operation = ["apply", "delete"] as const;
const breakerState = ["closed", "open", "halfopen"] as const;
const rpcCode = [
  "ok",
  "canceled",
  "unknown",
  "invalid_argument",
  "deadline_exceeded",
  "not_found",
  "already_exists",
  "permission_denied",
  "resource_exhausted",
  "failed_precondition",
  "aborted",
  "out_of_range",
  "unimplemented",
  "internal",
  "unavailable",
  "data_loss",
  "unauthenticated",
] as const;

type Origin = Pick<MetricDefinition, "writer">;

function counter<const L extends LabelDefinitions>(name: string, labels: L, help: string, origin: Origin) {
  return { type: "counter", name, labels, help, ...origin } as const satisfies MetricDefinition;
}

function gauge<const L extends LabelDefinitions>(name: string, labels: L, help: string, origin: Origin) {
  return { type: "gauge", name, labels, help, ...origin } as const satisfies MetricDefinition;
}

function histogram<const L extends LabelDefinitions>(name: string, labels: L, help: string, origin: Origin) {
  return {
    type: "histogram",
    name,
    labels,
    help,
    buckets: durationBucketsSeconds,
    ...origin,
  } as const satisfies MetricDefinition;
}

const controlPlaneClient: Origin = { writer: "control-plane client" };
const kubernetesClient: Origin = { writer: "Kubernetes client" };
const controllers: Origin = { writer: "controllers" };
const agent: Origin = { writer: "agent" };
const secretsService: Origin = { writer: "secrets service" };
const rpcServer: Origin = { writer: "RPC server" };
const circuitBreaker: Origin = { writer: "circuit breakers" };
const supervisor: Origin = { writer: "supervisor" };
const telemetry: Origin = { writer: "telemetry" };

export const metricCatalogue = {
  controlPlaneReconnects: counter(
    "unkey_krane_controlplane_reconnects_total",
    { controller },
    "Times a stream of desired state was reopened after it had ended.",
    controlPlaneClient,
  ),
  controlPlaneStuck: counter(
    "unkey_krane_controlplane_stuck_total",
    { controller },
    "Connections of a stream of desired state that failed at the same version as several before them, because of an unreadable message.",
    controlPlaneClient,
  ),
  controlPlaneIncarnations: counter(
    "unkey_krane_controlplane_incarnations_total",
    { controller },
    "Times the control plane started a new incarnation, after a restore or a failover, and everything was compared.",
    controlPlaneClient,
  ),
  controlPlaneIgnored: counter(
    "unkey_krane_controlplane_ignored_responses_total",
    { controller },
    "Responses and streams of an older incarnation of the control plane, which were ignored.",
    controlPlaneClient,
  ),
  controlPlaneRequests: counter(
    "unkey_krane_controlplane_rpc_requests_total",
    { controller: connection, method: anyValue, result },
    "Calls made to the control plane.",
    controlPlaneClient,
  ),
  controlPlaneDuration: histogram(
    "unkey_krane_controlplane_rpc_duration_seconds",
    { controller: connection, method: anyValue },
    "Duration of calls to the control plane.",
    controlPlaneClient,
  ),
  driftRepairs: counter(
    "unkey_krane_drift_repaired_fields_total",
    { controller, resource: anyValue },
    "Fields of objects that were removed or set back because somebody else had written them; the resource is the kind in lower case.",
    controllers,
  ),
  kubernetesRequests: counter(
    "unkey_krane_k8s_requests_total",
    { controller: kubernetesUser, verb, resource: anyValue, result },
    "Requests sent to the Kubernetes API server; the resource is the kind in lower case.",
    kubernetesClient,
  ),
  kubernetesDuration: histogram(
    "unkey_krane_k8s_duration_seconds",
    { controller: kubernetesUser, verb, resource: anyValue },
    "Duration of requests to the Kubernetes API server.",
    kubernetesClient,
  ),
  forwardedCalls: counter(
    "unkey_krane_forwarded_calls_total",
    { result: ["answered", "failed"] },
    "Calls that reached this agent as a standby, and that the leader answered or could not be asked.",
    agent,
  ),
  leader: gauge(
    "unkey_krane_leader",
    {},
    '1 if this agent writes to the cluster and reports; 0 for a standby. Not set with `lease = "off"`.',
    agent,
  ),
  leaseRenewed: gauge(
    "unkey_krane_lease_renewed_timestamp_seconds",
    {},
    "When this agent renewed the lease, or as a standby saw it renewed, by its own clock.",
    agent,
  ),
  leaseTransitions: counter(
    "unkey_krane_leader_changes_total",
    { change: ["won", "lost"] },
    "How often this agent became the leader of its region, and stopped being it.",
    agent,
  ),
  reconcileOperations: counter(
    "unkey_krane_reconcile_operations_total",
    { controller, operation, result },
    "Objects applied or deleted, and attempts that failed.",
    controllers,
  ),
  reconcileDuration: histogram(
    "unkey_krane_reconcile_duration_seconds",
    { controller, operation },
    "Duration of one reconcile.",
    controllers,
  ),
  troubledObjects: gauge(
    "unkey_krane_troubled_objects",
    { controller, outcome: ["parked", "retrying", "conflict", "blocked"] },
    "Objects out of sync: rejected (parked), retrying, in conflict with an object that is not krane's, or unknown to the control plane with their deletion held back (blocked).",
    controllers,
  ),
  sealedObjects: gauge(
    "unkey_krane_sealed_objects",
    { controller, seal: ["current", "older", "unsealed", "other_region", "unknown_key", "foreign"] },
    "Objects with krane's labels by their seal: of the current or an older key, without a valid seal but with krane's field manager (unsealed), of another region, of an unknown key, or of somebody else (foreign). Updated after each resync.",
    controllers,
  ),
  digestsWrong: counter(
    "unkey_krane_digests_wrong_total",
    { controller, side: ["agent", "control_plane"] },
    "Digests of desired state that did not match what they are made of: the agent's own, or the control plane's.",
    controllers,
  ),
  resyncCorrections: counter(
    "unkey_krane_resync_corrections_total",
    { controller },
    "Objects that a resync found different from their desired state.",
    controllers,
  ),
  resyncDuration: histogram(
    "unkey_krane_resync_duration_seconds",
    { controller },
    "Duration of one resync pass over all objects.",
    controllers,
  ),
  secretsRequests: counter(
    "unkey_krane_secrets_requests_total",
    { result },
    "Requests from workloads for their secrets.",
    secretsService,
  ),
  secretsOriginal: counter(
    "unkey_krane_secrets_original_requests_total",
    { result },
    "Requests of pods that the original krane made, with a token for the API server.",
    secretsService,
  ),
  secretsErrors: counter(
    "unkey_krane_secrets_errors_total",
    {
      type: [
        "unauthenticated",
        "permission_denied",
        "rate_limited",
        "invalid_blob",
        "decrypt_failed",
        "unavailable",
        "internal",
      ],
    },
    "Requests for secrets that failed, by cause.",
    secretsService,
  ),
  secretsDuration: histogram(
    "unkey_krane_secrets_duration_seconds",
    {},
    "Duration of requests for secrets.",
    secretsService,
  ),
  rpcServerRequests: counter(
    "unkey_krane_rpc_server_requests_total",
    { method: anyValue, code: rpcCode },
    "Calls answered on the RPC port.",
    rpcServer,
  ),
  rpcServerDuration: histogram(
    "unkey_krane_rpc_server_duration_seconds",
    { method: anyValue },
    "Duration of calls answered on the RPC port.",
    rpcServer,
  ),
  circuitBreakerRequests: counter(
    "unkey_circuitbreaker_requests_total",
    { service: anyValue, action: breakerState },
    "Calls through a circuit breaker, by its state.",
    circuitBreaker,
  ),
  circuitBreakerErrors: counter(
    "unkey_circuitbreaker_errors_total",
    { service: anyValue, action: breakerState },
    "Calls that failed in a circuit breaker, by its state.",
    circuitBreaker,
  ),
  internalPanics: counter(
    "unkey_internal_panics_total",
    { caller: anyValue, path: anyValue },
    "Unexpected failures (bugs); each ended the loop or request in which it happened.",
    supervisor,
  ),
  telemetryFailures: counter(
    "unkey_krane_telemetry_failures_total",
    { signal: ["logs", "traces", "metrics"] },
    "Log lines that could not be written, and exports of traces and metrics that failed.",
    telemetry,
  ),
  buildInfo: gauge(
    "unkey_build_info",
    { service: anyValue, version: anyValue, revision: anyValue, nodeversion: anyValue },
    "Always 1; the labels identify the build.",
    telemetry,
  ),
} as const;
