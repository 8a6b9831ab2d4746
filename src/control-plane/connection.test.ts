// The client against a server in the same process: what a call carries, how it ends, and what is
// remembered between calls.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createRouterTransport,
  type Interceptor,
} from "@connectrpc/connect";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { type ClusterServiceParts, testEveryCall } from "../../test/support/stamped-calls.ts";
import { isAbort } from "../concurrency/abort.ts";
import { Secret } from "../config/secret.ts";
import { createSecretSource, type SecretSource } from "../config/secret-source.ts";
import { ClusterService } from "../gen/ctrl/v1/cluster_service_pb.ts";
import { kinds } from "../kinds/kinds.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { createControlPlane } from "./connection.ts";
import { ControlPlaneError } from "./error.ts";
import { provenByPingsMs } from "./reconnect-delay.ts";

const region = { name: "us-east-1", platform: "aws", label: "us-east-1.aws" };
const never = new AbortController().signal;

interface Arrived {
  readonly header: Headers;
  readonly request: object;
}

function tokenOf(value: string): SecretSource {
  return createSecretSource(
    { kind: "inline", secret: new Secret(value) },
    { readTextFile: () => assert.fail("there is no file"), nowMs: () => 0 },
  );
}

/** A control plane client whose server runs in this process, and every call that reached it. */
function connectTo(implementation: ClusterServiceParts, token: SecretSource = tokenOf("token-1")) {
  const clock = new FakeClock();
  const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: process.version });
  const link = { generation: 1 };
  const arrived: Arrived[] = [];
  const record: Interceptor = (next) => (call) => {
    if (!call.stream) arrived.push({ header: call.header, request: call.message });
    return next(call);
  };
  const routes = (router: ConnectRouter) => router.service(ClusterService, implementation);
  const plane = createControlPlane(
    { controller: "deployments", baseUrl: "https://in-memory", region, token },
    {
      clock,
      metrics,
      createLink: (interceptors) => ({
        transport: createRouterTransport(routes, {
          router: { interceptors: [record] },
          transport: { interceptors: [...interceptors] },
        }),
        get generation() {
          return link.generation;
        },
        close: async () => undefined,
      }),
    },
  );
  return { plane, clock, arrived, link, metrics };
}

