import assert from "node:assert/strict";
import { test } from "node:test";
import { createApiServer } from "@krane/kube-apiserver";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import { createInProcessTransport } from "../dev/in-process-transport.ts";
import { createKubeApi } from "../kube/client.ts";
import { configMaps } from "../kube/resources.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { createMeteredKubeApi } from "./metered-kube-api.ts";

test("every request is counted by verb, kind and result", async () => {
  const clock = new FakeClock();
  const server = createApiServer({ clock, random: createSeededRandom(1) });
  const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: "v0" });
  const transport = createInProcessTransport(server);
  const api = createMeteredKubeApi(createKubeApi(transport), "deployments", { clock, metrics });
  const signal = new AbortController().signal;
  const ref = { namespace: "default", name: "one" };
  const options = { fieldManager: "krane", force: false };
  await api.apply(configMaps, { metadata: ref }, options, signal);
  await assert.rejects(api.create(configMaps, { metadata: ref }, {}, signal));
  await api.get(configMaps, ref, {}, signal);
  await api.list(configMaps, {}, signal);
  await api.delete(configMaps, ref, {}, signal);
  api.watch(configMaps, {}, signal);
  const text = await metrics.render();
  const counted = [...text.matchAll(/^unkey_krane_k8s_requests_total\{(.*)\} (\d+)$/gm)].map(
    ([, labels = "", count]) =>
      `${labels.replaceAll(/controller="deployments",|resource="configmap",|"/g, "")} ${count}`,
  );
  assert.deepEqual(counted.sort(), [
    "verb=create,result=error 1",
    "verb=delete,result=success 1",
    "verb=get,result=success 1",
    "verb=list,result=success 1",
    "verb=patch,result=success 1",
    "verb=watch,result=success 1",
  ]);
  assert.match(text, /unkey_krane_k8s_duration_seconds_count\{controller="deployments",verb="patch",/);
});
