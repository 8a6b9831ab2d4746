// The control plane on a port: its end, its slow clients, and what else is there.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { eventually } from "../../support/eventually.ts";
import { fetchHttp1, fetchHttp2 } from "../../support/http-clients.ts";
import { aws, deployment, dev, readStream, roads, serveControlPlane, token } from "./served-control-plane.ts";

/** Counts the messages that streams hand out to their connections. */
function countMessages(): { readonly counted: Map<string, number>; readonly interceptor: Interceptor } {
  const counted = new Map<string, number>();
  const interceptor: Interceptor = (next) => async (request) => {
    const name = request.header.get("x-reader") ?? "";
    const response = await next(request);
    if (!response.stream) return response;
    const message = (async function* count(messages) {
      for await (const each of messages) {
        counted.set(name, (counted.get(name) ?? 0) + 1);
        yield each;
      }
    })(response.message);
    return { ...response, message };
  };
  return { counted, interceptor };
}

/** Ciphertext, as it really is: compression makes nothing of it. */
const bigDeployment = (number: number) =>
  deployment(number, { encryptedEnvironmentVariables: randomBytes(32 * 1024) });

describe("serving", () => {
  for (const road of roads.filter((each) => each !== "in process")) {
    test(`a close ends open streams with unavailable and leaves nothing, ${road}`, async (t) => {
      const { admin, faults, connect, running } = await serveControlPlane(t, road);
      await admin.setDeployment(aws, deployment(1));
      await admin.setDeployment(dev, deployment(1));
      const streams = [aws, dev].map((region) => {
        const client = connect({ "x-krane-region": region });
        return readStream(t, (options) => client.watchDeployments({}, options));
      });
      await Promise.all(streams.map((stream) => stream.take(1)));
      const endings = streams.map((stream) => stream.ending());
      await running?.close();
      for (const error of await Promise.all(endings)) {
        assert.ok(error instanceof ConnectError);
        assert.equal(error.code, Code.Unavailable);
        assert.equal(error.metadata.get("retry-after"), "1");
      }
      assert.equal(faults.openStreams, 0);
      await assert.rejects(
        connect().heartbeat({}),
        (error) => ConnectError.from(error).code === Code.Unavailable,
      );
    });
  }

  test("a client that does not read makes the server hold little, holds up nobody and loses nothing", async (t) => {
    const { counted, interceptor } = countMessages();
    const { admin, connect } = await serveControlPlane(t, "h2c", [interceptor]);
    const count = 300;
    for (let number = 0; number < count; number++) await admin.setDeployment(aws, bigDeployment(number));

    const slow = readStream(t, (options) => connect({ "x-reader": "slow" }).watchDeployments({}, options));
    const first = await slow.take(1);
    const fast = readStream(t, (options) => connect({ "x-reader": "fast" }).watchDeployments({}, options));
    await fast.take(count);
    assert.equal(counted.get("fast"), count);
    const held = counted.get("slow") ?? 0;
    assert.ok(held < count / 10, `${held} of ${count} messages were taken for a client that read one`);

    const rest = await slow.take(count - 1);
    const versions = [...first, ...rest].map((state) => state.version);
    assert.deepEqual(
      versions,
      Array.from({ length: count }, (_, number) => BigInt(number + 1)),
    );
  });

  test("a client that goes away without having read frees its stream", async (t) => {
    const { admin, faults, connect } = await serveControlPlane(t, "h2c");
    for (let number = 0; number < 100; number++) await admin.setDeployment(aws, bigDeployment(number));
    const stream = readStream(t, (options) => connect().watchDeployments({}, options));
    await stream.take(1);
    assert.equal(faults.openStreams, 1);
    stream.cancel();
    await eventually("the stream is closed", () => assert.equal(faults.openStreams, 0));
  });

  test("a close does not wait for a client that does not read, when in a hurry", async (t) => {
    const { admin, connect, running } = await serveControlPlane(t, "h2c");
    for (let number = 0; number < 100; number++) await admin.setDeployment(aws, bigDeployment(number));
    const stream = readStream(t, (options) => connect().watchDeployments({}, options));
    await stream.take(1);
    await running?.close(AbortSignal.abort());
  });

  test("health is on the same port, over both versions of HTTP", async (t) => {
    const { running } = await serveControlPlane(t, "h2c");
    for (const path of ["/health/live", "/health/ready", "/health/startup"]) {
      assert.equal((await fetchHttp1(`${running?.url}${path}`)).status, 200);
      assert.equal((await fetchHttp2(`${running?.url}${path}`)).status, 200);
    }
    assert.equal((await fetchHttp1(`${running?.url}/`)).status, 404);
  });

  test("a person can call it with JSON", async (t) => {
    const { admin, running } = await serveControlPlane(t, "h2c");
    await admin.setDeployment(aws, deployment(1));
    const answer = await fetch(`${running?.url}/ctrl.v1.ClusterService/GetDesiredDeploymentState`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${token}`,
        "x-krane-region": aws,
      },
      body: '{"deploymentId":"d_1"}',
    });
    assert.equal(answer.status, 200);
    const state = (await answer.json()) as { version: string; apply: { k8sName: string } };
    assert.deepEqual([state.version, state.apply.k8sName], ["1", "app-1"]);
  });

  test("a request above the limit is refused before it is read", async (t) => {
    const { connect } = await serveControlPlane(t, "h2c");
    const k8sName = "x".repeat(5 * 1024 * 1024);
    const report = connect().reportDeploymentStatus({ change: { case: "delete", value: { k8sName } } });
    await assert.rejects(report, (error) => ConnectError.from(error).code === Code.ResourceExhausted);
  });
});