async function failureOf(call: Promise<unknown>): Promise<ControlPlaneError> {
  const error = await call.then(
    () => assert.fail("the call succeeded"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ControlPlaneError, inspect(error));
  return error;
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

describe("every method of ClusterService, within the process", () => {
  testEveryCall(region, (_, server) => connectTo(server).plane);
});

test("a frozen report is sent unchanged", async () => {
  const { plane, arrived } = connectTo({ reportDeploymentStatus: () => ({}) });
  const report = Object.freeze({ change: { case: "delete" as const, value: { k8sName: "web" } } });
  await plane.report(kinds.deployment, report, never);
  assert.deepEqual(Object.keys(report), ["change"]);
  assert.equal(arrived.length, 1);
});

describe("the token", () => {
  test("is read from its file for each call, and read again when it is rejected", async () => {
    let file = "old-token";
    const token = createSecretSource(
      { kind: "file", path: "token", setting: "control.token" },
      { readTextFile: async () => file, nowMs: () => 0 },
    );
    const bearers: (string | null)[] = [];
    const { plane } = connectTo(
      {
        getDesiredDeploymentState(_, { requestHeader }) {
          bearers.push(requestHeader.get("authorization"));
          if (bearers.at(-1) !== "Bearer new-token") throw new ConnectError("no", Code.Unauthenticated);
          return {};
        },
      },
      token,
    );
    file = "new-token";
    await plane.get(kinds.deployment, { id: "d_1" }, never);
    file = "newer-token";
    // The clock of the source stands still, so only the rejection can make it read the file again.
    await plane.get(kinds.deployment, { id: "d_1" }, never);
    assert.deepEqual(bearers, ["Bearer new-token", "Bearer new-token"]);
    file = "old-token";
    const { plane: refused } = connectTo(
      { getDesiredDeploymentState: () => Promise.reject(new ConnectError("no", Code.Unauthenticated)) },
      token,
    );
    await failureOf(refused.get(kinds.deployment, { id: "d_1" }, never));
    await failureOf(plane.get(kinds.deployment, { id: "d_1" }, never));
    assert.equal(bearers.at(-1), "Bearer old-token");
  });

  test("is read again when a stream rejects it", async () => {
    let refreshed = 0;
    const token = { current: async () => new Secret("t"), refresh: () => void refreshed++ };
    const { plane } = connectTo(
      {
        // biome-ignore lint/correctness/useYield: it is rejected before it sends anything.
        async *watchDeployments() {
          throw new ConnectError("no", Code.PermissionDenied);
        },
      },
      token,
    );
    assert.equal(
      (await failureOf(drain(plane.watch(kinds.deployment, 0n, never)))).code,
      "permission_denied",
    );
    assert.equal(refreshed, 1);
  });

  test("is never part of an error, whatever the server quotes", async () => {
    const { plane } = connectTo({
      heartbeat(_, { requestHeader }) {
        const bearer = requestHeader.get("authorization") ?? "";
        throw new ConnectError(`${bearer} and ${bearer.slice(7)}`, Code.Unauthenticated, {
          "x-echo": bearer,
        });
      },
    });
    const error = await failureOf(plane.heartbeat(never));
    assert.equal(error.code, "unauthenticated");
    assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /token-1/);
  });

  test("fails the call before anything is sent if it was never readable", async () => {
    const token = createSecretSource(
      { kind: "file", path: "/run/token", setting: "control.token" },
      { readTextFile: () => Promise.reject(new Error("ENOENT")), nowMs: () => 0 },
    );
    const { plane, arrived } = connectTo({ heartbeat: () => ({}) }, token);
    const error = await failureOf(plane.heartbeat(never));
    assert.equal(error.code, "unauthenticated");
    assert.match(error.message, /control\.token_file/);
    assert.equal(arrived.length, 0);
  });
});

describe("a unary call", () => {
  test("that hangs fails at its deadline, and is cancelled at the server", async () => {
    let cancelled = false;
    const { plane, clock } = connectTo({
      getDesiredDeploymentState: (_, { signal }) =>
        new Promise(() => signal.addEventListener("abort", () => (cancelled = true))),
    });
    const failure = failureOf(plane.get(kinds.deployment, { id: "d_1" }, never));
    await clock.advance(9_999);
    assert.equal(cancelled, false);
    await clock.advance(1);
    assert.equal((await failure).code, "deadline_exceeded");
    assert.equal(cancelled, true);
    assert.equal(clock.timerCount, 0);
  });

  test("that the caller aborts rejects with the caller's reason", async () => {
    const { plane, clock } = connectTo({ getDesiredDeploymentState: () => new Promise(() => undefined) });
    const stop = new AbortController();
    const call = plane.get(kinds.deployment, { id: "d_1" }, stop.signal);
    await clock.settle();
    stop.abort();
    await assert.rejects(call, (error) => error === stop.signal.reason && isAbort(error, stop.signal));
    assert.equal(clock.timerCount, 0);
  });

  test("ends with close(), and none begins afterwards", async () => {
    const { plane, clock } = connectTo({ heartbeat: () => new Promise(() => undefined) });
    const failure = failureOf(plane.heartbeat(never));
    await clock.settle();
    await plane.close();
    assert.equal((await failure).code, "canceled");
    assert.equal((await failureOf(plane.heartbeat(never))).code, "canceled");
    assert.equal((await failureOf(drain(plane.watch(kinds.sentinel, 0n, never)))).code, "canceled");
    assert.equal(clock.timerCount, 0);
  });
});

describe("a request for desired state", () => {
  test("returns the state, and not-found only if the server says so", async () => {
    const { plane } = connectTo({
      getDesiredDeploymentState({ deploymentId }) {
        if (deploymentId === "gone") throw new ConnectError("no such deployment", Code.NotFound);
        return { version: 2n ** 60n + 1n };
      },
    });
    const found = await plane.get(kinds.deployment, { id: "here" }, never);
    assert.equal(found.kind === "found" && found.state.version, 2n ** 60n + 1n);
    assert.deepEqual(await plane.get(kinds.deployment, { id: "gone" }, never), { kind: "not-found" });
    // This server does not have the method, which says nothing about the object.
    assert.equal((await failureOf(plane.get(kinds.sentinel, { id: "s_1" }, never))).code, "unimplemented");
  });
});

describe("an RPC that the server does not have", () => {
  test("is called once per connection, and does not fail the caller", async () => {
    let calls = 0;
    const refuse = () => {
      calls += 1;
      throw new ConnectError("unknown method", Code.Unimplemented);
    };
    const { plane, link } = connectTo({ heartbeat: refuse, reportAgentState: refuse });
    for (let beat = 0; beat < 3; beat++) await plane.heartbeat(never);
    assert.equal(calls, 1);
    for (let report = 0; report < 3; report++) await plane.reportAgentState({}, never);
    assert.equal(calls, 2);
    link.generation = 2;
    await plane.heartbeat(never);
    assert.equal(calls, 3);
  });

  test("fails every time if it is not an optional one", async () => {
    const { plane } = connectTo({});
    for (let tries = 0; tries < 2; tries++)
      assert.equal((await failureOf(plane.report(kinds.sentinel, {}, never))).code, "unimplemented");
  });
});

describe("a control plane without the streams", () => {
  /** What the next streams do; "silent" as in a region in which nothing changes. */
  function connectToChanging() {
    let answer: "unimplemented" | "unavailable" | "silent" | "end" = "unimplemented";
    const calls: string[] = [];
    const connected = connectTo({
      async *watchDeployments(_, { signal }) {
        if (answer === "unimplemented") throw new ConnectError("unknown method", Code.Unimplemented);
        if (answer === "unavailable") throw new ConnectError("restarting", Code.Unavailable);
        if (answer === "silent")
          await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      },
      getDesiredDeploymentState() {
        calls.push("get");
        return { version: 1n };
      },
      reportDeploymentStatus() {
        calls.push("report");
        return {};
      },
    });
    const { plane } = connected;
    return {
      ...connected,
      calls,
      watch(next: typeof answer, signal = never) {
        answer = next;
        return drain(plane.watch(kinds.deployment, 5n, signal));
      },
      async ask() {
        await plane.get(kinds.deployment, { id: "d_1" }, never);
        await plane.report(kinds.deployment, {}, never);
      },
    };
  }

  test("is asked nothing after another failure either, until a stream ends well", async () => {
    const { watch, ask, calls } = connectToChanging();
    assert.equal((await failureOf(watch("unimplemented"))).code, "unimplemented");
    assert.equal((await failureOf(watch("unavailable"))).code, "unavailable");
    assert.equal((await failureOf(ask())).code, "unimplemented");
    assert.deepEqual(calls, []);
    await watch("end");
    await ask();
    assert.deepEqual(calls, ["get", "report"]);
  });

  test("is asked again once a stream stays open, although it brings nothing", async () => {
    const { watch, ask, calls, clock } = connectToChanging();
    assert.equal((await failureOf(watch("unimplemented"))).code, "unimplemented");
    const stop = new AbortController();
    const stopped = assert.rejects(watch("silent", stop.signal), (error) => isAbort(error, stop.signal));
    await clock.advance(provenByPingsMs - 1);
    assert.equal((await failureOf(ask())).code, "unimplemented");
    await clock.advance(1);
    await ask();
    assert.deepEqual(calls, ["get", "report"]);
    stop.abort();
    await stopped;
    assert.equal(clock.timerCount, 0);
  });
});

describe("a stream", () => {
  test("is closed at the server however reading ends: break, throw or abort", async () => {
    let open = 0;
    const { plane, clock } = connectTo({
      async *watchDeployments(_, { signal }) {
        open += 1;
        signal.addEventListener("abort", () => void open--);
        for (let version = 1n; ; version++) {
          yield { version };
          await new Promise((resolve) => setImmediate(resolve));
        }
      },
    });
    const stop = new AbortController();
    const endings: (() => void)[] = [
      () => undefined,
      () => assert.fail("the reader failed"),
      () => stop.abort(),
    ];
    for (const end of endings) {
      const read = async () => {
        for await (const state of plane.watch(kinds.deployment, 0n, stop.signal)) {
          assert.equal(open, 1);
          if (state.version < 3n) continue;
          end();
          if (!stop.signal.aborted) break;
        }
      };
      await read().catch(() => undefined);
      await clock.settle();
      assert.equal(open, 0);
    }
  });

  test("passes on a state that is neither apply nor delete", async () => {
    const { plane } = connectTo({
      async *watchDeployments() {
        yield { version: 5n };
      },
    });
    const cases: unknown[] = [];
    for await (const { state, version } of plane.watch(kinds.deployment, 0n, never))
      cases.push([state.case, version]);
    assert.deepEqual(cases, [[undefined, 5n]]);
  });

  test("is not opened before it is read, nor after an abort", async () => {
    let begun = 0;
    const { plane, clock } = connectTo({
      async *watchDeployments() {
        begun += 1;
        yield {};
      },
    });
    plane.watch(kinds.deployment, 0n, never);
    await assert.rejects(drain(plane.watch(kinds.deployment, 0n, AbortSignal.abort())));
    await clock.settle();
    assert.equal(begun, 0);
  });
});

test("calls are counted by method and result; not_found counts as a success", async () => {
  const { plane, metrics } = connectTo({
    getDesiredDeploymentState: () => Promise.reject(new ConnectError("gone", Code.NotFound)),
    heartbeat: () => Promise.reject(new ConnectError("down", Code.Unavailable)),
  });
  await plane.get(kinds.deployment, { id: "d_1" }, never);
  await failureOf(plane.heartbeat(never));
  const text = await metrics.render();
  const name = "unkey_krane_controlplane_rpc_requests_total";
  assert.match(text, new RegExp(`${name}{.*method="GetDesiredDeploymentState",result="success"} 1`));
  assert.match(text, new RegExp(`${name}{.*method="Heartbeat",result="error"} 1`));
  assert.match(text, /rpc_duration_seconds_count{.*method="Heartbeat"} 1/);
});
