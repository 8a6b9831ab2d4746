// A reflector on a real API server behind a network that fails: after each fault the cache equals
// the server, what its listener was told adds up, and no connection is left behind.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { ConfigMap } from "kubernetes-types/core/v1.js";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSystemRandom } from "../../src/concurrency/random.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { fixedCredential } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { listAll } from "../../src/kube/list-all.ts";
import { ObjectCache } from "../../src/kube/object-cache.ts";
import { Reflector } from "../../src/kube/reflector.ts";
import { configMaps } from "../../src/kube/resources.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { eventually } from "../support/eventually.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";

const cluster = clusterUnderTest();
const clock = createSystemClock();
const labelSelector = "faults=yes";

function connect(port: number) {
  const credentials = fixedCredential({ authorization: `Bearer ${cluster.adminToken}` });
  const endpoint = { server: `https://127.0.0.1:${port}`, ca: cluster.ca, credentials };
  const transport = createHttpTransport({ endpoint, connections: 4 }, { clock });
  return { transport, api: createKubeApi(transport) };
}

const versionOf = (object: ConfigMap) => `${object.metadata?.uid}@${object.metadata?.resourceVersion}`;

async function startWorld(t: TestContext) {
  const signal = AbortSignal.timeout(120_000);
  const namespace = await cluster.freshNamespace(t);
  const direct = connect(Number(new URL(cluster.serverUrl).port));
  const proxy = await startFaultProxy(t, Number(new URL(cluster.serverUrl).port));
  const behind = connect(proxy.port);
  const cache = new ObjectCache({ project: versionOf });
  const told = new Map<string, string>();
  cache.subscribe((change) => {
    const before = change.kind === "added" ? undefined : change.before.value;
    assert.equal(
      told.get(change.key),
      before,
      `${change.kind} ${change.key} does not follow from what was told`,
    );
    if (change.kind === "deleted") told.delete(change.key);
    else told.set(change.key, change.after.value);
  });
  const stop = new AbortController();
  // So short that the silence of a stalled connection does not hold up the test; an idle watch is
  // then restarted now and then as well, which must not matter either.
  const reflector = new Reflector(
    { kind: configMaps, selection: { namespace, labelSelector }, cache, silenceMs: 2_000 },
    { api: behind.api, clock, random: createSystemRandom() },
  );
  const done = reflector.run(stop.signal);
  await cache.whenSynced(signal);

  const write = (name: string, value: string) =>
    direct.api.apply(
      configMaps,
      { metadata: { namespace, name, labels: { faults: "yes" } }, data: { value } },
      { fieldManager: "krane", force: true },
      signal,
    );
  const remove = (name: string) => direct.api.delete(configMaps, { namespace, name }, {}, signal);
  return {
    proxy,
    write,
    remove,
    equal: () => expectEqual(direct.api, namespace, cache, told, signal),
    async end() {
      stop.abort();
      await done;
      await Promise.all([behind.transport.close(), direct.transport.close()]);
      await eventually("no connection is left", () => assert.equal(proxy.connectionCount(), 0));
    },
  };
}

async function expectEqual(
  api: KubeApi,
  namespace: string,
  cache: ObjectCache<ConfigMap, string>,
  told: ReadonlyMap<string, string>,
  signal: AbortSignal,
): Promise<void> {
  const live = await listAll(
    api,
    configMaps,
    { namespace, labelSelector },
    (object) => [`${namespace}/${object.metadata?.name}`, versionOf(object)] as const,
    signal,
  );
  const expected = Object.fromEntries([...live.items].sort());
  await eventually("the cache equals the server", () => {
    assert.deepEqual(
      Object.fromEntries([...cache.all()].map((one) => [one.key, one.value]).sort()),
      expected,
    );
    assert.deepEqual(Object.fromEntries([...told].sort()), expected);
  });
}

const faults: Readonly<Record<string, (proxy: FaultProxy) => () => void>> = {
  "connections are cut": (proxy) => {
    proxy.cut();
    return () => undefined;
  },
  "connections go silent": (proxy) => {
    proxy.stall();
    return () => undefined;
  },
  "nobody can connect for a while": (proxy) => {
    proxy.refuse(true);
    proxy.cut();
    return () => proxy.refuse(false);
  },
  "bytes come one by one": (proxy) => {
    proxy.cut();
    proxy.chop(1);
    return () => undefined;
  },
};

test("after each fault of the network the cache equals the server", async (t) => {
  const world = await startWorld(t);
  for (let count = 0; count < 20; count++) await world.write(`c${count}`, "first");
  await world.equal();
  let round = 0;
  for (const [name, inflict] of Object.entries(faults)) {
    await t.test(name, async () => {
      round += 1;
      const heal = inflict(world.proxy);
      await world.remove(`c${round}`);
      await world.remove("c0");
      await world.write("c0", `again ${round}`);
      await world.write("c19", `changed ${round}`);
      await world.write(`new${round}`, "new");
      heal();
      await world.equal();
    });
  }
  await world.end();
});
