// The reference control plane as its clients reach it, by every road that there is:
// the same tests hold on all of them.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { Secret } from "../../../src/config/secret.ts";
import { ClusterService } from "../../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { RegionKeySchema } from "../../../src/gen/ctrl/v1/region_pb.ts";
import type { ApplyInit } from "../../../src/kinds/kinds.ts";
import {
  createControlPlaneServer,
  type RunningControlPlane,
} from "../../../src/server/control-plane-server.ts";
import { createQuietLog } from "../../support/quiet-log.ts";
import { createTestPlane, type TestPlane } from "../../support/store-admin.ts";

export const roads = ["in process", "h2c", "HTTP/1.1", "gRPC", "gRPC-Web"] as const;
export type Road = (typeof roads)[number];
export type ClusterClient = Client<typeof ClusterService>;

export const token = "kct_of_the_test";
export const aws = "us-east-1.aws";
export const dev = "local.dev";

export interface ServedControlPlane extends TestPlane {
  /** Undefined in process. */
  readonly running: RunningControlPlane | undefined;
  /**
   * A client on a connection of its own. Headers that are not given are those of an agent of `us-east-1.aws`. Its requests
   * carry the RegionKey that an agent of krane sends; those of the original are in test/dialects.
   */
  connect(headers?: Readonly<Record<string, string>>): ClusterClient;
}

/** Knows the regions `us-east-1.aws` and `local.dev`. */
export async function serveControlPlane(
  t: TestContext,
  road: Road,
  interceptors: readonly Interceptor[] = [],
): Promise<ServedControlPlane> {
  const deps = { clock: createSystemClock(), log: createQuietLog() };
  const controlPlane = createTestPlane({ tokens: [new Secret(token)], interceptors }, deps);
  await controlPlane.admin.registerRegion(aws);
  await controlPlane.admin.registerRegion(dev);
  const running = road === "in process" ? undefined : await listen(t, controlPlane, deps);
  const connect = (headers: Readonly<Record<string, string>> = {}) => {
    const sent = { authorization: `Bearer ${token}`, "x-krane-region": aws, ...headers };
    const send: Interceptor = (next) => (request) => {
      for (const [name, value] of Object.entries(sent)) if (value !== "") request.header.set(name, value);
      return next(withRegionKey(request));
    };
    const transport = running
      ? openTransport(t, road, running.url, send)
      : controlPlane.createTransport([send]);
    return createClient(ClusterService, transport);
  };
  return { ...controlPlane, running, connect };
}

type SentRequest = Parameters<Parameters<Interceptor>[0]>[0];

/** The region itself is in the header. */
function withRegionKey(request: SentRequest): SentRequest {
  const hasKey = request.method.input.fields.some(({ localName }) => localName === "regionKey");
  if (!hasKey) return request;
  const add = <M extends object>(message: M): M => ({ regionKey: create(RegionKeySchema), ...message });
  if (!request.stream) return { ...request, message: add(request.message) };
  const { message } = request;
  const added = (async function* () {
    for await (const each of message) yield add(each);
  })();
  return { ...request, message: added };
}

async function listen(
  t: TestContext,
  controlPlane: TestPlane,
  deps: Pick<Parameters<typeof createControlPlaneServer>[2], "clock" | "log">,
): Promise<RunningControlPlane> {
  const readTextFile = () => assert.fail("no file is needed without TLS");
  const server = createControlPlaneServer(controlPlane, { port: 0 }, { ...deps, readTextFile });
  const running = await server.start(new AbortController().signal);
  t.after(() => running.close(AbortSignal.abort()));
  return running;
}

function openTransport(t: TestContext, road: Road, baseUrl: string, send: Interceptor): Transport {
  const interceptors = [send];
  if (road === "HTTP/1.1") return createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors });
  if (road === "gRPC-Web") return createGrpcWebTransport({ baseUrl, httpVersion: "1.1", interceptors });
  const sessionManager = new Http2SessionManager(baseUrl);
  t.after(() => sessionManager.abort());
  if (road === "gRPC") return createGrpcTransport({ baseUrl, interceptors, sessionManager });
  return createConnectTransport({ baseUrl, httpVersion: "2", interceptors, sessionManager });
}

/** Reads a stream as far as it is asked to, and cancels it at the end of the test. */
export function readStream<S>(
  t: TestContext,
  open: (options: { signal: AbortSignal }) => AsyncIterable<S>,
): { take(count: number): Promise<S[]>; cancel(): void; ending(): Promise<unknown> } {
  const cancelled = new AbortController();
  t.after(() => cancelled.abort());
  const iterator = open({ signal: cancelled.signal })[Symbol.asyncIterator]();
  const next = async () => {
    const { done, value } = await iterator.next();
    if (done) assert.fail("the stream ended");
    return value;
  };
  return {
    async take(count) {
      const states: S[] = [];
      while (states.length < count) states.push(await next());
      return states;
    },
    cancel: () => cancelled.abort(),
    ending: () =>
      next().then(
        () => assert.fail("the stream brought a message"),
        (error: unknown) => error,
      ),
  };
}

export function deployment(number: number, more: ApplyInit<"deployment"> = {}): ApplyInit<"deployment"> {
  return {
    deploymentId: `d_${number}`,
    k8sName: `app-${number}`,
    k8sNamespace: "ws-one",
    image: "registry.example/app:1",
    replicas: 1,
    cpuMillicores: 250n,
    memoryMib: 256n,
    ...more,
  };
}

export function sentinel(number: number): ApplyInit<"sentinel"> {
  return {
    sentinelId: `s_${number}`,
    k8sName: `gate-${number}`,
    image: "registry.example/gate:1",
    replicas: 1,
  };
}

export function policy(number: number): ApplyInit<"policy"> {
  const object = { apiVersion: "cilium.io/v2", kind: "CiliumNetworkPolicy" };
  return {
    ciliumNetworkPolicyId: `p_${number}`,
    k8sName: `rule-${number}`,
    k8sNamespace: "ws-one",
    policy: new TextEncoder().encode(JSON.stringify(object)),
  };
}
