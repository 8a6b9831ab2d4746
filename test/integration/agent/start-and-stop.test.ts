// How the agent begins and ends: with everything, or with nothing left behind.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AgentError } from "../../../src/agent/agent-error.ts";
import { run } from "../../../src/agent/run.ts";
import { pods } from "../../../src/kube/resources.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { freePort } from "../../support/krane-process.ts";
import { kubeconfigFor } from "../../support/served-cluster.ts";
import { agentClient, agentDeps, createAgentWorld, parse, region } from "./agent-world.ts";

const never = new AbortController().signal;

const minimal = (rpcPort: number) => `region = "${region}"
rpc_port = ${rpcPort}
[control]
url = "http://127.0.0.1:1"
token = "not-a-real-token"
`;

const hasCode = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof AgentError && error.code === code && message.test(error.message);

describe("the start of an agent", () => {
  test("fails at once where no cluster is named, and leaves no port open", async () => {
    const rpcPort = await freePort();
    const started = run(parse(minimal(rpcPort)), agentDeps({}), never);
    await assert.rejects(started, hasCode("cluster_unknown", /^no Kubernetes cluster configured: /));
    await assert.rejects(fetchHttp1(`http://127.0.0.1:${rpcPort}/health/live`), { code: "ECONNREFUSED" });
  });

  test("fails after 30 s where the API server does not answer, names it, and leaves nothing", async () => {
    const rpcPort = await freePort();
    const clock = new FakeClock();
    const server = `http://127.0.0.1:${await freePort()}`;
    const config = parse(`${minimal(rpcPort)}[kubernetes]\nkubeconfig = "kubeconfig"`);
    const started = run(config, { ...agentDeps({ kubeconfig: kubeconfigFor(server) }), clock }, never);
    let failure: unknown;
    started.catch((error: unknown) => {
      failure = error;
    });
    const asked = () => fetchHttp1(`http://127.0.0.1:${rpcPort}/health/startup`);
    await eventually("it is starting", async () => assert.equal((await asked()).status, 503));
    await clock.advance(29_000);
    assert.equal((await asked()).status, 503);
    await eventually("it gave up", async () => {
      await clock.advance(1_000);
      assert.ok(failure, "not yet");
    });
    const reason = `^Kubernetes at ${server}: cannot load the seal .*ECONNREFUSED`;
    assert.ok(hasCode("start_failed", new RegExp(reason))(failure), String(failure));
    await assert.rejects(asked(), { code: "ECONNREFUSED" });
    assert.equal(clock.timerCount, 0);
  });

  test("fails where the API server refuses the credentials, and closes its connections", async (t) => {
    const { links } = await createAgentWorld(t);
    const clock = new FakeClock();
    const server = `http://127.0.0.1:${links.cluster.port}`;
    const kubeconfig = kubeconfigFor(server).replace(/"token":"[^"]*"/, '"token":"wrong"');
    const config = parse(`${minimal(await freePort())}[kubernetes]\nkubeconfig = "kubeconfig"`);
    const started = run(config, { ...agentDeps({ kubeconfig }), clock }, never);
    let failure: unknown;
    started.catch((error: unknown) => {
      failure = error;
    });
    await eventually("it gave up", async () => {
      await clock.advance(1_000);
      assert.ok(failure, "not yet");
    });
    assert.ok(hasCode("start_failed", /401 Unauthorized/)(failure), String(failure));
    await eventually("nothing is connected", () => assert.equal(links.cluster.connectionCount(), 0));
    assert.equal(clock.timerCount, 0);
  });

  test("can be ended while it waits for the API server, which is no error", async () => {
    const rpcPort = await freePort();
    const config = parse(`${minimal(rpcPort)}[kubernetes]\nkubeconfig = "kubeconfig"`);
    const kubeconfig = kubeconfigFor(`http://127.0.0.1:${await freePort()}`);
    const stopping = new AbortController();
    const started = run(config, agentDeps({ kubeconfig }), stopping.signal);
    const asked = () => fetchHttp1(`http://127.0.0.1:${rpcPort}/health/startup`);
    await eventually("it is starting", async () => assert.equal((await asked()).status, 503));
    stopping.abort();
    await started;
    await assert.rejects(asked(), { code: "ECONNREFUSED" });
  });

  test("does not need the control plane", async (t) => {
    const { running, startAgent } = await createAgentWorld(t);
    await running?.close(AbortSignal.abort());
    const { url } = await startAgent();
    assert.equal((await fetchHttp1(`${url}/health/ready`)).status, 200);
  });
});

describe("the stop of an agent", () => {
  test("closes its streams, watches and ports, and leaves the workloads alone", async (t) => {
    const { admin, cluster, faults, links, startAgent } = await createAgentWorld(t);
    await admin.setDeployment(region, applyDeployment({ replicas: 2, deploymentId: "d_1" }));
    const agent = await startAgent();
    await eventually("it runs", async () => assert.equal((await admin.instances(region, "d_1")).length, 2));
    await agentClient(t, agent.url).getStatus({});
    await eventually("each controller has its stream", () => assert.equal(faults.openStreams, 4));
    assert.equal(links.controlPlane.connectionCount(), 5, "one for each controller, one for the agent");
    assert.ok(links.cluster.connectionCount() >= 3, "one for each watch");
    await agent.stop();
    await eventually("its streams are closed", () => assert.equal(faults.openStreams, 0));
    for (const link of Object.values(links))
      await eventually("its connections are closed", () => assert.equal(link.connectionCount(), 0));
    await assert.rejects(fetchHttp1(`${agent.url}/health/live`), { code: "ECONNREFUSED" });
    assert.equal((await cluster.api.list(pods, { namespace: "acme" }, never)).items.length, 2);
  });

  test("without a token in the configuration there is no AgentService", async (t) => {
    const { cluster } = await createAgentWorld(t);
    const rpcPort = await freePort();
    const config = parse(`${minimal(rpcPort)}[kubernetes]\nkubeconfig = "kubeconfig"`);
    const stopping = new AbortController();
    const started = run(config, agentDeps({ kubeconfig: cluster.kubeconfig }), stopping.signal);
    const url = `http://127.0.0.1:${rpcPort}`;
    await eventually("it is ready", async () =>
      assert.equal((await fetchHttp1(`${url}/health/ready`)).status, 200),
    );
    const answer = await fetchHttp1(`${url}/krane.v1.AgentService/GetStatus`, { method: "POST" });
    assert.equal(answer.status, 404);
    stopping.abort();
    await started;
  });
});
