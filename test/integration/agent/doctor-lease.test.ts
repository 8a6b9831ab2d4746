// What `krane doctor` says about the lease of a region, beside real agents.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { leaseName } from "../../../src/agent/lease-step.ts";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { createInProcessTransport } from "../../../src/dev/in-process-transport.ts";
import { checkLease } from "../../../src/doctor/lease-check.ts";
import { createKubeApi } from "../../../src/kube/client.ts";
import { leases, namespaces } from "../../../src/kube/resources.ts";
import { components, ownLabels } from "../../../src/model/labels.ts";
import type { ServedCluster } from "../../support/served-cluster.ts";
import { agentToken, createAgentWorld, parse, region } from "./agent-world.ts";

const never = new AbortController().signal;
const stateNamespace = "krane";
const name = leaseName(region);

/** `speed`: how much faster time passes for the check. */
async function found(
  { server }: ServedCluster,
  { url = "http://127.0.0.1:1", more = "", speed = 1 } = {},
): Promise<readonly string[]> {
  const config = parse(`region = "${region}"
${more}
[control]
url = "${url}"
token = "t"
[agent]
token = "${agentToken}"
`);
  const clock = createSystemClock();
  const fast = {
    ...clock,
    nowMs: () => clock.nowMs() * speed,
    setTimer: (delayMs: number, callback: () => void) => clock.setTimer(delayMs / speed, callback),
  };
  const api = createKubeApi(createInProcessTransport(server, { userAgent: "doctor" }));
  const findings = await checkLease("lease", config, { api, stateNamespace, clock: fast }, never);
  return findings.map(({ state, finding }) => `${state}: ${finding}`);
}

async function world(t: TestContext) {
  const { cluster, links, startAgent } = await createAgentWorld(t);
  const url = `http://127.0.0.1:${links.controlPlane.port}`;
  return { cluster, url, startAgent };
}

async function putLease({ api }: ServedCluster, namespace: string, holderIdentity: string) {
  const labels = ownLabels(components.lease);
  await api.create(namespaces, { metadata: { name: namespace } }, {}, never);
  const metadata = { namespace, name, labels };
  const spec = {
    holderIdentity,
    acquireTime: "2026-01-02T03:04:05.000000Z",
    renewTime: "2026-01-02T04:05:06.000000Z",
    leaseTransitions: 7,
  };
  await api.create(
    leases,
    { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata, spec },
    {},
    never,
  );
}

test("doctor names the leader, and a leader that follows another control plane", async (t) => {
  const { cluster, url, startAgent } = await world(t);
  assert.deepEqual(await found(cluster, { url }), [
    `ok: no agent has led yet; the first one creates Lease krane/${name}`,
  ]);
  const agent = await startAgent("", { top: 'instance_id = "first"' });
  const [leads = "", ...others] = await found(cluster, { url });
  assert.deepEqual(others, []);
  assert.match(leads, /^ok: first leads since [\dT:-]+Z, term 1, and renews Lease krane\/krane-local\.dev$/);
  assert.deepEqual((await found(cluster)).slice(1), [
    `warning: first leads this region for another control plane, ${url}`,
  ]);
  await agent.stop();
  assert.deepEqual(await found(cluster, { url }), [
    `warning: no agent leads: the last one gave Lease krane/${name} up`,
  ]);
});

test("doctor names a second krane that leads the region in another namespace", async (t) => {
  const { cluster, url, startAgent } = await world(t);
  await startAgent("", { top: 'instance_id = "first"' });
  await putLease(cluster, "forgotten", "dead_00000000");
  await startAgent("", { top: 'instance_id = "second"', kubernetes: 'namespace = "other"' });
  const [, second, ...others] = await found(cluster, { url });
  assert.deepEqual(others, [], "a lease that nobody renews is no second krane");
  assert.equal(second, "warning: another krane leads the same region in namespace other: second");
  cluster.server.faults.intercept(({ path }) =>
    path.endsWith("/v1/leases")
      ? { kind: "whole", status: 403, body: { kind: "Status", code: 403 } }
      : undefined,
  );
  const [first = "", ...seen] = await found(cluster, { url });
  assert.match(first, /^ok: first leads .*; other namespaces cannot be checked with these credentials$/);
  assert.deepEqual(seen, []);
});

test("doctor warns of a lease that nobody renews, and of a missing right to Leases", async (t) => {
  const { cluster, url } = await world(t);
  await putLease(cluster, stateNamespace, "dead_00000000");
  assert.deepEqual(await found(cluster, { url, speed: 50 }), [
    `warning: dead holds Lease krane/${name} since 2026-01-02T03:04:05Z, term 7, but did not renew it for 3.5 s; ` +
      "by its own clock it last did at 2026-01-02T04:05:06Z",
  ]);
  cluster.server.faults.intercept(({ path }) =>
    path.includes("/leases")
      ? { kind: "whole", status: 403, body: { kind: "Status", code: 403 } }
      : undefined,
  );
  const states = [];
  for (const lease of ["auto", "required", "off"]) {
    const [finding = ""] = await found(cluster, { url, more: `lease = "${lease}"` });
    states.push(finding);
  }
  assert.deepEqual(states, [
    `warning: krane may not read Lease krane/${name}: nothing keeps a second agent of this region from writing`,
    `problem: krane may not read Lease krane/${name}, and writes nothing without it`,
    'warning: not used (lease = "off"): nothing keeps a second agent of this region from writing',
  ]);
});
