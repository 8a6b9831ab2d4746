import assert from "node:assert/strict";
import { test } from "node:test";
import { createApiServer } from "@krane/kube-apiserver";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { httpRouteDefinition } from "../../test/support/http-route-definition.ts";
import { createListedKubeApi, stateNamespace } from "../../test/support/listed-calls.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import { parseConfig } from "../config/parse.ts";
import { createInProcessTransport } from "../dev/in-process-transport.ts";
import type { CallingPart } from "../kinds/cluster-call.ts";
import { createKubeApi } from "../kube/client.ts";
import { customResourceDefinitions } from "../kube/resources.ts";
import { checkSeals } from "./seal-check.ts";

const never = new AbortController().signal;

/** What the check says with the rights of these parts, in a cluster that has HTTPRoutes. */
async function check(parts: readonly CallingPart[], more = "") {
  const clock = new FakeClock();
  const server = createApiServer({ clock, random: createSeededRandom(1) });
  const api = createKubeApi(createInProcessTransport(server));
  await api.create(customResourceDefinitions, httpRouteDefinition, {}, never);
  await clock.advance(5_000);
  const text = `region = "local.dev"
[control]
url = "http://localhost"
token = "of-the-control-plane"
[seal]
keys = ["${Buffer.alloc(32, 1).toString("base64")}"]
${more}`;
  const file = { path: "krane.toml", text };
  const outcome = parseConfig({ file, env: {}, flags: {}, randomId: () => "00000000" });
  const listed = createListedKubeApi(api, parts);
  const config = "config" in outcome ? outcome.config : assert.fail(JSON.stringify(outcome));
  const readTextFile = () => assert.fail("no file");
  const deps = { api: listed, stateNamespace, clock, log: createQuietLog(), readTextFile };
  const findings = await checkSeals("seals", config, deps, never);
  server.stop();
  return { states: findings.map(({ state }) => state), unlisted: listed.unlisted };
}

test("objects of a part that is not configured are not asked for, because the agent has no right to them", async () => {
  assert.deepEqual(await check(["agent"]), { states: ["ok"], unlisted: [] });
  const gateway = `[gateway]\nnamespace = "gateway"\nname = "public"\n`;
  assert.deepEqual(await check(["agent", "gateway"], gateway), { states: ["ok"], unlisted: [] });
  assert.deepEqual((await check(["agent"], gateway)).states, ["skipped"]);
});
