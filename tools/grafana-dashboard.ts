// Builds the Grafana dashboard from the catalogues of metrics. A query takes the name of a metric from its definition, so that a
// renamed metric is renamed here as well, and test/deploy/prometheus.test.ts runs every query on metrics of running processes.
import { serverMetricCatalogue as server } from "../src/server/server-metrics.ts";
import { metricCatalogue as krane } from "../src/telemetry/metric-catalogue.ts";
import { processMetricCatalogue as process } from "../src/telemetry/process-metrics.ts";

interface Query {
  readonly expr: string;
  readonly legend: string;
}

export interface Panel {
  readonly title: string;
  readonly about: string;
  readonly kind: "timeseries" | "stat";
  /** As Grafana names it. */
  readonly unit: string;
  readonly queries: readonly Query[];
}

export interface PanelRow {
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** Metrics without a label `region` are shown with "All". */
const region = 'region=~"$region"';
const interval = "$__rate_interval";

type Labels = "" | `${string}${"=" | "=~"}"${string}"`;

/** The per-second rate of a counter in the regions shown. */
function rate({ name }: { readonly name: string }, labels: Labels = ""): string {
  return `rate(${name}{${[region, labels].filter((part) => part !== "").join(", ")}}[${interval}])`;
}

function gauge({ name }: { readonly name: string }, labels: Labels = ""): string {
  return `${name}{${[region, labels].filter((part) => part !== "").join(", ")}}`;
}

function sum(by: string, expr: string): string {
  return `sum by (${by}) (${expr})`;
}

/** The 99th percentile of a histogram. */
function p99({ name }: { readonly name: string }, by: string, labels: Labels = ""): string {
  return `histogram_quantile(0.99, ${sum([by, "le"].filter((part) => part !== "").join(", "), rate({ name: `${name}_bucket` }, labels))})`;
}

function mean({ name }: { readonly name: string }, by: string): string {
  return `${sum(by, rate({ name: `${name}_sum` }))} / ${sum(by, rate({ name: `${name}_count` }))}`;
}

/** Other programs have metrics of these names too. */
function ofKrane(expr: string): string {
  return `${expr} and on (instance) ${gauge(krane.buildInfo)}`;
}

function stat(title: string, about: string, expr: string): Panel {
  return { title, about, kind: "stat", unit: "short", queries: [{ expr, legend: title }] };
}

function chart(title: string, unit: string, about: string, ...queries: readonly Query[]): Panel {
  return { title, about, kind: "timeseries", unit, queries };
}

const heartbeat = 'method="Heartbeat"';
const vaultCalls = 'method=~"Encrypt|Decrypt|EncryptBulk|DecryptBulk|ReEncrypt"';

const fleet: readonly Panel[] = [
  stat(
    "Agents",
    "Processes that send heartbeats.",
    `count(sum by (instance) (${krane.controlPlaneRequests.name}{${heartbeat}})) or vector(0)`,
  ),
  stat(
    "Regions with a leader",
    "Without a label `region`, all regions count as one.",
    `count(max by (region) (${krane.leader.name}) == 1) or vector(0)`,
  ),
  stat(
    "Open streams",
    "Streams of desired state at all servers: one for each kind and leading agent.",
    `sum(${server.streamsOpen.name}) or vector(0)`,
  ),
  stat(
    "Servers without their database",
    "Agents keep working meanwhile.",
    `count(${server.databaseUp.name} == 0) or vector(0)`,
  ),
  stat(
    "Objects out of sync",
    "Rejected, failing, in conflict, or with their deletion held back.",
    `sum(${krane.troubledObjects.name}) or vector(0)`,
  ),
  stat(
    "Deletions held back",
    "They wait for a person.",
    `sum(${krane.troubledObjects.name}{outcome="blocked"}) or vector(0)`,
  ),
  chart("Out of sync, by region", "short", "See krane status --region.", {
    expr: `sum by (region, outcome) (${krane.troubledObjects.name})`,
    legend: "{{region}} {{outcome}}",
  }),
  chart("Heartbeats that the control plane accepted", "ops", "Each agent sends one every 30 seconds.", {
    expr: `sum by (region) (rate(${krane.controlPlaneRequests.name}{${heartbeat}, result="success"}[${interval}]))`,
    legend: "{{region}}",
  }),
  chart("Streams that servers refused", "ops", "After a restart, until all agents are back.", {
    expr: `sum(rate(${server.streamsRefused.name}[${interval}]))`,
    legend: "refused",
  }),
  chart("Versions", "short", "Processes by version.", {
    expr: `count by (version) (${krane.buildInfo.name})`,
    legend: "{{version}}",
  }),
];

const oneRegion: readonly Panel[] = [
  chart("Leader", "short", "1 for the agent that writes, 0 for a standby.", {
    expr: `max by (region, instance) (${gauge(krane.leader)})`,
    legend: "{{region}} {{instance}}",
  }),
  chart("Age of the lease", "s", "Another agent takes over when it runs out.", {
    expr: `time() - max by (region) (${gauge(krane.leaseRenewed)})`,
    legend: "{{region}}",
  }),
  chart("Out of sync, by kind", "short", krane.troubledObjects.help, {
    expr: sum("controller, outcome", gauge(krane.troubledObjects)),
    legend: "{{controller}} {{outcome}}",
  }),
  chart("Objects by seal", "short", krane.sealedObjects.help, {
    expr: sum("controller, seal", gauge(krane.sealedObjects)),
    legend: "{{controller}} {{seal}}",
  }),
  chart("Calls to the control plane", "ops", krane.controlPlaneRequests.help, {
    expr: sum("method, result", rate(krane.controlPlaneRequests)),
    legend: "{{method}} {{result}}",
  }),
  chart("Duration of calls to the control plane, p99", "s", krane.controlPlaneDuration.help, {
    expr: p99(krane.controlPlaneDuration, "method"),
    legend: "{{method}}",
  }),
  chart(
    "Streams that ended",
    "ops",
    "Reconnected, or stuck at a message that cannot be read.",
    { expr: sum("controller", rate(krane.controlPlaneReconnects)), legend: "{{controller}}" },
    { expr: sum("controller", rate(krane.controlPlaneStuck)), legend: "{{controller}} stuck" },
  ),
  chart("Changes of the leader", "ops", krane.leaseTransitions.help, {
    expr: sum("instance, change", rate(krane.leaseTransitions)),
    legend: "{{instance}} {{change}}",
  }),
];

const engine: readonly Panel[] = [
  chart("Reconciles", "ops", krane.reconcileOperations.help, {
    expr: sum("controller, operation, result", rate(krane.reconcileOperations)),
    legend: "{{controller}} {{operation}} {{result}}",
  }),
  chart("Duration of a reconcile, p99", "s", krane.reconcileDuration.help, {
    expr: p99(krane.reconcileDuration, "controller, operation"),
    legend: "{{controller}} {{operation}}",
  }),
  chart("Duration of a resync, mean", "s", "A resync starts every minute.", {
    expr: mean(krane.resyncDuration, "controller"),
    legend: "{{controller}}",
  }),
  chart("Differences that a resync found", "ops", krane.resyncCorrections.help, {
    expr: sum("controller", rate(krane.resyncCorrections)),
    legend: "{{controller}}",
  }),
  chart("Repaired fields", "ops", krane.driftRepairs.help, {
    expr: sum("controller, resource", rate(krane.driftRepairs)),
    legend: "{{controller}} {{resource}}",
  }),
  chart("Reports held back by a circuit breaker", "ops", krane.circuitBreakerRequests.help, {
    expr: sum("service", rate(krane.circuitBreakerRequests, 'action="open"')),
    legend: "{{service}}",
  }),
];

const apiServer: readonly Panel[] = [
  chart("Requests by verb", "reqps", krane.kubernetesRequests.help, {
    expr: sum("verb", rate(krane.kubernetesRequests)),
    legend: "{{verb}}",
  }),
  chart("Requests by kind", "reqps", krane.kubernetesRequests.help, {
    expr: sum("resource", rate(krane.kubernetesRequests)),
    legend: "{{resource}}",
  }),
  chart("Writes by controller", "reqps", "0 while everything is in sync.", {
    expr: sum("controller, verb", rate(krane.kubernetesRequests, 'verb=~"create|patch|delete"')),
    legend: "{{controller}} {{verb}}",
  }),
  chart("Requests that failed", "reqps", krane.kubernetesRequests.help, {
    expr: sum("controller, verb, resource", rate(krane.kubernetesRequests, 'result="error"')),
    legend: "{{controller}} {{verb}} {{resource}}",
  }),
  chart("Duration of a request, p99", "s", "Without watches, which stay open.", {
    expr: p99(krane.kubernetesDuration, "verb", 'verb=~"get|list|create|patch|delete"'),
    legend: "{{verb}}",
  }),
];

const secrets: readonly Panel[] = [
  chart("Requests of workloads", "reqps", krane.secretsRequests.help, {
    expr: sum("result", rate(krane.secretsRequests)),
    legend: "{{result}}",
  }),
  chart("Failures by cause", "reqps", krane.secretsErrors.help, {
    expr: sum("type", rate(krane.secretsErrors)),
    legend: "{{type}}",
  }),
  chart("Duration of a request for secrets, p99", "s", krane.secretsDuration.help, {
    expr: p99(krane.secretsDuration, ""),
    legend: "p99",
  }),
  chart(
    "Calls of the vault",
    "reqps",
    "Only with a vault of its own; an agent's embedded one is called within the process.",
    {
      expr: sum("method, code", rate(krane.rpcServerRequests, vaultCalls)),
      legend: "{{method}} {{code}}",
    },
  ),
];

const processes: readonly Panel[] = [
  chart("CPU", "percentunit", process.cpu.help, {
    expr: ofKrane(`rate(${process.cpu.name}[${interval}])`),
    legend: "{{instance}}",
  }),
  chart("Memory", "bytes", process.residentMemory.help, {
    expr: ofKrane(process.residentMemory.name),
    legend: "{{instance}}",
  }),
  chart("Delay of the event loop, p99", "s", process.lagP99.help, {
    expr: ofKrane(process.lagP99.name),
    legend: "{{instance}}",
  }),
  chart("Calls served, by code", "reqps", krane.rpcServerRequests.help, {
    expr: sum("method, code", rate(krane.rpcServerRequests)),
    legend: "{{method}} {{code}}",
  }),
  chart("Unexpected errors", "ops", krane.internalPanics.help, {
    expr: sum("instance, caller", rate(krane.internalPanics)),
    legend: "{{instance}} {{caller}}",
  }),
  chart("Lost telemetry", "ops", krane.telemetryFailures.help, {
    expr: sum("instance, signal", rate(krane.telemetryFailures)),
    legend: "{{instance}} {{signal}}",
  }),
];

export const panelRows: readonly PanelRow[] = [
  { title: "Fleet", panels: fleet },
  { title: "Region $region", panels: oneRegion },
  { title: "Engine", panels: engine },
  { title: "Cost for the API server", panels: apiServer },
  { title: "Secrets", panels: secrets },
  { title: "Processes", panels: processes },
];

const datasource = { type: "prometheus", uid: "$datasource" };
const columns = 24;
const sizes = { stat: { w: 4, h: 4 }, timeseries: { w: 12, h: 8 } } as const;

/** The dashboard as Grafana imports it. */
export function grafanaDashboard(): object {
  return {
    uid: "krane",
    title: "krane",
    description: "krane's metrics: https://github.com/krane-dev/krane/blob/main/docs/metrics.md",
    tags: ["krane"],
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    refresh: "30s",
    time: { from: "now-3h", to: "now" },
    timezone: "browser",
    templating: { list: [datasourceVariable, regionVariable] },
    annotations: { list: [] },
    panels: placed(panelRows),
  };
}

const datasourceVariable = {
  name: "datasource",
  label: "Data source",
  type: "datasource",
  query: "prometheus",
};

const regionVariable = {
  name: "region",
  label: "Region",
  type: "query",
  datasource,
  definition: `label_values(${krane.buildInfo.name}, region)`,
  query: { query: `label_values(${krane.buildInfo.name}, region)`, refId: "region" },
  refresh: 2,
  sort: 1,
  multi: true,
  includeAll: true,
  // Also series without the label.
  allValue: ".*",
  current: { selected: true, text: ["All"], value: ["$__all"] },
};

/** Rows of Grafana below each other, with their panels from left to right. */
function placed(rows: readonly PanelRow[]): readonly object[] {
  const result: object[] = [];
  let y = 0;
  for (const { title, panels } of rows) {
    result.push({
      id: result.length + 1,
      type: "row",
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: columns, h: 1 },
    });
    y += 1;
    let x = 0;
    let height = 0;
    for (const panel of panels) {
      const { w, h } = sizes[panel.kind];
      if (x + w > columns || (height !== 0 && h !== height)) {
        y += height;
        x = 0;
      }
      height = h;
      result.push(grafanaPanel(panel, result.length + 1, { x, y, w, h }));
      x += w;
    }
    y += height;
  }
  return result;
}

function grafanaPanel({ kind, title, about, unit, queries }: Panel, id: number, gridPos: object): object {
  const shown =
    kind === "stat"
      ? {
          colorMode: "none",
          graphMode: "area",
          reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false },
        }
      : {
          legend: { displayMode: "list", placement: "bottom", showLegend: true },
          tooltip: { mode: "multi", sort: "desc" },
        };
  return {
    id,
    type: kind,
    title,
    description: about,
    datasource,
    gridPos,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: shown,
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode(65 + index),
      datasource,
      expr,
      legendFormat: legend,
    })),
  };
}
