// What came with apps, routes and logs, where only one side has it: the other one works as before, and people are told.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { Secret } from "../../src/config/secret.ts";
import { ApplyRoute_Expose as Expose } from "../../src/gen/ctrl/v1/route_pb.ts";
import { AdminService, ObjectKind } from "../../src/gen/krane/admin/v1/admin_pb.ts";
import { Release_Phase as Phase } from "../../src/gen/krane/admin/v1/app_pb.ts";
import { StreamStatus_State as State } from "../../src/gen/krane/v1/agent_pb.ts";
import { customResourceDefinitions, httpRoutes, replicaSets } from "../../src/kube/resources.ts";
import { advanceReleases } from "../../src/server/apps/release-steps.ts";
import { agentClient, createAgentWorld } from "../integration/agent/agent-world.ts";
import { applyDeployment } from "../support/deployment-messages.ts";
import { eventually } from "../support/eventually.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { httpRouteDefinition } from "../support/http-route-definition.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import { createTestPlane } from "../support/store-admin.ts";
import { OriginalAgent, streamKinds } from "./original-agent.ts";
import { serveOriginalControlPlane } from "./original-control-plane.ts";

const never = new AbortController().signal;
const region = "us-east-1.aws";
const agentToken = "token-of-the-agents";
const token = "lea-may-write-and-read-logs";

const withHeaders =
  (headers: Readonly<Record<string, string>>): Interceptor =>
  (next) =>
  (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    return next(request);
  };

// Steps are taken in time, also if no Gateway moves the requests.
const exposures = {
  "within the cluster": { expose: Expose.CLUSTER, hostnames: [], steps: [] },
  "under a hostname": { expose: Expose.GATEWAY, hostnames: ["shop.example.com"], steps: [10, 50] },
};

for (const [where, { steps, ...exposed }] of Object.entries(exposures))
  test(`an agent of the original rolls an app ${where} over to its next release; routes and logs say that it is too old`, async (t) => {
    const clock = new FakeClock();
    const adminTokens = new Secret(`lea read-write+logs ${token}`);
    const options = { tokens: [new Secret(agentToken)], adminTokens };
    const { admin, store, createTransport } = createTestPlane(options, { clock, log: createQuietLog() });
    await admin.registerRegion(region);
    const people = createClient(
      AdminService,
      createTransport([withHeaders({ authorization: `Bearer ${token}` })]),
    );
    const identity = { authorization: `Bearer ${agentToken}`, "x-krane-region": region };
    const agent = new OriginalAgent(region, createTransport([withHeaders(identity)]));
    const stop = new AbortController();
    t.after(() => stop.abort());
    for (const kind of streamKinds) void agent.watch(kind, stop.signal);

    const owner = { workspaceId: "ws_1", projectId: "proj_1" };
    await people.applyEnvironment({ region, id: "env_1", ...owner });
    for (const name of exposed.hostnames) await admin.grantHostname(name, owner.workspaceId);
    const apply = (image: string) =>
      people.applyApp({
        region,
        spec: {
          template: {
            ...applyDeployment({ deploymentId: "app_web", k8sName: "web", k8sNamespace: "demo", image }),
            ...{ ...owner, environmentId: "env_1", replicas: 1 },
          },
          policy: {
            readySeconds: 5,
            deadlineSeconds: 600,
            drainSeconds: 20,
            history: 3,
            steps,
            stepSeconds: 5,
          },
          ...exposed,
        },
      });
    const phases = async () => {
      const { app } = await people.getApp({ region, id: "app_web" });
      return app?.app?.releases.map(({ phase }) => phase);
    };
    const roll = async () => {
      for (let seconds = 0; seconds < 60; seconds += 5) {
        await clock.advance(5_000);
        for (const name of agent.cluster.deployment.keys()) await agent.reportPods(name, 1);
        await advanceReleases(store, clock.wallMs(), never);
      }
    };
    await apply("registry.example/web:1");
    await roll();
    assert.deepEqual(await phases(), [Phase.CURRENT]);
    await apply("registry.example/web:2");
    await roll();
    assert.deepEqual(await phases(), [Phase.RETIRED, Phase.CURRENT]);
    assert.deepEqual(agent.failures, []);

    const { explanation } = await people.explainObject({
      ref: { region, kind: ObjectKind.APP, id: "app_web" },
    });
    assert.match(JSON.stringify(explanation), /too old for routes/);
    const logs = people.streamLogs({ region, target: { case: "appId", value: "app_web" } });
    await assert.rejects(
      (async () => {
        for await (const _ of logs) assert.fail("it has no logs");
      })(),
      (error) => {
        const { code, rawMessage } = ConnectError.from(error);
        assert.equal(code, Code.FailedPrecondition, rawMessage);
        assert.match(rawMessage, /^the agent of region us-east-1\.aws is too old for logs; update it$/);
        return true;
      },
    );
  });

test("an agent that serves logs, routes and a Gateway works with a control plane that has none of them", async (t) => {
  const plane = await serveOriginalControlPlane(t);
  const { cluster, startAgent } = await createAgentWorld(t);
  await cluster.api.create(customResourceDefinitions, httpRouteDefinition, {}, never);
  const control = `url = "${plane.server.url}"\ntoken = "t-1234567890"`;
  const gateway = '[gateway]\nnamespace = "gateway"\nname = "public"';
  const agent = await startAgent(`[logs]\nenabled = true\n${gateway}`, { control });
  const value = applyDeployment({ k8sNamespace: "acme", k8sName: "web" });
  plane.deployments.add({ state: { case: "apply", value } });
  await eventually("it is applied", async () =>
    assert.ok(await cluster.api.get(replicaSets, { namespace: "acme", name: "web" }, {}, never)),
  );
  const { status } = await agentClient(t, agent.url).getStatus({});
  const stateOf = (wanted: string) => status?.controllers.find(({ name }) => name === wanted)?.stream?.state;
  assert.deepEqual([stateOf("deployments"), stateOf("routes")], [State.OPEN, State.UNSUPPORTED]);
  assert.equal((await fetch(`${agent.url}/health/ready`)).status, 200);
  assert.deepEqual((await cluster.api.list(httpRoutes, {}, never)).items, []);
});
