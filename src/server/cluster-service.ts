// Implements ctrl.v1.ClusterService over a store. Streams and Get responses build their
// message from the same row with the same function: an agent that got "apply" from one and
// "delete" from the other would do both, once a minute.
import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import type { ClusterService, ReportAgentStateRequest } from "../gen/ctrl/v1/cluster_service_pb.ts";
import type {
  GetDesiredDigestRequest,
  GetDesiredDigestResponseSchema,
  ListDesiredContentsRequest,
  ListDesiredContentsResponseSchema,
} from "../gen/ctrl/v1/digest_pb.ts";
import type { LogRequest } from "../gen/ctrl/v1/logs_pb.ts";
import type { RegionKey } from "../gen/ctrl/v1/region_pb.ts";
import {
  type AnyKind,
  allKinds,
  type KindName,
  kindNames,
  type ReportOf,
  type StateMessage,
} from "../kinds/kinds.ts";
import { bucketCount, decodeSums, encodeSums } from "../model/digest.ts";
import { assertMaySpeakFor } from "./agent-auth.ts";
import { refOf } from "./allowed-adoptions.ts";
import { type ChangeSource, desiredFeed, type Receive } from "./desired-feed.ts";
import { clearForeignVersions } from "./known-state.ts";
import type { LogBroker } from "./logs/log-broker.ts";
import { limitedState, sentLimit, streamLimit } from "./message-limit.ts";
import { isOriginalAgent, OriginalAgents, unknownToOriginal } from "./original-agents.ts";
import { limitReport } from "./report-limits.ts";
import { readReportRank } from "./report-rank.ts";
import { unknownRegion } from "./row-rules.ts";
import { nameIncarnation, receiveClient, type ServedState } from "./served-incarnation.ts";
import { limitedStandby } from "./standbys.ts";
import { type HeldDeletion, type Store, type StrangerRef, stateOf } from "./store.ts";
import type { StreamGate } from "./stream-gate.ts";

export interface ClusterServiceDeps {
  readonly store: Store;
  /** What streams read from: the store, or something in front of it. */
  readonly changes: ChangeSource;
  readonly streams: StreamGate;
  readonly clock: Clock;
  /** Passes the logs of pods to those who read them. Without it, agents are told that there is no such call. */
  readonly logs?: LogBroker | undefined;
}

interface HandlerDeps extends ClusterServiceDeps {
  readonly originals: OriginalAgents;
}

export function createClusterService(serviceDeps: ClusterServiceDeps): ServiceImpl<typeof ClusterService> {
  const deps: HandlerDeps = { ...serviceDeps, originals: new OriginalAgents(serviceDeps) };
  const { store, clock } = deps;
  const ofAgents: Pick<
    ServiceImpl<typeof ClusterService>,
    "heartbeat" | "reportAgentState" | "reportStandby"
  > = {
    async heartbeat(request, context) {
      const region = regionOf(context, request.region);
      refuseLaterVersions(context);
      await store.reportHeartbeat(region, clock.wallMs());
      nameIncarnation(context, await store.incarnation());
      return {};
    },
    async reportAgentState(request, context) {
      const incarnation = await store.incarnation();
      nameIncarnation(context, incarnation);
      return await storeAgentState(deps, regionOf(context, request.regionKey), request, incarnation?.id);
    },
    async reportStandby({ regionKey, instanceId, version }, context) {
      const region = regionOf(context, regionKey);
      if (instanceId === "") throw new ConnectError("the instance id is missing", Code.InvalidArgument);
      await store.reportStandby(region, limitedStandby({ instanceId, version, atMs: clock.wallMs() }));
      return {};
    },
  };
  const ofDigests: Pick<ServiceImpl<typeof ClusterService>, "getDesiredDigest" | "listDesiredContents"> = {
    getDesiredDigest: (request, context) => desiredDigest(deps, request, context),
    listDesiredContents: (request, context) => desiredContents(deps, request, context),
  };
  const ofLogs: Pick<ServiceImpl<typeof ClusterService>, "watchLogRequests" | "sendLogLines"> = {
    watchLogRequests({ regionKey }, context) {
      const region = regionOf(context, regionKey);
      const logs = logsOf(deps);
      return deps.streams.guard((signal) => logRequests(store, logs, region, signal), context.signal);
    },
    async sendLogLines(request, context) {
      const region = regionOf(context, request.regionKey);
      const wanted = await logsOf(deps).receive(region, request);
      // Only if they are not, because a question to the database for each would be too much.
      if (!wanted) await assertKnown(store, region);
      return { wanted };
    },
  };
  // All other RPCs belong to kinds, which the types cannot express.
  const ofKinds: object = Object.fromEntries(
    allKinds.flatMap((kind) => Object.entries(kindHandlers(deps, kind))),
  );
  type Others = Omit<
    ServiceImpl<typeof ClusterService>,
    keyof typeof ofAgents | keyof typeof ofDigests | keyof typeof ofLogs
  >;
  return { ...(ofKinds as Others), ...ofAgents, ...ofDigests, ...ofLogs };
}

