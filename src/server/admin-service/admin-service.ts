// Implements krane.admin.v1.AdminService over a store: maps each call to its function. Deletions are here too.
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { linkSignals } from "../../concurrency/abort.ts";
import { type Clock, sleep } from "../../concurrency/clock.ts";
import {
  type AdminService,
  type DeleteObjectRequest,
  ObjectView_Phase as Phase,
  type ReleaseDeletionRequest,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import type { KindName } from "../../kinds/kinds.ts";
import { StreamPlaces } from "../../services/stream-places.ts";
import type { Log } from "../../telemetry/log.ts";
import type { LogBroker } from "../logs/log-broker.ts";
import { ReaderAdmission, readerLimits } from "../logs/reader-admission.ts";
import { includesRegion } from "../oidc/access.ts";
import { stopping } from "../row-rules.ts";
import type { Author, Row, Store } from "../store.ts";
import { callerOf, checkRole } from "./admin-auth.ts";
import { applyApp, deleteApp, getApp, listApps, pauseApp, releaseApp } from "./apps.ts";
import { checked } from "./bad-request.ts";
import { type BrowserSessionsDeps, createSession, endSession, getSession } from "./browser-sessions.ts";
import {
  applyEnvironment,
  deleteEnvironment,
  listEnvironments,
  setSecret,
  unsetSecret,
} from "./environments.ts";
import { eventFeed, listEvents } from "./events.ts";
import { explainObject } from "./explanations.ts";
import { FleetFeed } from "./fleet-feed.ts";
import { grantHostname, listHostnames, revokeHostname } from "./hostnames.ts";
import { streamLogs } from "./logs.ts";
import { applyObject, assertOwn, conditionOf, notFound, scaleObject } from "./object-changes.ts";
import { agentOf, getObject, listAgents, listObjects, objectView } from "./object-reads.ts";
import { parseRef, parseRegion } from "./object-refs.ts";
import { joinSet, listSet } from "./sets.ts";
import { adoptObjects, listStrangers } from "./strangers.ts";

export interface AdminServiceDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends every stream when the server stops. */
  readonly stopping: AbortSignal;
  /** Without it, browsers cannot sign in. */
  readonly sessions?: BrowserSessionsDeps | undefined;
  /** Without it, there are no logs. */
  readonly logs?: LogBroker | undefined;
}

const watchersMax = 100;
/** Per token name: a program that keeps opening streams does not lock out the others. */
const watchersPerNameMax = 25;
/** One for each browser, whatever the number of its tabs. */
const browsersMax = 1_000;
const sessionCheckMs = 5_000;
/** An abandoned watch ends, and an active one continues where it was. */
const watchMaxMs = 15 * 60_000;

