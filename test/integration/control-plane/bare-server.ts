// Control planes that are as bare as can be: an HTTP/2 server that answers as a test
// says, through the RPC library or frame by frame, and that knows what is connected.
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  createSecureServer,
  createServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { inspect } from "node:util";
import type { Interceptor, ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { Secret } from "../../../src/config/secret.ts";
import type { SecretSource } from "../../../src/config/secret-source.ts";
import { type ControlPlane, createControlPlane } from "../../../src/control-plane/connection.ts";
import { ControlPlaneError } from "../../../src/control-plane/error.ts";
import type { ConnectionLimits } from "../../../src/control-plane/transport.ts";
import { ClusterService } from "../../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { FakeClock } from "../../support/fake-clock.ts";

export const never = new AbortController().signal;

export interface ServerOptions {
  readonly host?: string;
  readonly tls?: { readonly cert: string; readonly key: string };
  /** How much a client may send before it is told that it arrived. */
  readonly windowBytes?: number;
}

export interface BareServer {
  readonly url: string;
  readonly port: number;
  /** The connections that are open now. */
  readonly sessions: ReadonlySet<ServerHttp2Session>;
  /** How many connections there ever were. */
  readonly accepted: number;
  stop(): Promise<void>;
}

type Handler = (request: Http2ServerRequest, response: Http2ServerResponse) => void;

/** A server of ClusterService that has the methods given. */
export function serveRpc(
  t: TestContext,
  implementation: Partial<ServiceImpl<typeof ClusterService>>,
  options: ServerOptions = {},
): Promise<BareServer> {
  const routes = connectNodeAdapter({ routes: (router) => router.service(ClusterService, implementation) });
  return serve(t, routes, undefined, options);
}

/** A server that lets a test write every frame of an answer by hand. */
export function serveFrames(
  t: TestContext,
  answer: (stream: ServerHttp2Stream) => void,
  options: ServerOptions = {},
): Promise<BareServer> {
  return serve(t, undefined, answer, options);
}

async function serve(
  t: TestContext,
  handler: Handler | undefined,
  answer: ((stream: ServerHttp2Stream) => void) | undefined,
  { tls, host = "127.0.0.1", windowBytes = 65_535 }: ServerOptions,
): Promise<BareServer> {
  const settings = { initialWindowSize: windowBytes };
  const server =
    tls === undefined
      ? createServer({ settings }, handler)
      : createSecureServer({ settings, ...tls }, handler);
  const sessions = new Set<ServerHttp2Session>();
  let accepted = 0;
  server.on("session", (session) => {
    accepted += 1;
    sessions.add(session);
    session.setLocalWindowSize(windowBytes);
    session.on("error", () => undefined);
    session.on("close", () => sessions.delete(session));
  });
  if (answer !== undefined)
    server.on("stream", (stream) => {
      stream.on("error", () => undefined);
      // A request that nobody reads would hold back the end of its stream.
      stream.resume();
      answer(stream);
    });
  server.on("sessionError", () => undefined);
  server.listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    for (const session of sessions) session.destroy();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  t.after(stop);
  return {
    url: `${tls === undefined ? "http" : "https"}://${host}:${port}`,
    port,
    sessions,
    get accepted() {
      return accepted;
    },
    stop,
  };
}

export interface Client {
  readonly plane: ControlPlane;
  readonly clock: FakeClock;
}

export interface ClientOptions {
  readonly ca?: string;
  readonly limits?: Partial<ConnectionLimits>;
  readonly interceptors?: readonly Interceptor[];
}

export const clientRegion = { name: "eu", platform: "test", label: "eu.test" };

/** A client whose time stands still unless the test moves it, and that leaves nothing behind. */
export function connectTo(
  t: TestContext,
  url: string,
  { interceptors, ...options }: ClientOptions = {},
): Client {
  const clock = new FakeClock();
  const token: SecretSource = { current: async () => new Secret("token-1"), refresh: () => undefined };
  const plane = createControlPlane(
    { controller: "deployments", baseUrl: url, region: clientRegion, token, ...options },
    { clock, interceptors },
  );
  t.after(async () => {
    await plane.close();
    assert.equal(clock.timerCount, 0, "timers are left after close()");
  });
  return { plane, clock };
}

export async function failureOf(call: Promise<unknown>): Promise<ControlPlaneError> {
  const error = await call.then(
    () => assert.fail("the call succeeded"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ControlPlaneError, inspect(error));
  return error;
}

/** Everything that a stream brings, and what it failed with. */
export async function readAll<S>(stream: AsyncIterable<S>) {
  const states: S[] = [];
  const read = async () => {
    for await (const state of stream) states.push(state);
  };
  const error = await read().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error === undefined || error instanceof ControlPlaneError, inspect(error));
  return { states, error };
}

/** A message or an end in the framing of Connect streams. */
export function envelope(flags: number, body: Uint8Array, length: number = body.byteLength): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, body]);
}

export const endOfStream: Buffer = envelope(2, Buffer.from("{}"));
