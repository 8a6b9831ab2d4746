// `krane doctor` as a person calls it, against servers on ports of this machine: all well, and broken in every way
// that it knows.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { main } from "../../src/cli/main.ts";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { examine } from "../../src/doctor/examine.ts";
import type { Finding } from "../../src/doctor/finding.ts";
import { routeByPath } from "../../src/http/http-handler.ts";
import { startHttpPort } from "../../src/http/http-port.ts";
import {
  customResourceDefinitions,
  namespaces,
  replicaSets,
  runtimeClasses,
} from "../../src/kube/resources.ts";
import { annotationKeys, components, ownLabels } from "../../src/model/labels.ts";
import { Seal, type SealOptions } from "../../src/model/seal.ts";
import { rpcRoutes } from "../../src/services/rpc-routes.ts";
import { vaultServiceRoutes } from "../../src/services/vault-service.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { generateMasterKey } from "../../src/vault/master-keys.ts";
import { createMemoryStorage } from "../../src/vault/storage/memory-storage.ts";
import { eventually } from "../support/eventually.ts";
import { FakeIo } from "../support/fake-io.ts";
import { httpRouteDefinition } from "../support/http-route-definition.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import { kubeconfigFor, serveCluster } from "../support/served-cluster.ts";
import { otherSealKey, testSealKey } from "../support/test-seal.ts";
import { createTestVault, secretOf } from "../support/vault-fixture.ts";
import { serveControlPlane, token } from "./server/served-control-plane.ts";

const never = new AbortController().signal;
const vaultToken = "of-the-vault-of-the-test";

async function serveVault(t: TestContext): Promise<string> {
  const deps = {
    clock: createSystemClock(),
    log: createQuietLog(),
    readTextFile: () => assert.fail("no file"),
  };
  const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: "v0" });
  const vault = createTestVault({ storage: createMemoryStorage(), keys: [generateMasterKey(0)] });
  const routes = rpcRoutes(vaultServiceRoutes(vault, secretOf(vaultToken), { ...deps, metrics }));
  const port = await startHttpPort(routeByPath(routes), { port: 0, setting: "rpc_port" }, deps, never);
  t.after(() => port.stop(AbortSignal.abort()));
  return `http://127.0.0.1:${port.port}`;
}

interface Settings {
  readonly region?: string;
  readonly controlUrl?: string;
  readonly controlToken?: string;
  readonly vaultUrl?: string;
  readonly vaultToken?: string;
  readonly more?: string;
}

async function createWorld(t: TestContext) {
  const cluster = await serveCluster();
  t.after(() => cluster.stop());
  const { running } = await serveControlPlane(t, "h2c");
  const vaultUrl = await serveVault(t);
  const configText = (settings: Settings = {}) => `region = "${settings.region ?? "local.dev"}"
${settings.more ?? ""}
[control]
url = "${settings.controlUrl ?? running?.url}"
token = "${settings.controlToken ?? token}"
[kubernetes]
kubeconfig = "cluster.kubeconfig"
[registry]
url = "registry.example"
username = "robot"
password = "not-a-real-password"
[vault]
url = "${settings.vaultUrl ?? vaultUrl}"
token = "${settings.vaultToken ?? vaultToken}"
`;
  const filesOf = (settings: Settings = {}) => ({
    "krane.toml": configText(settings),
    "cluster.kubeconfig": cluster.kubeconfig,
  });
  return { cluster, filesOf };
}

async function doctor(files: Readonly<Record<string, string>>, ...flags: readonly string[]) {
  const io = new FakeIo(files);
  const code = await main(["doctor", "-c", "krane.toml", ...flags], {}, io);
  return { code, out: io.stdout.text, err: io.stderr.text };
}

async function findingsOf(files: Readonly<Record<string, string>>) {
  const { code, out, err } = await doctor(files, "-o", "json");
  assert.equal(err, "");
  const { findings, problems } = JSON.parse(out) as {
    readonly findings: readonly Finding[];
    readonly problems: number;
  };
  assert.equal(code, problems === 0 ? 0 : 1);
  assert.equal(findings.filter(({ state }) => state === "problem").length, problems);
  return findings;
}

function troubles(findings: readonly Finding[]): readonly Finding[] {
  return findings.filter(({ state }) => state === "problem" || state === "warning");
}