export function createAdminService(deps: AdminServiceDeps): ServiceImpl<typeof AdminService> {
  const { store, clock } = deps;
  const places = new StreamPlaces(
    { streamsMax: watchersMax, perHolderMax: watchersPerNameMax, lifetimeMs: watchMaxMs },
    deps,
  );
  const browsers = new StreamPlaces({ streamsMax: browsersMax, lifetimeMs: watchMaxMs }, deps);
  const fleet = new FleetFeed(deps);
  const readers = new ReaderAdmission(readerLimits, deps);
  const author = ({ values }: HandlerContext): Author => ({
    by: callerOf(values).name,
    atMs: clock.wallMs(),
  });
  return {
    listAgents: (request) => listAgents(store, request, clock.wallMs()),
    applyObject: (request, context) => applyObject(store, request, author(context)),
    scaleObject: (request, context) => scaleObject(store, request, author(context)),
    deleteObject: (request, context) => deleteObject(store, request, author(context)),
    getObject: (request) => getObject(store, request),
    listObjects: (request, { signal }) => listObjects(store, request, signal),
    listEvents: (request) => listEvents(store, request),
    watchEvents: (request, context) =>
      places.hold(
        whileAllowed(deps, context, (signal) => eventFeed(deps, request, signal)),
        context,
        callerOf(context.values).name,
      ),
    releaseDeletion: (request, context) => releaseDeletion(store, request, author(context)),
    listStrangers: (request) => listStrangers(store, request, clock.wallMs()),
    adoptObjects: (request, context) => adoptObjects(store, request, author(context)),
    applyEnvironment: (request, context) => applyEnvironment(store, request, author(context)),
    deleteEnvironment: (request, context) => deleteEnvironment(store, request, author(context)),
    listEnvironments: (request, { signal }) => listEnvironments(store, request, signal),
    setSecret: (request, context) => setSecret(store, request, author(context)),
    unsetSecret: (request, context) => unsetSecret(store, request, author(context)),
    applyApp: (request, context) => applyApp(store, request, author(context)),
    deleteApp: (request, context) => deleteApp(store, request, author(context)),
    getApp: (request) => getApp(store, request),
    listApps: (request, { signal }) => listApps(store, request, signal),
    releaseApp: (request, context) => releaseApp(store, request, author(context)),
    pauseApp: (request, context) => pauseApp(store, request, author(context)),
    joinSet: (request) => joinSet(store, request),
    listSet: (request) => listSet(store, request),
    grantHostname: (request, context) => grantHostname(store, request, author(context)),
    revokeHostname: (request) => revokeHostname(store, request),
    listHostnames: (request) => listHostnames(store, request),
    explainObject: (request) => explainObject(store, request, clock.wallMs()),
    planDocuments: async (request, context) =>
      (await import("./document-plans.ts")).planDocuments(store, request, author(context), (region) =>
        includesRegion(callerOf(context.values).access?.reads ?? "all", region),
      ),
    renderObject: async (request) => (await import("./renderings.ts")).renderObject(store, request),
    watchFleet: (_, context) =>
      browsers.hold(
        whileAllowed(deps, context, (signal) => fleet.watch(signal)),
        context,
      ),
    streamLogs: (request, context) => {
      const { logs: broker } = deps;
      if (broker === undefined) throw new ConnectError("this server reads no logs", Code.Unimplemented);
      const { name } = callerOf(context.values);
      return whileAllowed(deps, context, (signal) =>
        streamLogs({ ...deps, broker, admission: readers }, request, name, signal),
      );
    },
    createSession: (_, context) => createSession(deps.sessions, context),
    getSession: (_, context) => getSession(context),
    endSession: (request, context) => endSession(deps.sessions, request, context),
  };
}

/** The stream ends when the server stops, and soon after its session has ended or lost the right to it. */
async function* whileAllowed<T>(
  { clock, stopping: stop }: AdminServiceDeps,
  { signal, values, method }: HandlerContext,
  start: (signal: AbortSignal) => AsyncIterable<T>,
): AsyncGenerator<T> {
  const linked = linkSignals(signal, stop);
  const { renew } = callerOf(values);
  const check = async () => {
    while (renew !== undefined) {
      await sleep(clock, sessionCheckMs, linked.signal);
      const caller = await renew(linked.signal);
      if (caller === undefined)
        throw new ConnectError("the session has ended; sign in again", Code.Unauthenticated);
      checkRole(caller, method.localName);
    }
  };
  // It also ends with the stream, and if the session cannot be read: nobody may go on reading then.
  check().catch((error: unknown) => linked.abort(error));
  try {
    yield* start(linked.signal);
    linked.signal.throwIfAborted();
  } finally {
    linked.abort(new Error("the stream has ended"));
    linked.release();
  }
}

async function releaseDeletion(store: Store, request: ReleaseDeletionRequest, author: Author) {
  const { region, controller, key } = checked((refuse) => {
    if (request.controller === "") refuse("controller", "is required");
    if (request.key === "") refuse("key", "is required");
    return { ...request, region: parseRegion(request.region, refuse) };
  });
  if (await store.releaseDeletion(region, { controller, key }, author)) return {};
  const message = `the agent of region ${region} is not holding back a deletion of ${key} (${controller}), or does not list it (it lists at most 100)`;
  throw new ConnectError(message, Code.NotFound);
}

/**
 * The call that orders a deletion. Objects that belong to the deleted one, such as the policies of a deployment, are
 * deleted in the same change.
 */
export async function deleteObject(store: Store, request: DeleteObjectRequest, author: Author) {
  const ref = parseRef(request.ref);
  const { region, kind, id } = ref;
  const condition = conditionOf(request);
  // The version of a stopped object is that of its deletion, which a caller that repeats the call cannot know.
  const decide = (row: Row<KindName> | undefined) => {
    assertOwn(kind, row);
    return stopping(kind, row?.desired === "stopped" ? {} : condition)(row);
  };
  const { before, after } = await store.change(region, kind, id, decide, author, { withOwned: true });
  if (after === undefined) throw notFound(ref);
  const { version } = after;
  if (before?.desired !== "stopped") return { version };
  const [object, agent] = [await store.object(region, kind, id), await agentOf(store, region)];
  const gone = object === undefined || objectView(region, kind, object, agent?.known).phase === Phase.DELETED;
  return { version, gone };
}
