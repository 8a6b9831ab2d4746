// Reflectors on the embedded API server over HTTP, behind a network that fails: whatever happens to
// watches and lists, the caches come to equal the server, what their listeners were told adds up,
// and no connection and no timer outlives the end.
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { setImmediate as turnOfTheLoop } from "node:timers/promises";
import {
  type ApiServer,
  administrator,
  createApiServer,
  type ServerRequest,
  startHttpServer,
  type WholeResponse,
} from "@krane/kube-apiserver";
import { type Clock, createSystemClock } from "../../../src/concurrency/clock.ts";
import { createSeededRandom } from "../../../src/concurrency/random.ts";
import { createInProcessTransport } from "../../../src/dev/in-process-transport.ts";
import type { KubeApi } from "../../../src/kube/api.ts";
import { createKubeApi } from "../../../src/kube/client.ts";
import { fixedCredential } from "../../../src/kube/credentials.ts";
import type { KubeApiError } from "../../../src/kube/errors.ts";
import { createHttpTransport } from "../../../src/kube/http-transport.ts";
import { listAll } from "../../../src/kube/list-all.ts";
import { type CacheChange, ObjectCache } from "../../../src/kube/object-cache.ts";
import { Reflector, type ReflectorDeps, type ReflectorOptions } from "../../../src/kube/reflector.ts";
import { configMaps, secrets } from "../../../src/kube/resources.ts";
import type { KubeObject, ResourceKind } from "../../../src/kube/types.ts";
import { eventually } from "../../support/eventually.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";

const namespace = "default";
const never = new AbortController().signal;
const token = "of-the-faults";
const userAgent = "krane-behind-faults";
// Jitter at its least: the shortest pauses that the real back-off makes.
const leastJitter = { next: () => 0 };

const isWatch = ({ query }: ServerRequest) => query?.["watch"] === "true";
const isList = (request: ServerRequest) => !isWatch(request);
const streamsWhole = ({ query }: ServerRequest) => query?.["sendInitialEvents"] === "true";
const resumes = (request: ServerRequest) => isWatch(request) && !streamsWhole(request);

function refusal(code: number, reason: string): WholeResponse {
  const body = {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: "a fault",
    reason,
    code,
  };
  return { kind: "whole", status: code, body };
}

function countingClock(): { readonly clock: Clock; readonly waiting: () => number } {
  const clock = createSystemClock();
  const timers = new Set<object>();
  const setTimer: Clock["setTimer"] = (delayMs, callback) => {
    const timer = clock.setTimer(delayMs, () => {
      timers.delete(timer);
      callback();
    });
    timers.add(timer);
    return {
      cancel() {
        timers.delete(timer);
        timer.cancel();
      },
    };
  };
  return { clock: { ...clock, setTimer }, waiting: () => timers.size };
}

interface Silences {
  readonly silenceMs?: number;
  readonly watchSilenceMs?: number;
}

function versionOf({ metadata }: KubeObject): string {
  return `${metadata?.uid}@${metadata?.resourceVersion}`;
}

/** What a listener makes of the changes it hears, and what was wrong with them. */
class Listener {
  readonly known = new Map<string, string>();
  readonly wrongs: string[] = [];

  hear(change: CacheChange<string>): void {
    const before = change.kind === "added" ? undefined : change.before.value;
    const follows = this.known.get(change.key) === before;
    const repeats = change.kind === "changed" && change.after.value === before;
    const swaps = change.kind === "changed" && change.after.uid !== change.before.uid;
    if (!follows || repeats || swaps) this.wrongs.push(`${change.kind} ${change.key} after ${before}`);
    if (change.kind === "deleted") this.known.delete(change.key);
    else this.known.set(change.key, change.after.value);
  }
}

