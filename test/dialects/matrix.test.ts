// The table in docs/protocol.md of which agent works with which control plane, made by making each call. Agents and control
// planes of the original are played from the tables of what they send and answer.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createClient,
  createRouterTransport,
  type Interceptor,
  type Transport,
} from "@connectrpc/connect";
import { PeerVersion } from "../../src/agent/peer-version.ts";
import { Secret } from "../../src/config/secret.ts";
import { ControlPlaneError } from "../../src/control-plane/error.ts";
import { ClusterService } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { ControllerStatusSchema, StreamStatus_State } from "../../src/gen/krane/v1/agent_pb.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import { deployment } from "../integration/server/served-control-plane.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { assertGoldenSection } from "../support/golden-section.ts";
import { connectToPlane } from "../support/plane-connection.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import { createTestPlane } from "../support/store-admin.ts";
import { OriginalAgent } from "./original-agent.ts";

const region = "us-east-1.aws";
const token = new Secret("kct_of_the_test");
const clock = new FakeClock();
const never = new AbortController().signal;

/** The calls of an agent to one control plane; a call that it never makes is missing. */
interface Calls {
  watch?(cursor: bigint, signal: AbortSignal): AsyncIterable<unknown>;
  get(id: string): Promise<unknown>;
  report(name: string): Promise<unknown>;
  heartbeat?(): Promise<unknown>;
  state?(): Promise<unknown>;
  reports?(names: readonly string[]): Promise<unknown>;
  digest?(): Promise<unknown>;
}

const unknownId = () => {
  throw new ConnectError("not found", Code.NotFound);
};