/** The only trouble there is, by name; it has to say what to do. */
function onlyProblem(findings: readonly Finding[], name: string): Finding {
  const [first, ...others] = troubles(findings);
  assert.deepEqual(others, []);
  assert.equal(first?.name, name, JSON.stringify(first));
  assert.ok(first.state === "problem" && first.remedy !== "");
  return first;
}

test("where all is well, everything is ok and the exit code is 0", async (t) => {
  const { filesOf } = await createWorld(t);
  const findings = await findingsOf(filesOf());
  assert.deepEqual(
    findings.map(({ name, state }) => `${state} ${name}`),
    [
      "ok configuration",
      "ok files",
      "ok cluster",
      "ok cluster clock",
      "ok rights",
      "skipped admission policy",
      "ok network policies",
      "skipped policy enforcement",
      "ok RuntimeClass gvisor",
      "ok namespace sentinel",
      "ok lease",
      "ok seals",
      "ok token reviews",
      "ok control plane",
      "ok control plane clock",
      "ok vault",
    ],
  );
  const { code, out } = await doctor(filesOf());
  assert.equal(code, 0);
  assert.match(out, /^ok {7}cluster {14}Kubernetes v\S+ at http:\/\/127\.0\.0\.1:\d+$/m);
  assert.match(out, /^problems: 0, warnings: 0, skipped: 2$/m);
});

test("a cluster that lacks what krane needs is told what is missing", async (t) => {
  const { cluster, filesOf } = await createWorld(t);
  await cluster.api.delete(customResourceDefinitions, { name: "ciliumnetworkpolicies.cilium.io" }, {}, never);
  await cluster.api.delete(runtimeClasses, { name: "gvisor" }, {}, never);
  const [policies, runtime, ...others] = troubles(await findingsOf(filesOf()));
  assert.deepEqual(others, []);
  assert.match(policies?.finding ?? "", /does not support CiliumNetworkPolicy/);
  assert.match(policies?.remedy ?? "", /install Cilium/);
  assert.equal(runtime?.name, "RuntimeClass gvisor");
  assert.match(runtime?.remedy ?? "", /create a RuntimeClass gvisor with the handler runsc/);

  const relaxed = `[isolation]\nnetwork_policy = "best-effort"`;
  const findings = troubles(await findingsOf(filesOf({ more: relaxed })));
  assert.deepEqual(
    findings.map(({ state }) => state),
    ["warning", "problem"],
  );
  assert.match(findings[0]?.finding ?? "", /nothing isolates tenants on the network/);

  const trusted = `${relaxed}\nruntime_class = ""`;
  const [, sandbox, ...rest] = troubles(await findingsOf(filesOf({ more: trusted })));
  assert.deepEqual(rest, []);
  assert.equal(sandbox?.state, "warning");
  assert.match(sandbox.finding, /^trusted code only: /);
});

test("a Gateway is only checked if one is configured, and misses its kind", async (t) => {
  const { cluster, filesOf } = await createWorld(t);
  const more = `[gateway]\nnamespace = "gateway"\nname = "public"`;
  const missing = (await findingsOf(filesOf({ more }))).find(({ name }) => name === "gateway");
  assert.equal(missing?.state, "problem");
  assert.match(missing.finding, /does not support HTTPRoute/);
  await cluster.api.create(customResourceDefinitions, httpRouteDefinition, {}, never);
  await eventually("the kind is served", async () => {
    const found = (await findingsOf(filesOf({ more }))).find(({ name }) => name === "gateway");
    assert.equal(found?.state, "ok", found?.finding);
  });
});

test("an admission policy that is missing or refuses nothing is a warning, and one that cannot be seen is not", async (t) => {
  const { cluster, filesOf } = await createWorld(t);
  const name = "krane-agent.krane.unkey.com";
  const policy = { metadata: { name } };
  const binding = { spec: { policyName: name, validationActions: ["Deny"] } };
  const found = async (status: number, policies: readonly object[], bindings: readonly object[]) => {
    const release = cluster.server.faults.intercept(({ path }) => {
      const match = /\/validatingadmissionpolic(ies|ybindings)$/.exec(path);
      if (match === null) return undefined;
      return { kind: "whole", status, body: { items: match[1] === "ies" ? policies : bindings } };
    });
    const findings = await findingsOf(filesOf());
    release();
    return findings.find((each) => each.name === "admission policy");
  };
  assert.equal((await found(200, [policy], [binding]))?.state, "ok");
  for (const [policies, bindings] of [
    [[{ metadata: { name: "of-others" } }], [binding]],
    [[policy], []],
    [[policy], [{ spec: { policyName: name, validationActions: ["Audit"] } }]],
  ] as const) {
    const finding = await found(200, policies, bindings);
    assert.equal(finding?.state, "warning");
    assert.match(finding.remedy, /agent\.admission\.enabled/);
  }
  const forbidden = await found(403, [], []);
  assert.equal(forbidden?.state, "skipped");
  assert.match(forbidden.finding, /^not checked: /);
  assert.match(forbidden.remedy, /--kubernetes-kubeconfig/);
});