function follow<T extends KubeObject>(
  kind: ResourceKind<T>,
  deps: Pick<ReflectorDeps, "api" | "clock"> &
    Pick<ReflectorOptions<T, string, never>, "silenceMs" | "onError">,
  signal: AbortSignal,
) {
  const cache = new ObjectCache<T, string>({ project: versionOf });
  const listener = new Listener();
  cache.subscribe((change) => listener.hear(change));
  const { api, clock, ...options } = deps;
  const reflector = new Reflector(
    { kind, selection: { namespace }, cache, ...options },
    { api, clock, random: leastJitter },
  );
  const done = reflector.run(signal);
  const equals = async (truth: KubeApi) => {
    const keep = (object: T) => [`${namespace}/${object.metadata?.name}`, versionOf(object)] as const;
    const { items } = await listAll(truth, kind, { namespace }, keep, never);
    const expected = Object.fromEntries([...items].sort());
    const cached = [...cache.all()].map((entry) => [entry.key, entry.value] as const);
    assert.deepEqual(Object.fromEntries(cached.sort()), expected);
    assert.deepEqual(Object.fromEntries([...listener.known].sort()), expected);
  };
  return { cache, listener, done, equals };
}

type Served = Awaited<ReturnType<typeof serve>>;

/** The server with some objects, the network before it, and ways to change and to break both. */
async function serve(t: TestContext) {
  const { clock, waiting } = countingClock();
  const staticTokens = new Map([[token, administrator]]);
  const server = createApiServer({ clock, random: createSeededRandom(1) }, { staticTokens });
  let http = await startHttpServer(server);
  const port = Number(new URL(http.url).port);
  const proxy = await startFaultProxy(t, port);
  // Also after a failure, which would else keep the process from ending.
  t.after(async () => {
    await http.stop();
    server.stop();
  });
  const truth = createKubeApi(createInProcessTransport(server, { userAgent: "kubectl" }));
  const write = async (name: string, value: string) => {
    // Some characters of several bytes, for whoever splits them.
    const metadata = { namespace, name, annotations: { note: "größer 日本 🦩" } };
    const manifest = { metadata, data: { value: Buffer.from(value).toString("base64") } };
    const options = { fieldManager: "test", force: true };
    const configMap = await truth.apply(configMaps, manifest, options, never);
    const secret = await truth.apply(secrets, manifest, options, never);
    return { configMap: configMap.object, secret: secret.object };
  };
  const remove = async (name: string) => {
    await truth.delete(configMaps, { namespace, name }, {}, never);
    await truth.delete(secrets, { namespace, name }, {}, never);
  };
  for (let count = 0; count < 10; count++) await write(`c${count}`, "first");
  return {
    server,
    proxy,
    truth,
    write,
    remove,
    answer: (matches: Matches, outcome: Outcome, most?: number) => answer(server, matches, outcome, most),
    watched: () => eventually("both are watched", () => assert.equal(server.faults.openWatches, 2)),
    async restart() {
      await http.stop();
      http = await startHttpServer(server, { port });
    },
    async end() {
      await eventually("no connection is left", () => assert.equal(proxy.connectionCount(), 0));
      await eventually("no watch is left", () => assert.equal(server.faults.openWatches, 0));
      await http.stop();
      server.stop();
      assert.equal(waiting(), 0, "timers of the server");
    },
  };
}

type Matches = (request: ServerRequest) => boolean;
type Outcome = (request: ServerRequest) => WholeResponse | "hang";

/** Answers requests of the reflectors in place of the server, the first `most` of each kind. */
function answer(server: ApiServer, matches: Matches, outcome: Outcome, most = Number.POSITIVE_INFINITY) {
  const counts = new Map<string, number>();
  const restore = server.faults.intercept((request) => {
    const count = counts.get(request.path) ?? 0;
    if (request.userAgent !== userAgent || !matches(request) || count >= most) return undefined;
    counts.set(request.path, count + 1);
    return outcome(request);
  });
  const bit = (times: number) =>
    eventually(`both kinds met the fault ${times} times`, () => {
      assert.equal([...counts.values()].filter((count) => count >= times).length, 2);
    });
  return { restore, bit };
}

