// The alerts and the Grafana dashboard of the chart, by Prometheus itself: its promtool checks and tests the rules, and a real
// Prometheus runs every query on what running processes of krane export, so that a renamed metric turns a test red.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { create, toJson } from "@bufbuild/protobuf";
import { parse } from "yaml";
import { AdminService, ApplyObjectRequestSchema } from "../../src/gen/krane/admin/v1/admin_pb.ts";
import { grafanaDashboard, panelRows } from "../../tools/grafana-dashboard.ts";
import { chartDir } from "../../tools/helm-chart.ts";
import { openDatabase } from "../store/store-target.ts";
import { startAgentProcess } from "../support/agent-process.ts";
import { findDebianProgram } from "../support/debian-program.ts";
import { applyDeployment, environmentOf } from "../support/deployment-messages.ts";
import { eventually } from "../support/eventually.ts";
import { fetchHttp1 } from "../support/http-clients.ts";
import { buildKrane, freePort, startKrane } from "../support/krane-process.ts";
import { assertKnownSeries, metricOf, selectorsOf } from "../support/metric-queries.ts";
import { projectRoot, readProjectFile } from "../support/project-files.ts";
import { startPrometheus } from "../support/prometheus.ts";
import { serveCluster } from "../support/served-cluster.ts";

const alertsFile = join(chartDir, "files/alerts.yaml");
const testsFile = join(projectRoot, "testdata/alerts/tests.yaml");
const { groups } = parse(readProjectFile("deploy/chart/krane/files/alerts.yaml")) as {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string }[];
  }[];
};
const alerts = groups.flatMap(({ rules }) => rules);
const panels = panelRows.flatMap((row) => row.panels);
/** As Grafana would send them, with all regions. */
const queries = panels.flatMap(({ title, queries: own }) =>
  own.map(({ expr }) => ({
    title,
    expr: expr.replaceAll("$region", ".*").replaceAll("$__rate_interval", "1m"),
  })),
);

const promtool = await findDebianProgram({
  title: "Prometheus",
  packageName: "prometheus",
  names: ["promtool"],
});
if (promtool.kind === "missing") {
  console.error(`PROMETHEUS TESTS ${promtool.isFatal ? "FAILED, not run" : "SKIPPED"}: ${promtool.what}`);
  if (promtool.isFatal) process.exitCode = 1;
}
const skip = promtool.kind === "missing" && promtool.what;
const path = promtool.kind === "found" ? promtool.path : "";
const run = (...args: readonly string[]) => promisify(execFile)(path, args);

test("the dashboard in the chart is the one that the catalogues give", () => {
  const written = readProjectFile("deploy/chart/krane/files/grafana-dashboard.json");
  assert.deepEqual(JSON.parse(written), JSON.parse(JSON.stringify(grafanaDashboard())), "run `make deploy`");
});

test("each panel asks for series that there are, has a title of its own, and lies beside the others", () => {
  for (const { expr } of queries) assertKnownSeries(expr);
  const titles = panels.map(({ title }) => title);
  assert.equal(new Set(titles).size, titles.length);
  const { panels: placed } = JSON.parse(JSON.stringify(grafanaDashboard())) as {
    panels: { gridPos: { x: number; y: number; w: number; h: number } }[];
  };
  const cells = placed.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
  );
  assert.equal(new Set(cells).size, cells.length);
});

test("every alert has a case in which it fires", () => {
  const { tests } = parse(readProjectFile("testdata/alerts/tests.yaml")) as {
    tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[];
  };
  const fired = tests
    .flatMap((each) => each.alert_rule_test)
    .filter(({ exp_alerts: expected }) => expected.length > 0);
  assert.deepEqual(
    [...new Set(fired.map(({ alertname }) => alertname))].sort(),
    alerts.map(({ alert }) => alert).sort(),
  );
});

describe("promtool", { skip }, () => {
  test("finds nothing wrong with the alerts, and sees each fire and stay silent", async () => {
    await run("check", "rules", "--lint-fatal", alertsFile);
    await run("test", "rules", testsFile);
  });

  test("understands every query of the dashboard", async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "krane-rules-"));
    t.after(() => rm(folder, { recursive: true }));
    const rules = queries.map(({ expr }, index) => ({ record: `query:${index}`, expr }));
    await writeFile(join(folder, "rules.yaml"), JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
    await run("check", "rules", join(folder, "rules.yaml"));
  });
});

