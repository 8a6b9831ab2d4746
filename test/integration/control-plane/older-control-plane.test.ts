// A whole controller against a control plane that does not know the agent's limit, over real HTTP/2: a spec that is too
// large is rejected like any other that is invalid.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import type { Interceptor } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { Secret } from "../../../src/config/secret.ts";
import { createControlPlane } from "../../../src/control-plane/connection.ts";
import { ObjectStatus_Outcome } from "../../../src/gen/krane/v1/agent_pb.ts";
import { kinds } from "../../../src/kinds/kinds.ts";
import { defaultOptions, SimulatedRegion } from "../../simulation/simulated-region.ts";
import { eventually } from "../../support/eventually.ts";

const createDeploymentController = await kinds.deployment.loadController();
const messageBytesMax = 64 * 1024;

/** Lets the server send everything as it is, as one without `too_large` does. */
const older: Interceptor = (next) => (request) => {
  request.header.set("x-krane-message-bytes-max", "1000000000");
  return next(request);
};

test("a spec that is too large for the agent is rejected, and the rest of the stream is applied", async (t) => {
  const world = await SimulatedRegion.create({ interceptors: [older] });
  const server = createServer(connectNodeAdapter({ routes: (router) => world.plane.routes(router) }));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const controlPlane = createControlPlane(
    {
      controller: "deployments",
      baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      region: { name: "local", platform: "dev", label: "local.dev" },
      token: { current: async () => new Secret("simulation-token"), refresh: () => undefined },
      limits: { messageBytesMax },
    },
    { clock: world.clock },
  );
  await world.setDeployment(1, { replicas: 2 });
  const agent = world.createAgentOf("deployments", (deps) =>
    createDeploymentController(defaultOptions, { ...deps, controlPlane }),
  );
  const { controller } = agent;
  const eventuallyMoving = (what: string, check: () => Promise<void> | void) =>
    eventually(what, async () => {
      await world.clock.advance(100);
      await check();
    });
  const started = controller.start();
  await eventuallyMoving("the first one is applied", async () => {
    assert.equal((await world.replicaSets()).length, 1);
  });
  await started;
  const encryptedEnvironmentVariables = new Uint8Array(100_000);
  await world.setDeployment(1, { replicas: 3, encryptedEnvironmentVariables });
  await world.setDeployment(2);
  await eventuallyMoving("the cursor passes", () => assert.equal(controller.status().stream?.cursor, 3n));
  const sets = await world.replicaSets();
  assert.deepEqual(
    sets.map(({ metadata, spec }) => [metadata?.name, spec?.replicas]),
    [
      ["web-1", 2],
      ["web-2", 1],
    ],
  );
  const [status, ...others] = controller.objects({ onlyTroubled: true });
  assert.deepEqual(
    [status?.key, status?.id, status?.outcome, status?.desiredVersion, status?.appliedVersion, others],
    ["acme/web-1", "d_1", ObjectStatus_Outcome.PARKED, 2n, 1n, []],
  );
  assert.match(status?.reason ?? "", /^too large: 100\d{3} bytes, limit 65536$/);
  await world.setDeployment(1, { replicas: 4 });
  await eventuallyMoving("a smaller spec replaces it", () => assert.equal(controller.status().parked, 0));
  await Promise.all([agent.stop(), controlPlane.close()]);
  await world.stop();
});