async function* logRequests(
  store: Store,
  logs: LogBroker,
  region: string,
  signal: AbortSignal,
): AsyncGenerator<LogRequest, void> {
  await assertKnown(store, region);
  yield* logs.requests(region, signal);
}

async function assertKnown(store: Store, region: string): Promise<void> {
  if (!(await store.regions()).includes(region)) throw unknownRegion(region);
}

function logsOf({ logs }: ClusterServiceDeps): LogBroker {
  if (logs === undefined) throw new ConnectError("this control plane reads no logs", Code.Unimplemented);
  return logs;
}

/** The fields that the requests of every kind have. */
interface KindRequest {
  readonly region: string;
  readonly versionLastSeen: bigint;
  readonly regionKey?: RegionKey;
}

/** Several reports of any kind. */
interface ReportsRequest {
  readonly entries: readonly { readonly report?: Message; readonly number: bigint }[];
  readonly regionKey?: RegionKey;
}

// An agent sends far fewer.
const reportsMax = 1_000;

function kindHandlers(deps: HandlerDeps, kind: AnyKind) {
  const { name, rpcs } = kind;
  return {
    [rpcs.watch.localName]: (request: KindRequest, context: HandlerContext) =>
      watch(deps, name, request, context),
    [rpcs.get.localName]: (
      request: KindRequest & Readonly<Record<string, unknown>>,
      context: HandlerContext,
    ) => desiredState(deps, name, String(request[rpcs.idField]), request, context),
    ...(rpcs.report && {
      [rpcs.report.localName]: async (request: KindRequest & Message, context: HandlerContext) => {
        nameIncarnation(context, await deps.store.incarnation());
        await storeReport(deps, kind, regionOf(context, request.regionKey), request, context.requestHeader);
        return {};
      },
    }),
    ...(rpcs.reportMany && {
      [rpcs.reportMany.localName]: async (request: ReportsRequest, context: HandlerContext) => {
        nameIncarnation(context, await deps.store.incarnation());
        const region = regionOf(context, request.regionKey);
        return { notFound: await storeReports(deps, kind, region, request, context.requestHeader) };
      },
    }),
  };
}

function watch(
  deps: HandlerDeps,
  kind: KindName,
  request: KindRequest,
  context: HandlerContext,
): AsyncIterable<StateMessage<KindName>> {
  const region = regionOf(context, request.regionKey, request.region);
  const bytesMax = streamLimit(context.requestHeader);
  const receive: Receive = (state) => receiveClient(deps, context, state);
  const feed = (start: bigint, signal: AbortSignal, startOver?: () => void) =>
    desiredFeed(deps.changes, kind, region, start, bytesMax, signal, receive, startOver);
  const { versionLastSeen } = request;
  if (!isOriginalAgent(request))
    return deps.streams.guard((signal) => feed(versionLastSeen, signal), context.signal);
  return deps.streams.guard(
    (signal) =>
      deps.originals.follow(
        kind,
        region,
        versionLastSeen,
        ({ start, startOver }) => feed(start, signal, startOver),
        signal,
      ),
    context.signal,
  );
}