/** A control plane of the original: versions are 0 in answers, and a report on an unknown name is a bare error. */
function originalPlane(router: ConnectRouter): void {
  const state = { case: "apply" as const, value: deployment(1) };
  router.service(ClusterService, {
    async *watchDeployments({ versionLastSeen }, { signal }) {
      if (versionLastSeen < 1n) yield { state, version: 1n };
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
    getDesiredDeploymentState: ({ deploymentId }) =>
      deploymentId === "d_1" ? { state, version: 0n } : unknownId(),
    reportDeploymentStatus({ change }) {
      if (change.value?.k8sName !== "app-1") throw new ConnectError("no rows", Code.Unknown);
      return {};
    },
  });
}

/** One of a later version: a heartbeat that fits, no stream that fits, and every question is about nothing. */
function laterPlane(router: ConnectRouter): void {
  router.service(ClusterService, {
    heartbeat: () => ({}),
    getDesiredDeploymentState: unknownId,
    reportDeploymentStatus: () => ({}),
  });
}

const withHeaders = (headers: Readonly<Record<string, string>>): Interceptor => {
  return (next) => (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    return next(request);
  };
};

const leftAlone = new ControlPlaneError("unimplemented", "the control plane does not have it");

function kraneAgent(createTransport: (interceptors: readonly Interceptor[]) => Transport): Calls {
  let answered: unknown;
  const accepted = new Set<string>();
  // The connection hides which additions a control plane does not have.
  const watched: Interceptor = (next) => async (request) => {
    try {
      const response = await next(request);
      accepted.add(request.method.name);
      return response;
    } catch (error) {
      answered = error;
      throw error;
    }
  };
  const plane = connectToPlane(
    { createTransport: (given = []) => createTransport([...given, watched]) },
    { controller: "c", region, token },
    { clock },
  );
  const kind = kinds.deployment;
  const update = (k8sName: string) => ({ change: { case: "update" as const, value: { k8sName } } });
  let lastErrorCode = "";
  const stream = () => ({
    state: lastErrorCode === "" ? StreamStatus_State.OPEN : StreamStatus_State.BACKING_OFF,
    lastErrorCode,
  });
  const view = {
    controllerStatuses: () => [create(ControllerStatusSchema, { name: "c", stream: stream() })],
  };
  const version = new PeerVersion({ view, clock, log: createQuietLog() });
  return {
    async *watch(cursor, signal) {
      try {
        yield* plane.watch(kind, cursor, signal);
      } catch (error) {
        if (cursor === 0n && error instanceof ControlPlaneError) lastErrorCode = error.code;
        throw error;
      }
    },
    get: async (id) => {
      const response = await plane.get(kind, { id }, never);
      if (response.kind === "not-found") throw new ControlPlaneError("not_found", "unknown");
    },
    // The second one waits for others to share a call with.
    report: (name) => Promise.all([plane.report(kind, update(name), never), clock.advance(1_000)]),
    async heartbeat() {
      const waiting = new AbortController();
      const known = version.whenKnown(waiting.signal).then(
        () => true,
        () => false,
      );
      await clock.settle();
      waiting.abort();
      if (!(await known)) return "held back";
      answered = undefined;
      await plane.heartbeat(never);
      if (answered !== undefined) throw answered;
      return undefined;
    },
    state: async () => {
      const report = { state: { instanceId: "ins_1" } };
      const response = version.noteResponse(await plane.reportAgentState(report, never));
      if (response === undefined) throw leftAlone;
    },
    async reports(names) {
      const reports = names.map((name) => plane.report(kind, update(name), never));
      await Promise.all([...reports, clock.advance(1_000)]);
      if (!accepted.has("ReportDeploymentStatuses")) throw leftAlone;
    },
    async digest() {
      if ((await plane.digest(kind, new Uint8Array(32), never)) === undefined) throw leftAlone;
    },
  };
}

async function kranePlane() {
  const plane = createTestPlane({ tokens: [token] }, { clock, log: createQuietLog() });
  await plane.admin.registerRegion(region);
  await plane.admin.setDeployment(region, deployment(1));
  return plane;
}

const authorization = `Bearer ${token.reveal()}`;

/** As it is after a restore: the agent's cursor is above the counter. */
const aheadCursor = 9n;

async function outcomeOf(call: (() => Promise<unknown>) | undefined): Promise<string> {
  if (call === undefined) return "never called";
  try {
    const answer = await call();
    return answer === "held back" ? answer : "yes";
  } catch (error) {
    if (error instanceof ControlPlaneError) return `\`${error.code}\``;
    const word = Code[ConnectError.from(error).code] ?? "";
    return `\`${word.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase()}\``;
  }
}

async function streamOutcome(open: Calls["watch"], cursor: bigint): Promise<string> {
  if (open === undefined) return "never called";
  const ending = new AbortController();
  const stream = open(cursor, ending.signal)[Symbol.asyncIterator]();
  const first = outcomeOf(() => stream.next());
  const outcome = await Promise.race([first, clock.settle().then(() => "silent")]);
  ending.abort();
  await first.catch(() => undefined);
  return outcome;
}

async function columnOf(calls: Calls): Promise<readonly string[]> {
  // In this order: what the stream shows decides about the calls after it.
  const cells = [await streamOutcome(calls.watch, 0n), await streamOutcome(calls.watch, aheadCursor)];
  cells.push(await outcomeOf(() => calls.get("d_1")), await outcomeOf(() => calls.get("d_9")));
  cells.push(await outcomeOf(() => calls.report("app-1")), await outcomeOf(() => calls.report("app-9")));
  const several = calls.reports && (() => calls.reports?.(["app-1", "app-1", "app-1"]) ?? Promise.resolve());
  cells.push(await outcomeOf(several), await outcomeOf(calls.digest));
  cells.push(await outcomeOf(calls.state), await outcomeOf(calls.heartbeat));
  return cells;
}

const capabilities = [
  "desired state by stream",
  "a stream with a cursor above the counter",
  "question about an object",
  "question about an unknown object",
  "status report",
  "status report on an unknown object",
  "several status reports in one call",
  "comparison by digest",
  "state of the agent",
  "heartbeat",
];

test("the table of agents and control planes is what the calls show", async () => {
  const own = await kranePlane();
  const asOriginal = own.createTransport([withHeaders({ authorization, "x-krane-region": region })]);
  const original = new OriginalAgent(region, asOriginal);
  const bare = createClient(ClusterService, asOriginal);
  // Later versions send no region header, and the id in the second field, behind the key of the region.
  const later = createClient(ClusterService, own.createTransport([withHeaders({ authorization })]));
  const columns: Readonly<Record<string, Calls>> = {
    "original's agent, krane's server": {
      watch: (versionLastSeen, signal) => bare.watchDeployments({ region, versionLastSeen }, { signal }),
      get: (id) => original.ask("deployment", id),
      report: (name) => original.reportPods(name, 1),
    },
    "krane's agent, krane's server": kraneAgent((given) => own.createTransport(given)),
    "krane's agent, original's control plane": kraneAgent((interceptors) =>
      createRouterTransport(originalPlane, { transport: { interceptors: [...interceptors] } }),
    ),
    "krane's agent, a later control plane": kraneAgent((interceptors) =>
      createRouterTransport(laterPlane, { transport: { interceptors: [...interceptors] } }),
    ),
    "a later agent, krane's server": {
      get: () => later.getDesiredDeploymentState({ deploymentId: "\n\taws" }),
      report: (k8sName) => later.reportDeploymentStatus({ change: { case: "update", value: { k8sName } } }),
      heartbeat: () => later.heartbeat({ region: { name: "us-east-1", platform: "aws" } }),
    },
  };
  const cells: (readonly string[])[] = [];
  for (const calls of Object.values(columns)) cells.push(await columnOf(calls));
  const rows = capabilities.map((what, row) => [what, ...cells.map((column) => column[row] ?? "")]);
  const titles = ["", ...Object.keys(columns)];
  const line = (texts: readonly string[]) => `| ${texts.join(" | ")} |`;
  const table = [line(titles), line(titles.map(() => "---")), ...rows.map(line)].join("\n");
  assertGoldenSection("docs/protocol.md", "peers", table);
  assert.equal(clock.timerCount, 0);
});