interface Fault {
  readonly silences?: Silences;
  /** Before the reflectors start. */
  readonly prepare?: (served: Served) => void;
  /** Begins the fault; answers how it ends, which is called after the objects have changed. */
  readonly inflict: (served: Served) => Heal | Promise<Heal>;
  /** What at least one reflector must have been told of, or the fault was none. */
  readonly shows?: (error: KubeApiError) => boolean;
}

type Heal = () => void | Promise<void>;

function startReflectors(
  t: TestContext,
  port: number,
  { silenceMs = 90_000, watchSilenceMs = 90_000 }: Silences,
) {
  const { clock, waiting } = countingClock();
  const credentials = fixedCredential({ authorization: `Bearer ${token}` });
  const endpoint = { server: `http://127.0.0.1:${port}`, credentials };
  const transport = createHttpTransport({ endpoint, connections: 4, userAgent, watchSilenceMs }, { clock });
  const stop = new AbortController();
  t.after(() => stop.abort());
  const errors: KubeApiError[] = [];
  const onError = (error: KubeApiError) => void errors.push(error);
  const deps = { api: createKubeApi(transport), clock, silenceMs, onError };
  const followers = [follow(configMaps, deps, stop.signal), follow(secrets, deps, stop.signal)];
  return {
    errors,
    synced: () => Promise.all(followers.map(({ cache }) => cache.whenSynced(AbortSignal.timeout(30_000)))),
    equal: (truth: KubeApi) =>
      eventually("the caches equal the server", async () => {
        for (const follower of followers) await follower.equals(truth);
      }),
    async end() {
      stop.abort();
      await Promise.all(followers.map(({ done }) => done));
      await transport.close();
      assert.equal(waiting(), 0, "timers of the client");
      for (const { listener } of followers) assert.deepEqual(listener.wrongs, []);
    },
  };
}

/** A server without WatchList, so that whole states come as pages. */
function withoutWatchList({ answer }: Served): void {
  answer(streamsWhole, () => refusal(400, "BadRequest"));
}

/** Watches resume from a version that the server has forgotten, and the whole state is needed again. */
function expire({ server, proxy }: Served): Heal {
  proxy.refuse(true);
  proxy.cut();
  return () => {
    server.faults.compact();
    proxy.refuse(false);
  };
}

function failingWatches(
  outcome: (served: Served) => Outcome,
  times: number,
  most?: number,
): Fault["inflict"] {
  return (served) => {
    const fault = served.answer(isWatch, outcome(served), most);
    served.server.faults.closeWatches();
    return async () => {
      await fault.bit(times);
      fault.restore();
    };
  };
}

function failingLists(outcome: (served: Served) => Outcome): Fault["inflict"] {
  return (served) => {
    const heal = expire(served);
    const fault = served.answer(isList, outcome(served));
    return async () => {
      await heal();
      await fault.bit(2);
      await served.write("c8", "while lists fail");
      fault.restore();
    };
  };
}

/** Watches that resume get one whole event, and half of another. */
async function truncatedWatches({ server, answer, write }: Served): Promise<Heal> {
  const cutOff = new Map<string, WholeResponse>();
  const fault = answer(isWatch, ({ path }) => cutOff.get(path) ?? refusal(500, "InternalError"));
  server.faults.closeWatches();
  const { configMap, secret } = await write("c7", "whole");
  const half = `{"type":"MODIFIED","object":{"metadata":{"name":"c9","resour`;
  for (const [plural, object] of Object.entries({ configmaps: configMap, secrets: secret })) {
    const body = `${JSON.stringify({ type: "MODIFIED", object })}\n${half}`;
    cutOff.set(`/api/v1/namespaces/${namespace}/${plural}`, { kind: "whole", status: 200, body });
  }
  return async () => {
    await fault.bit(2);
    fault.restore();
  };
}

const answers = (code: number, reason: string) => () => () => refusal(code, reason);
const resets =
  ({ proxy }: Served): Outcome =>
  () => {
    proxy.cut();
    return "hang";
  };
const hasStatus = (status: number) => (error: KubeApiError) => error.status === status;
const hasCode = (code: string) => (error: KubeApiError) => error.code === code;