async function desiredState(
  deps: ClusterServiceDeps,
  kind: KindName,
  id: string,
  request: KindRequest,
  context: HandlerContext,
): Promise<StateMessage<KindName>> {
  const region = regionOf(context, request.regionKey);
  if (id === "") throw new ConnectError(`the ${kind} id is missing`, Code.InvalidArgument);
  const { row, counter, incarnation } = await deps.store.find(region, kind, id);
  const about = row && { kind, id, version: row.version };
  await receiveClient(deps, context, { region, row: about, counter, incarnation });
  if (row === undefined)
    throw isOriginalAgent(request) ? unknownToOriginal(kind, id, region) : notFound(kind, id, region);
  if (row.desired === "unreadable") {
    throw new ConnectError(`the spec of ${kind} ${id} cannot be read`, Code.Internal);
  }
  // A response that is too large blocks nothing, so an agent that sends no limit gets it as it is.
  const bytesMax = sentLimit(context.requestHeader);
  return bytesMax === undefined ? stateOf(kind, row) : limitedState(kind, row, bytesMax);
}

async function desiredDigest(
  deps: ClusterServiceDeps,
  { kind: name, knownSum, regionKey }: GetDesiredDigestRequest,
  context: HandlerContext,
): Promise<MessageInitShape<typeof GetDesiredDigestResponseSchema>> {
  const region = regionOf(context, regionKey);
  const kind = digestKind(name);
  const [known, ...others] = decodeSums(knownSum) ?? [undefined, undefined];
  if (others.length > 0)
    throw new ConnectError("known_sum must have 32 bytes, or none", Code.InvalidArgument);
  const { sum, buckets, newestVersion, ...state } = await deps.store.digest(region, kind, known);
  await receiveForDigest(deps, context, { region, ...state });
  return { sum: encodeSums([sum]), ...(buckets && { buckets: encodeSums(buckets) }), newestVersion };
}

async function desiredContents(
  deps: ClusterServiceDeps,
  { kind: name, buckets: numbers, regionKey }: ListDesiredContentsRequest,
  context: HandlerContext,
): Promise<MessageInitShape<typeof ListDesiredContentsResponseSchema>> {
  const region = regionOf(context, regionKey);
  const kind = digestKind(name);
  const isValid = numbers.every((number) => number < bucketCount) && new Set(numbers).size === numbers.length;
  if (!isValid || numbers.length === 0)
    throw new ConnectError(
      `buckets must be different numbers below ${bucketCount}, at least one`,
      Code.InvalidArgument,
    );
  const { buckets, ...state } = await deps.store.contents(region, kind, numbers);
  await receiveForDigest(deps, context, { region, ...state });
  return {
    buckets: buckets.map(({ number, sum, rows }) => ({
      number,
      sum: encodeSums([sum]),
      entries: rows.map(({ id, version, hash }) => ({ id, version, hash })),
    })),
  };
}

function digestKind(name: string): KindName {
  const kind = kindNames.find((each) => each === name);
  if (kind === undefined) throw new ConnectError(`unknown kind "${name.slice(0, 40)}"`, Code.Unimplemented);
  return kind;
}

/** Versions and so digests are comparable only within an incarnation. */
async function receiveForDigest(
  deps: ClusterServiceDeps,
  context: HandlerContext,
  state: ServedState,
): Promise<void> {
  if (state.incarnation === undefined)
    throw new ConnectError("this control plane names no incarnation", Code.Unimplemented);
  await receiveClient(deps, context, state);
}

async function storeReport(
  { store, clock }: ClusterServiceDeps,
  { name: kind, reports }: AnyKind,
  region: string,
  request: KindRequest & Message,
  headers: Headers,
): Promise<void> {
  const read = reports?.read(request, clock.wallMs());
  if (read === undefined) return;
  // It was parsed as a report of this kind.
  const report = read.report as ReportOf<KindName>;
  const stored = await store.report(region, kind, read, report, readReportRank(headers));
  // An agent of the original fails the whole stream for it, and pauses all reports after five.
  if (!stored && !isOriginalAgent(request)) throw notFound(kind, read.name, region);
}