test("an admission policy is found behind hundreds of others", async (t) => {
  const { cluster, filesOf } = await createWorld(t);
  const name = "krane-agent.krane.unkey.com";
  const items = [{ metadata: { name }, spec: { policyName: name, validationActions: ["Deny"] } }];
  cluster.server.faults.intercept(({ path, query }) => {
    if (!path.includes("/validatingadmissionpolic")) return undefined;
    const isSecond = query?.continue === "second";
    const body = isSecond ? { items } : { items: [], metadata: { continue: "second" } };
    return { kind: "whole", status: 200, body };
  });
  const findings = await findingsOf(filesOf());
  assert.equal(findings.find((each) => each.name === "admission policy")?.state, "ok");
});

test("objects that are not this krane's are named, and keys that still seal something", async (t) => {
  const { cluster, filesOf } = await createWorld(t);
  const key = (byte: number) => Buffer.alloc(32, byte).toString("base64");
  const system = await cluster.api.get(namespaces, { name: "kube-system" }, {}, never);
  const clusterId = system?.metadata?.uid ?? "";
  const put = async (name: string, region: string, keys: SealOptions["keys"]) => {
    const seal = new Seal({ clusterId, region, keys });
    const ref = { namespace: "default", name };
    const annotations = { [annotationKeys.seal]: seal.write({ kind: replicaSets, ...ref }, { id: name }) };
    const labels = ownLabels(components.deployment);
    const selector = { matchLabels: { app: name } };
    const containers = [{ name: "app", image: "app" }];
    const template = { metadata: { labels: { app: name } }, spec: { containers } };
    const spec = { replicas: 0, selector, template };
    const manifest = {
      apiVersion: "apps/v1",
      kind: "ReplicaSet",
      metadata: { ...ref, labels, annotations },
      spec,
    } as const;
    await cluster.api.create(replicaSets, manifest, {}, never);
  };
  const sealsOf = async (keys: readonly number[]) => {
    const more = `[seal]\nkeys = ${JSON.stringify(keys.map(key))}\n`;
    const found = await findingsOf(filesOf({ more }));
    return found.flatMap(({ name, state, finding }) => (name === "seals" ? [`${state}: ${finding}`] : []));
  };
  const [old, current] = [testSealKey, otherSealKey];
  await put("mine", "local.dev", [current]);
  assert.deepEqual(await sealsOf([2]), [`ok: 1 object is sealed with the key ${current.id}`]);
  assert.match(
    (await sealsOf([1, 2])).join(),
    /^ok: nothing is sealed with the older key \w+; it can be removed/,
  );
  await put("older", "local.dev", [old]);
  assert.deepEqual(await sealsOf([1, 2]), [`warning: 1 object is sealed with the older key ${old.id}`]);
  await put("elsewhere", "eu-1.aws", [current]);
  assert.deepEqual(await sealsOf([2]), [
    "warning: 2 objects are not this krane's, and left alone: " +
      'ReplicaSet default/elsewhere (it belongs to the region "eu-1.aws"), ' +
      `ReplicaSet default/older (it is sealed with the unknown key "${old.id}")`,
  ]);
});