describe("Prometheus, on what processes of krane export", { skip }, () => {
  let krane: Awaited<ReturnType<typeof buildKrane>>;
  before(async () => {
    krane = await buildKrane();
  });
  after(() => krane.remove());

  test("every query of the dashboard and of the alerts gets what there is", async (t) => {
    const processes = await startProcesses(t, krane.program);
    const prometheus = await startPrometheus(t, path, processes, alertsFile);
    const pages = await Promise.all(processes.map(async ({ url }) => (await fetchHttp1(url)).body));
    const exported = new Set(
      pages.flatMap((page) => [...page.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)),
    );

    for (const { expr } of [...queries, ...alerts])
      for (const { name } of selectorsOf(expr)) assert.ok(exported.has(metricOf(name).name), name);
    const silent: string[] = [];
    for (const { title, expr } of queries) {
      const selections = selectorsOf(expr);
      const missing = await Promise.all(selections.map(({ text }) => prometheus.query(text)));
      if (missing.some((found) => found.length === 0)) silent.push(title);
      // A rate takes two scrapes.
      else await eventually(title, async () => assert.ok((await prometheus.query(expr)).length > 0, expr));
    }
    assert.deepEqual(
      silent.filter((title) => !onlyInTrouble.includes(title)),
      [],
    );
    const rules = await prometheus.rules();
    assert.equal(rules.length, alerts.length);
    assert.deepEqual(
      rules.filter(({ health }) => health === "err"),
      [],
    );
    const agents = await prometheus.query('unkey_krane_leader{region="eu-west-1.aws"} == 1');
    assert.equal(agents.length, 1);
  });
});

/** Panels whose series begin with the first failure. That the metrics are exported is checked above. */
const onlyInTrouble: readonly string[] = [
  "Objects out of sync",
  "Deletions held back",
  "Out of sync, by region",
  "Out of sync, by kind",
  "Streams that ended",
  "Repaired fields",
  "Reports held back by a circuit breaker",
  "Requests that failed",
  "Unexpected errors",
];

/** A vault, a control plane and an agent that has applied something and was asked for secrets. */
async function startProcesses(t: TestContext, program: string) {
  const region = "eu-west-1.aws";
  const tokens = {
    agent: "token-of-the-agents",
    admin: "token-of-ann-may-write",
    vault: "token-of-the-vault",
  };
  const folder = await mkdtemp(join(tmpdir(), "krane-metrics-"));
  t.after(() => rm(folder, { recursive: true }));
  const ports = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const [vaultPort, vaultMetrics, serverPort, serverMetrics] = ports as [number, number, number, number];
  const { stdout: keys } = await promisify(execFile)(program, ["vault", "keygen"]);
  startKrane(t, program, ["vault", "serve"], {
    UNKEY_RPC_PORT: `${vaultPort}`,
    UNKEY_LISTEN_HOST: "127.0.0.1",
    UNKEY_VAULT_TOKEN: tokens.vault,
    UNKEY_VAULT_MASTER_KEYS: keys.trim(),
    UNKEY_VAULT_FILE_PATH: join(folder, "keys"),
    UNKEY_PROMETHEUS_PORT: `${vaultMetrics}`,
  });
  const target = await openDatabase();
  t.after(() => target.close());
  startKrane(t, program, ["server"], {
    UNKEY_SERVER_DATABASE_URL: target.url,
    UNKEY_SERVER_LISTEN: `127.0.0.1:${serverPort}`,
    UNKEY_SERVER_AGENT_TOKENS: `${region} ${tokens.agent}`,
    UNKEY_SERVER_ADMIN_TOKENS: `ann read-write ${tokens.admin}`,
    UNKEY_PROMETHEUS_PORT: `${serverMetrics}`,
  });
  const urls = { vault: `http://127.0.0.1:${vaultPort}`, server: `http://127.0.0.1:${serverPort}` };
  for (const url of Object.values(urls))
    await eventually(`${url} has started`, async () =>
      assert.equal((await fetchHttp1(`${url}/health/startup`)).status, 200),
    );
  const cluster = await serveCluster();
  t.after(() => cluster.stop());
  const kubeconfigPath = join(folder, "kubeconfig");
  await writeFile(kubeconfigPath, cluster.kubeconfig);
  const agent = await startAgentProcess(
    t,
    {
      program,
      region,
      controlPlane: { url: urls.server, token: tokens.agent },
      kubeconfigPath,
      agentToken: "token-of-agent-service",
    },
    { UNKEY_VAULT_URL: urls.vault, UNKEY_VAULT_TOKEN: tokens.vault },
  );
  await call(`${urls.vault}/vault.v1.VaultService/Encrypt`, tokens.vault, { keyring: "env_1", data: "x" });
  await call(`${agent.url}/krane.v1.SecretsService/DecryptSecretsBlob`, "nobody", {});
  const admin = `${urls.server}/${AdminService.typeName}`;
  await call(`${admin}/ApplyEnvironment`, tokens.admin, { region, ...environmentOf() });
  const request = create(ApplyObjectRequestSchema, {
    region,
    spec: { spec: { case: "deployment", value: applyDeployment({ deploymentId: "d_web" }) } },
  });
  const applied = await call(`${admin}/ApplyObject`, tokens.admin, toJson(ApplyObjectRequestSchema, request));
  assert.equal(applied.status, 200, applied.body);
  return [
    { url: `http://127.0.0.1:${vaultMetrics}/metrics`, labels: { region } },
    { url: `http://127.0.0.1:${serverMetrics}/metrics`, labels: {} },
    { url: agent.metricsUrl, labels: { region } },
  ];
}

async function call(url: string, token: string, message: unknown) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(message),
  });
  return { status: response.status, body: await response.text() };
}