/** Returns the positions of those whose object does not exist. */
async function storeReports(
  { store, clock }: ClusterServiceDeps,
  { name: kind, reports }: AnyKind,
  region: string,
  { entries }: ReportsRequest,
  headers: Headers,
): Promise<readonly number[]> {
  if (entries.length > reportsMax)
    throw new ConnectError(`a call may have at most ${reportsMax} reports`, Code.InvalidArgument);
  const rank = readReportRank(headers);
  const received = entries.flatMap(({ report: message, number }, position) => {
    const read = message && reports?.read(message, clock.wallMs());
    if (read === undefined) return [];
    // It was parsed as a report of this kind.
    const report = read.report as ReportOf<KindName>;
    return [{ ...read, report, rank: rank && { ...rank, number }, position }];
  });
  if (received.length === 0) return [];
  const stored = await store.reportMany(region, kind, received);
  return received.flatMap(({ position }, index) => (stored[index] ? [] : [position]));
}

async function storeAgentState(
  { store, clock }: ClusterServiceDeps,
  region: string,
  report: ReportAgentStateRequest,
  incarnationId: string | undefined,
): Promise<{ releasedDeletions: HeldDeletion[]; adoptions: StrangerRef[] }> {
  if (report.state === undefined) throw new ConnectError("the state is missing", Code.InvalidArgument);
  const limited = { report: limitReport(report), atMs: clock.wallMs() };
  if (incarnationId !== undefined) clearForeignVersions(limited.report, incarnationId);
  const released = await store.reportAgent(region, limited);
  // Without strangers there is nothing to adopt, and what is left in the store ends by its age.
  const adoptions = report.strangers.length === 0 ? [] : await store.adoptionsFor(region, limited);
  return {
    releasedDeletions: released.map(({ controller, key }) => ({ controller, key })),
    adoptions: adoptions.map(refOf),
  };
}

function regionOf(context: HandlerContext, key: RegionKey | undefined, field?: string): string {
  const header = context.requestHeader.get("x-krane-region");
  const region = resolveRegion({ header, key, ...(field === undefined ? {} : { field }) });
  assertMaySpeakFor(region, context.values);
  return region;
}

/**
 * The heartbeat of a later version of the original fits, but its agent cannot receive an order from this server: it must
 * not look alive. It sends no region header, or the platform in one of its own.
 */
function refuseLaterVersions({ requestHeader }: HandlerContext): void {
  if (requestHeader.get("x-krane-region") && !requestHeader.has("x-krane-platform")) return;
  const message =
    "a heartbeat needs the header X-Krane-Region and no X-Krane-Platform: agents of other protocol versions are not served";
  throw new ConnectError(message, Code.Unimplemented);
}

function notFound(kind: KindName, name: string, region: string): ConnectError {
  return new ConnectError(`no ${kind} ${name} in region ${region}`, Code.NotFound);
}

// Determines the region of a call. Agents of different versions send it in different places:
// a string in the request, a header, or a RegionKey. Any of them is enough, but all that are
// set have to agree: picking one of two would give a cluster the workloads of another.

interface RegionSources {
  /** `string region = 1` of the Watch requests. */
  readonly field?: string;
  readonly header: string | null;
  readonly key: RegionKey | undefined;
}

/** The region in its joined form; throws `invalid_argument` when it is missing or ambiguous. */
export function resolveRegion({ field, header, key }: RegionSources): string {
  if (field && header && field !== header) throw disagreement(field, header);
  const text = field || header || "";
  const joined = key === undefined || key.name === "" ? "" : joinedForm(key);
  if (text === "" && joined === "") {
    throw new ConnectError("the region is missing: set X-Krane-Region", Code.InvalidArgument);
  }
  // An agent with a separate platform setting may send the bare name as its region.
  const agree = text === "" || joined === "" || text === joined || text === key?.name;
  if (!agree) throw disagreement(text, joined);
  return text || joined;
}

function joinedForm({ name, platform }: RegionKey): string {
  return platform === "" ? name : `${name}.${platform}`;
}

function disagreement(one: string, other: string): ConnectError {
  return new ConnectError(`the call names two different regions, ${one} and ${other}`, Code.InvalidArgument);
}
