// An agent that fails ends `krane dev`, and its reason is told once.
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { Server } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { startDevRegion } from "../../../src/dev/dev-region.ts";
import { defaultLifecycle, LifecycleStack } from "../../../src/runtime/lifecycle.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { devDeps, freeDevPorts, never, quickPods, temporaryFolder } from "./dev-world.ts";

test("an agent whose port fails stops the region, with that as the only cause", async (t) => {
  const deps = devDeps();
  const kubeconfigPath = join(await temporaryFolder(t), "kubeconfig");
  const cluster = { kind: "embedded", kubeconfigPath, behaviour: quickPods } as const;
  const stack = new LifecycleStack(defaultLifecycle, deps);
  t.after(() => stack.stop().catch(() => undefined));
  const { urls } = await startDevRegion({ ports: await freeDevPorts(), cluster }, deps, stack, never);

  const live = `${urls.agent}/health/live`;
  let listener: Server | undefined;
  const remember = (message: unknown) => {
    const { server, request } = message as { server: Server; request: { url: string } };
    if (request.url === "/health/live") listener = server;
  };
  subscribe("http.server.request.start", remember);
  assert.equal((await fetchHttp1(live)).status, 200);
  unsubscribe("http.server.request.start", remember);
  listener?.emit("error", new Error("the port is gone"));
  if (!stack.taskFailed.aborted) await once(stack.taskFailed, "abort");

  await assert.rejects(stack.stop(), (error) => {
    assert.ok(error instanceof AggregateError);
    const messages = error.errors.map(({ message }: Error) => message);
    assert.deepEqual(messages, ["agent: RPC port: the port is gone"]);
    return true;
  });
  await assert.rejects(fetchHttp1(live), { code: "ECONNREFUSED" });
  await assert.rejects(fetchHttp1(urls.kubernetes), { code: "ECONNREFUSED" });
});