const faults: Readonly<Record<string, Fault>> = {
  "the server closes the watches": {
    inflict: ({ server }) => {
      server.faults.closeWatches();
      return () => undefined;
    },
  },
  "watches are refused with 410": {
    inflict: ({ server, answer }) => {
      const fault = answer(resumes, () => refusal(410, "Expired"));
      server.faults.closeWatches();
      // It stays, so that only another whole state helps.
      return () => fault.bit(1);
    },
    shows: hasStatus(410),
  },
  "watches end with a 410 event": { inflict: expire, shows: hasStatus(410) },
  "the first five watches fail with 500": {
    inflict: failingWatches(answers(500, "InternalError"), 5, 5),
    shows: hasStatus(500),
  },
  "watches are refused with 403": {
    inflict: failingWatches(answers(403, "Forbidden"), 2),
    shows: hasStatus(403),
  },
  "watches are reset": { inflict: failingWatches(resets, 2), shows: hasCode("network") },
  "watches fall silent": {
    silences: { silenceMs: 1_000 },
    inflict: ({ proxy }) => {
      proxy.stall();
      return () => undefined;
    },
    shows: hasCode("timeout"),
  },
  "connections fall silent": {
    silences: { watchSilenceMs: 1_000 },
    inflict: ({ proxy }) => {
      proxy.stall();
      return () => undefined;
    },
    shows: hasCode("timeout"),
  },
  "bytes come one by one": {
    inflict: ({ proxy }) => {
      proxy.chop(1);
      proxy.cut();
      return () => undefined;
    },
  },
  "watches are cut in the middle of a line": {
    inflict: truncatedWatches,
    shows: (error) => error.message.endsWith("cut inside a line"),
  },
  "connections are cut under large objects": {
    inflict: async ({ proxy, watched, write }) => {
      for (let count = 0; count < 3; count++) {
        await watched();
        await write("large", `${count}`.repeat(660 * 1024));
        await turnOfTheLoop();
        proxy.cut();
      }
      return () => undefined;
    },
    shows: hasCode("network"),
  },
  "lists fail with 500": {
    prepare: withoutWatchList,
    inflict: failingLists(answers(500, "InternalError")),
    shows: hasStatus(500),
  },
  "lists are refused with 403": {
    prepare: withoutWatchList,
    inflict: failingLists(answers(403, "Forbidden")),
    shows: hasStatus(403),
  },
  "lists are reset": {
    prepare: withoutWatchList,
    inflict: failingLists(resets),
    shows: (error) => error.code === "network" && error.message.startsWith("GET"),
  },
  "the server restarts three times": {
    inflict: async ({ restart, watched, write, remove }) => {
      for (let count = 0; count < 3; count++) {
        await watched();
        const restarted = restart();
        await write("c3", `restart ${count}`);
        await restarted;
        await remove("c4");
        await write("c4", `restart ${count}`);
      }
      return () => undefined;
    },
  },
};

// They mostly wait for back-offs, each in a world of its own.
describe("the caches equal the server after a fault", { concurrency: true }, () => {
  for (const [name, fault] of Object.entries(faults)) {
    test(name, async (t) => {
      const served = await serve(t);
      fault.prepare?.(served);
      const reflectors = startReflectors(t, served.proxy.port, fault.silences ?? {});
      await reflectors.synced();
      await served.watched();
      // A watch that has brought something may end as soon as it likes without being a failure.
      await served.write("c5", "before the fault");
      await reflectors.equal(served.truth);

      const heal = await fault.inflict(served);
      await served.write("c1", "changed");
      await served.remove("c2");
      await served.remove("c0");
      await served.write("c0", "another of that name");
      await served.write("new", "new");
      await served.write("passing", "nobody need see this");
      await served.remove("passing");
      await heal();
      await reflectors.equal(served.truth);
      const { shows } = fault;
      if (shows !== undefined) assert.ok(reflectors.errors.some(shows), "the fault was not met");

      await served.write("c1", "after the fault");
      await served.remove("new");
      await reflectors.equal(served.truth);
      await reflectors.end();
      await served.end();
    });
  }
});
