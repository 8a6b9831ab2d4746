// What deploy/manifests says of the pods of an install. It is read as it is in the repository, without Helm.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container, PodSpec } from "kubernetes-types/core/v1.js";
import { startTimeoutMs } from "../../src/agent/controllers.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { createHealth } from "../../src/http/health.ts";
import {
  componentKey,
  configProblems,
  deploymentsOf,
  type ManifestObject,
} from "../support/deployed-parts.ts";
import { manifestsOf } from "../support/deployed-rights.ts";
import { FakeClock } from "../support/fake-clock.ts";

const objects = ["agent.yaml", "server.yaml", "vault.yaml"].flatMap(manifestsOf) as readonly ManifestObject[];
const deployments = deploymentsOf(objects);
const parts = [...deployments].map(([name, deployment]) => {
  const spec: PodSpec = deployment.spec?.template.spec ?? assert.fail("no pod");
  const container: Container = spec.containers[0] ?? assert.fail("no container");
  return { name, deployment, spec, container };
});

function configOf(part: string): string {
  const found = objects.find(
    ({ kind, metadata }) => kind === "ConfigMap" && metadata?.labels?.[componentKey] === part,
  );
  return found?.data?.["krane.toml"] ?? assert.fail(`no configuration for ${part}`);
}

test("there are an agent, a server and a vault", () => {
  assert.deepEqual([...deployments.keys()].sort(), ["agent", "server", "vault"]);
});

test("there are two agents on two nodes if possible, which need the lease to write and are replaced one by one", () => {
  const { replicas, strategy, template } = deployments.get("agent")?.spec ?? {};
  const rollingUpdate = { maxUnavailable: 0, maxSurge: 1 };
  assert.deepEqual([replicas, strategy], [2, { type: "RollingUpdate", rollingUpdate }]);
  assert.equal(template?.spec?.topologySpreadConstraints?.[0]?.topologyKey, "kubernetes.io/hostname");
  assert.match(configOf("agent"), /^lease = "required"$/m);
  const budget = objects.find(
    ({ kind, metadata }) => kind === "PodDisruptionBudget" && metadata?.labels?.[componentKey] === "agent",
  );
  assert.ok(budget, "a drained node takes only one");
  const env = template?.spec?.containers[0]?.env ?? [];
  const address = env.find(({ name }) => name === "UNKEY_ADVERTISE_ADDRESS");
  assert.equal(address?.valueFrom?.fieldRef?.fieldPath, "status.podIP", "a standby finds the leader");
});

test("only the agent gets a token of its service account", () => {
  for (const { name, spec } of parts) {
    assert.equal(spec.automountServiceAccountToken, name === "agent", name);
    assert.deepEqual(spec.volumes?.filter(({ projected }) => projected) ?? [], []);
  }
});

test("no pod is root, writes to its image, gains a privilege, or shares anything of the node", () => {
  for (const { name, spec, container } of parts) {
    const { runAsNonRoot, runAsUser, seccompProfile } = spec.securityContext ?? {};
    assert.deepEqual([runAsNonRoot, seccompProfile], [true, { type: "RuntimeDefault" }], name);
    assert.ok((runAsUser ?? 0) > 0);
    assert.deepEqual(container.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    assert.deepEqual(
      [spec.hostNetwork, spec.hostPID, spec.hostIPC, spec.containers.length],
      [undefined, undefined, undefined, 1],
    );
    assert.ok(spec.volumes?.every(({ hostPath }) => hostPath === undefined));
    assert.equal(spec.enableServiceLinks, false);
  }
});

test("only the vault has something that it can write to, and that is its own volume", () => {
  for (const { name, container } of parts) {
    const writable = (container.volumeMounts ?? []).filter(({ readOnly }) => readOnly !== true);
    assert.deepEqual(
      writable.map(({ mountPath }) => mountPath),
      name === "vault" ? ["/var/lib/krane-vault"] : [],
    );
  }
});

test("krane accepts the configurations, and every file that they name is mounted", () => {
  assert.deepEqual(configProblems(objects), []);
  for (const { name, container } of parts) {
    const mounted = (container.volumeMounts ?? []).map(({ mountPath }) => `${mountPath}/`);
    const named = [...configOf(name).matchAll(/(?:_file|path) = "([^"]+)"/g)].map(([, path = ""]) => path);
    assert.ok(named.length > 0);
    for (const path of named)
      assert.ok(
        mounted.some((folder) => path.startsWith(folder)),
        `${name}: ${path}`,
      );
  }
});

test("no secret stands in a configuration", () => {
  for (const { name } of parts)
    assert.doesNotMatch(configOf(name), /\b(token|password|master_keys|database_url|agent_tokens|secret) =/);
});

test("probes and Services lead to ports and paths that are there", () => {
  const paths = [...createHealth(new Map(), { clock: new FakeClock() }).routes().keys()];
  for (const { name, container } of parts) {
    const ports = new Map(container.ports?.map((port) => [port.name, port.containerPort]));
    const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe];
    assert.deepEqual(probes.map((probe) => probe?.httpGet?.path).sort(), [...paths].sort());
    assert.ok(probes.every((probe) => probe?.httpGet?.port === "rpc"));
    const config = configOf(name);
    const rpc = /(?:rpc_port = |listen = "0\.0\.0\.0:)(\d+)/.exec(config)?.[1];
    const metrics = /prometheus_port = (\d+)/.exec(config)?.[1];
    assert.deepEqual([ports.get("rpc"), ports.get("metrics")], [Number(rpc), Number(metrics)], name);
  }
});

test("a start may use all its time limits, on a slow node too, before a probe ends it without a reason", () => {
  // The seal, the watches and the recorded orders, one after the other.
  const limitsMs = 3 * startTimeoutMs;
  const slowNodeMs = 30_000;
  for (const { name, container } of parts) {
    const { periodSeconds = 10, failureThreshold = 3, timeoutSeconds = 1 } = container.startupProbe ?? {};
    assert.ok(periodSeconds * failureThreshold * 1_000 >= limitsMs + slowNodeMs, name);
    assert.ok(timeoutSeconds >= (container.livenessProbe?.timeoutSeconds ?? 1), name);
  }
});

test("an agent finds the server, and pods find the agent, at the addresses of their Services", () => {
  const outcome = parseConfig({
    file: { path: "agent.toml", text: configOf("agent") },
    env: {},
    flags: {},
    randomId: () => "abcd1234",
  });
  assert.equal(outcome.kind, "valid");
  const services = objects.filter(({ kind }) => kind === "Service");
  const addresses = services.map((service) => {
    const { metadata, spec } = service as ManifestObject & {
      readonly spec: { readonly ports: readonly { readonly port: number }[] };
    };
    return `http://${metadata?.name}.${metadata?.namespace}.svc.cluster.local:${spec.ports[0]?.port}`;
  });
  const named = [...configOf("agent").matchAll(/(?:url|endpoint) = "([^"]+)"/g)].map(([, url]) => url);
  assert.deepEqual(named.sort(), addresses.sort());
});