test("a missing verb is named, with the rule that grants it", async (t) => {
  const { cluster, filesOf } = await createWorld(t);
  cluster.server.faults.intercept(({ path, body }) => {
    if (!path.endsWith("/selfsubjectaccessreviews")) return undefined;
    const { spec } = body as { spec: { resourceAttributes: { verb: string; resource: string } } };
    const { verb, resource } = spec.resourceAttributes;
    const allowed = !(resource === "replicasets" && verb === "patch") && resource !== "services";
    return { kind: "whole", status: 201, body: { kind: "SelfSubjectAccessReview", status: { allowed } } };
  });
  const [replicaSets, ...ofServices] = troubles(await findingsOf(filesOf()));
  const services = ofServices.find(({ finding }) => finding.includes("in namespace sentinel"));
  const ofRoutes = ofServices.filter((other) => other !== services);
  assert.deepEqual(
    ofRoutes.map(({ finding }) => finding.includes("services in all namespaces: A route is a Service")),
    [true],
  );
  assert.match(replicaSets?.finding ?? "", /^krane may not patch replicasets\.apps in all namespaces: /);
  assert.match(
    replicaSets?.remedy ?? "",
    /ClusterRole: {"apiGroups":\["apps"\],"resources":\["replicasets"\],"verbs":\["patch"\]}/,
  );
  assert.match(
    services?.finding ?? "",
    /may not get, list, watch, create, patch, delete services in namespace sentinel/,
  );
  assert.match(services?.remedy ?? "", /Role in namespace sentinel: {"apiGroups":\[""\]/);
});

test("an agent that may not look at what it does not need is not told that it is missing", async (t) => {
  const { cluster, filesOf } = await createWorld(t);
  const forbidden = { kind: "Status", status: "Failure", code: 403, reason: "Forbidden", message: "no" };
  cluster.server.faults.intercept(({ method, path }) =>
    method === "GET" && /\/(runtimeclasses|namespaces)\/\w+$/.test(path)
      ? { kind: "whole", status: 403, body: forbidden }
      : undefined,
  );
  const findings = await findingsOf(filesOf());
  assert.deepEqual(troubles(findings), []);
  const runtime = findings.find(({ name }) => name === "RuntimeClass gvisor");
  assert.equal(runtime?.state, "skipped");
  assert.match(runtime.remedy, /kubectl get runtimeclass gvisor/);
});

test("a namespace on its way out, and a right to review tokens that is missing", async (t) => {
  const { cluster, filesOf } = await createWorld(t);
  cluster.server.faults.intercept(({ path }) => {
    const status = { kind: "Status", status: "Failure", code: 403, reason: "Forbidden", message: "no" };
    if (path.endsWith("/tokenreviews")) return { kind: "whole", status: 403, body: status };
    if (path !== `/api/v1/${namespaces.plural}/sentinel`) return undefined;
    const metadata = { name: "sentinel", deletionTimestamp: "2026-01-01T00:00:00Z" };
    return { kind: "whole", status: 200, body: { kind: "Namespace", metadata } };
  });
  const [namespace, reviews, ...others] = troubles(await findingsOf(filesOf()));
  assert.deepEqual(others, []);
  assert.match(namespace?.finding ?? "", /is being deleted/);
  assert.match(reviews?.remedy ?? "", /create tokenreviews/);
});

test("a token or a region that the control plane does not take", async (t) => {
  const { filesOf } = await createWorld(t);
  const wrong = onlyProblem(
    await findingsOf(filesOf({ controlToken: "somebody-elses-token" })),
    "control plane",
  );
  assert.match(wrong.remedy, /put a token that the control plane accepts for region local\.dev/);
  assert.doesNotMatch(JSON.stringify(wrong), /somebody-elses-token/);
  const lost = onlyProblem(await findingsOf(filesOf({ region: "nowhere.dev" })), "control plane");
  assert.match(lost.remedy, /register the region nowhere\.dev/);
});

test("a control plane that is down, and something else at its address", async (t) => {
  const { cluster, filesOf } = await createWorld(t);
  const down = onlyProblem(await findingsOf(filesOf({ controlUrl: "http://127.0.0.1:1" })), "control plane");
  assert.match(down.finding, /ECONNREFUSED/);
  assert.match(down.remedy, /that the control plane runs/);
  assert.equal(
    onlyProblem(await findingsOf(filesOf({ controlUrl: cluster.url })), "control plane").state,
    "problem",
  );
});

test("a vault that is down or refuses the token", async (t) => {
  const { filesOf } = await createWorld(t);
  const refused = onlyProblem(await findingsOf(filesOf({ vaultToken: "another-token-for-it" })), "vault");
  assert.match(refused.remedy, /vault\.token/);
  const down = onlyProblem(await findingsOf(filesOf({ vaultUrl: "http://127.0.0.1:1" })), "vault");
  assert.match(down.remedy, /that the vault runs/);
});

test("a cluster that does not answer is one problem, and the rest is still looked at", async (t) => {
  const { filesOf } = await createWorld(t);
  const files = { ...filesOf(), "cluster.kubeconfig": kubeconfigFor("http://127.0.0.1:1") };
  const findings = await findingsOf(files);
  assert.match(onlyProblem(findings, "cluster").finding, /ECONNREFUSED/);
  assert.equal(findings.find(({ name }) => name === "rights")?.state, "skipped");
  assert.equal(findings.find(({ name }) => name === "control plane")?.state, "ok");
  const { "cluster.kubeconfig": _, ...without } = files;
  const names = troubles(await findingsOf(without)).map(({ name }) => name);
  assert.deepEqual(names, ["files", "cluster"]);
});

test("a cluster that answers none of the requests that krane needs is not reported as checked", async (t) => {
  const { cluster, filesOf } = await createWorld(t);
  const page = { kind: "whole", status: 200, body: "<html>welcome</html>" } as const;
  cluster.server.faults.intercept(({ path }) => (path === "/version" ? undefined : page));
  const findings = await findingsOf(filesOf());
  assert.deepEqual(
    troubles(findings).map(({ name, state }) => `${state} ${name}`),
    [
      "problem rights",
      "problem admission policy",
      "problem network policies",
      "problem RuntimeClass gvisor",
      "problem namespace sentinel",
      "problem lease",
      "problem seals",
      "problem token reviews",
    ],
  );
  const policies = findings.find(({ name }) => name === "network policies");
  assert.match(policies?.finding ?? "", /is not a list of resources/);
});

test("something else at the address of the cluster is one problem", async (t) => {
  const { cluster, filesOf } = await createWorld(t);
  for (const status of [200, 503]) {
    cluster.server.faults.intercept(() => ({ kind: "whole", status, body: "<html>welcome</html>" }));
    const first = onlyProblem(await findingsOf(filesOf()), "cluster");
    assert.match(first.remedy, /that this is the API server's address/);
  }
});

test("credentials that the cluster does not know are one problem", async (t) => {
  const { cluster, filesOf } = await createWorld(t);
  const kubeconfig = cluster.kubeconfig.replace("of-the-served-cluster", "of-nobody");
  const first = onlyProblem(await findingsOf({ ...filesOf(), "cluster.kubeconfig": kubeconfig }), "cluster");
  assert.match(first.remedy, /still valid/);
});

test("a clock that is two minutes off is seen on both sides", async (t) => {
  const { filesOf } = await createWorld(t);
  const files: Readonly<Record<string, string>> = filesOf();
  const io = new FakeIo(files);
  const file = { path: "krane.toml", text: files["krane.toml"] ?? "" };
  const outcome = parseConfig({ file, env: {}, flags: {}, randomId: () => "00000000" });
  assert.ok(outcome.kind === "valid");
  const clock = createSystemClock();
  const slow = { ...clock, wallMs: () => clock.wallMs() - 120_000 };
  const deps = {
    clock: slow,
    log: createQuietLog(),
    env: {},
    readTextFile: io.readTextFile,
    runCommand: () => assert.fail("no command is needed"),
  };
  const [here, there, ...others] = troubles(await examine(outcome.config, deps, never));
  assert.deepEqual(others, []);
  assert.match(here?.finding ?? "", /the clock of the cluster is 1(19|20) s ahead of this machine's/);
  assert.match(there?.finding ?? "", /the clock of the control plane is 1(19|20) s ahead of this machine's/);
  assert.deepEqual([here?.state, there?.state], ["problem", "problem"]);
  assert.match(there?.remedy ?? "", /NTP/);
});

test("Ctrl-C ends it at once, silently and with the exit code of a shell", async (t) => {
  const { cluster, filesOf } = await createWorld(t);
  const io = new FakeIo(filesOf());
  // The cluster leaves the question open, and the person loses patience.
  cluster.server.faults.intercept(() => {
    io.send("SIGINT");
    return "hang";
  });
  assert.equal(await main(["doctor", "-c", "krane.toml"], {}, io), 130);
  assert.deepEqual([io.stdout.text, io.stderr.text, io.signalListeners], ["", "", 0]);
});

test("on a terminal there are marks instead of words", async () => {
  const io = new FakeIo({ "krane.toml": "regio = 1\n" });
  io.stdout.isTerminal = true;
  await main(["doctor", "-c", "krane.toml"], { NO_COLOR: "1" }, io);
  assert.match(io.stdout.text, /^✗ {2}configuration {2}krane\.toml:1: /m);
});

test("a configuration that is wrong is told line by line, and nothing else is tried", async () => {
  const { code, out } = await doctor({ "krane.toml": "regio = 1\n" });
  assert.equal(code, 1);
  assert.match(out, /^problem {2}configuration {2}krane\.toml:1: regio: is not a known setting$/m);
  assert.match(out, /remedy: did you mean region\?/);
});
