// The client of the control plane: reads desired state and sends reports. One instance is one HTTP/2 connection, and
// each controller has its own (K6).
//
// - Creating it starts nothing; the first call connects. After close() nothing is left.
// - `not-found` always comes from the server itself and concerns that one object. Everything else that looks like
//   absence (a proxy's 404, a wrong path) is an error.
// - RPCs that only newer servers have are not called again once a server has answered `unimplemented`, until there is a
//   new connection, which may go to an upgraded server.
import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { type ContextValues, createContextValues, type Interceptor } from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import { notify } from "../concurrency/notify.ts";
import type { TrustedCa } from "../config/ca-file.ts";
import type { RegionKey } from "../config/config.ts";
import type { SecretSource } from "../config/secret-source.ts";
import {
  ClusterService,
  type ReportAgentStateRequestSchema,
  type ReportAgentStateResponse,
} from "../gen/ctrl/v1/cluster_service_pb.ts";
import type { ReportDeploymentStatusesResponseSchema } from "../gen/ctrl/v1/deployment_pb.ts";
import type { GetDesiredDigestResponse, ListDesiredContentsResponse } from "../gen/ctrl/v1/digest_pb.ts";
import type { LogRequest, SendLogLinesRequestSchema, SendLogLinesResponse } from "../gen/ctrl/v1/logs_pb.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { createBearer } from "./bearer.ts";
import { withHeaders } from "./call-headers.ts";
import { type CallEnd, type Calls, createCalls } from "./calls.ts";
import { ControlPlaneError } from "./error.ts";
import { versionKnownHeader } from "./incarnation.ts";
import { provenByPingsMs } from "./reconnect-delay.ts";
import { type OrderedReport, ReportBatches } from "./report-batches.ts";
import { formatReportOrder, type ReportOrder, reportOrderHeader } from "./report-order.ts";
import { createRequestStamp, createStampInterceptor } from "./request-stamp.ts";
import { contextWith, ResponseFingerprint } from "./response-fingerprint.ts";
import { createHistoryInterceptor, ServerHistory } from "./server-history.ts";
import { type ConnectionLimits, createHttpLink, defaultLimits, type Link } from "./transport.ts";

/** The RPCs of a kind of desired state. A kind's descriptor implements it. */
export interface WireKind<State extends DescMessage = DescMessage, Report extends DescMessage = DescMessage> {
  readonly rpcs: KindRpcs<State, Report>;
  /** Older control planes do not have its RPCs. Its controller then rests. */
  readonly isAddition?: true;
}

export interface KindRpcs<State extends DescMessage, Report extends DescMessage> {
  /** The request has the field `version_last_seen`. */
  readonly watch: DescMethodServerStreaming<DescMessage, State>;
  readonly get: DescMethodUnary<DescMessage, State>;
  /** The field of the `get` request that holds the object's id, as named in generated code. */
  readonly idField: string;
  /** Its name in the RPCs of digests; absent for a kind that has none. */
  readonly digestKind?: string;
  /** Absent for kinds without reports. */
  readonly report?: DescMethodUnary<Report, DescMessage>;
  /** For several reports at once; absent if there is none. */
  readonly reportMany?: DescMethodUnary<DescMessage, typeof ReportDeploymentStatusesResponseSchema>;
}

export interface DesiredRequest {
  /** The object's id at the control plane. */
  readonly id: string;
  /** The fingerprint of the last response. An equal response is not parsed again. */
  readonly knownFingerprint?: string | undefined;
  /** The version of the object that is known; 0 if none is. */
  readonly knownVersion?: bigint;
}

export type DesiredResponse<S> =
  | { readonly kind: "found"; readonly state: S; readonly fingerprint?: string }
  /** The response equals the one with the known fingerprint, byte for byte. */
  | { readonly kind: "same" }
  | { readonly kind: "not-found" };

export interface ControlPlane {
  /** The region that every request is for, as configured: "us-east-1.aws". */
  readonly region: string;
  /** The incarnation of the control plane, as far as this connection knows. */
  readonly history: ServerHistory;
  /** Everything above the version, then changes. Ends only when the server ends it; see DesiredStream. */
  watch<S extends DescMessage>(
    kind: WireKind<S>,
    versionLastSeen: bigint,
    signal: AbortSignal,
  ): AsyncIterable<MessageShape<S>>;
  get<S extends DescMessage>(
    kind: WireKind<S>,
    request: DesiredRequest,
    signal: AbortSignal,
  ): Promise<DesiredResponse<MessageShape<S>>>;
  /** The digest of a kind, without buckets if the sum is the known one. Undefined if the server has none. */
  digest(
    kind: WireKind,
    knownSum: Uint8Array,
    signal: AbortSignal,
  ): Promise<GetDesiredDigestResponse | undefined>;
  /** What is in these buckets, or in the first of them. Undefined if the server has no digests. */
  contents(
    kind: WireKind,
    buckets: readonly number[],
    signal: AbortSignal,
  ): Promise<ListDesiredContentsResponse | undefined>;
  /** Only for kinds that have a report. */
  report<R extends DescMessage>(
    kind: WireKind<DescMessage, R>,
    report: MessageInitShape<R>,
    signal: AbortSignal,
    order?: ReportOrder,
  ): Promise<void>;
  /** Does nothing if the server does not have the RPC. */
  heartbeat(signal: AbortSignal): Promise<void>;
  /** Returns undefined if the server does not have the RPC. */
  reportAgentState(
    report: MessageInitShape<typeof ReportAgentStateRequestSchema>,
    signal: AbortSignal,
  ): Promise<ReportAgentStateResponse | undefined>;
  /** Does nothing if the server does not have the RPC. */
  reportStandby(
    standby: { readonly instanceId: string; readonly version: string },
    signal: AbortSignal,
  ): Promise<void>;
  /** What somebody wants to read of the pods' logs. Fails with `unimplemented` if the server does not have the RPC. */
  watchLogRequests(instanceId: string, signal: AbortSignal): AsyncIterable<LogRequest>;
  sendLogLines(
    request: MessageInitShape<typeof SendLogLinesRequestSchema>,
    signal: AbortSignal,
  ): Promise<SendLogLinesResponse>;

  /** Ends every call, and resolves when the sockets are closed. */
  close(): Promise<void>;
}

export interface ControlPlaneOptions {
  /** Whose connection it is, for the metrics: a controller's name, or "agent". */
  readonly controller: string;
  /** http:// or https://, without a trailing slash. */
  readonly baseUrl: string;
  readonly region: RegionKey;
  readonly token: SecretSource;
  /** PEM certificates to trust instead of the system's. */
  readonly ca?: TrustedCa | undefined;
  readonly limits?: Partial<ConnectionLimits>;
  /** The deadline of every call that is not a stream. Default 10 s. */
  readonly unaryTimeoutMs?: number;
}

export interface ControlPlaneDeps {
  readonly clock: Clock;
  readonly metrics?: Pick<Metrics, "controlPlaneRequests" | "controlPlaneDuration">;
  readonly log?: Log;
  /** They run before krane's own. */
  readonly interceptors?: readonly Interceptor[] | undefined;
  /** Instead of a connection to `baseUrl`, for tests and simulations. */
  createLink?(interceptors: readonly Interceptor[]): Link;
}

const unaryTimeoutMsDefault = 10_000;

export function createControlPlane(options: ControlPlaneOptions, deps: ControlPlaneDeps): ControlPlane {
  const bearer = createBearer(options.token);
  const history = new ServerHistory();
  const stamp = createRequestStamp(options.region, bearer, () => history.requestHeaders());
  const { interceptors = [] } = deps;
  const link =
    deps.createLink?.([...interceptors, createHistoryInterceptor(history), createStampInterceptor(stamp)]) ??
    createHttpLink({ ...options, interceptors, stamp, history }, deps.clock);
  const calls = createCalls({
    transport: link.transport,
    clock: deps.clock,
    unaryTimeoutMs: options.unaryTimeoutMs ?? unaryTimeoutMsDefault,
    messageBytesMax: options.limits?.messageBytesMax ?? defaultLimits.messageBytesMax,
    redact: bearer.redact,
    onEnd(end) {
      if (isTokenRefused(end.error)) bearer.refused();
      notify(() => observe(options.controller, end, deps.metrics));
    },
  });

  const { unary, stream } = calls;
  const addition = createAdditionCall(unary, link, deps.log);
  const version = new PeerVersion(deps.clock);
  const reports = createReports({ unary, addition, generation: () => link.generation, clock: deps.clock });
  const rpc = ClusterService.method;
  return {
    region: options.region.label,
    history,
    watch: ({ rpcs }, versionLastSeen, signal) =>
      version.judge(stream(rpcs.watch, requestOf({ versionLastSeen }), signal)),
    async get({ rpcs }, request, signal) {
      version.assertOurs();
      const response = await responseOf(request, (context) =>
        unary(rpcs.get, requestOf({ [rpcs.idField]: request.id }), signal, context),
      );
      // The stream may have shown it meanwhile.
      version.assertOurs();
      return response;
    },
    async digest({ rpcs: { digestKind: kind } }, knownSum, signal) {
      version.assertOurs();
      return kind === undefined ? undefined : addition(rpc.getDesiredDigest, { kind, knownSum }, signal);
    },
    async contents({ rpcs: { digestKind: kind } }, buckets, signal) {
      version.assertOurs();
      if (kind === undefined) return undefined;
      return addition(rpc.listDesiredContents, { kind, buckets: [...buckets] }, signal);
    },
    async report(kind, report, signal, order) {
      version.assertOurs();
      await reports.of(kind).send({ report, order }, signal);
    },
    async heartbeat(signal) {
      await addition(rpc.heartbeat, {}, signal);
    },
    reportAgentState: (report, signal) => addition(rpc.reportAgentState, report, signal),
    async reportStandby(standby, signal) {
      await addition(rpc.reportStandby, standby, signal);
    },
    watchLogRequests: (instanceId, signal) => stream(rpc.watchLogRequests, { instanceId }, signal),
    sendLogLines: (request, signal) => unary(rpc.sendLogLines, request, signal),
    async close() {
      calls.close();
      await link.close();
    },
  };
}

/**
 * Later versions of the original have RPCs with the same names and other messages, but none of the streams. What such a
 * control plane sends means something else, so nothing is asked of it or reported to it until a stream works. A stream
 * works if it brings a message, ends without an error, or stays open: servers send not even headers before their first
 * message, but one without the stream says so at once. Other errors of a stream say nothing about the version.
 */
class PeerVersion {
  private readonly clock: Clock;
  private isOther = false;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  async *judge<S>(messages: AsyncIterable<S>): AsyncGenerator<S, void> {
    const works = () => {
      this.isOther = false;
    };
    const proof = this.isOther ? this.clock.setTimer(provenByPingsMs, works) : undefined;
    try {
      for await (const message of messages) {
        proof?.cancel();
        works();
        yield message;
      }
      works();
    } catch (error) {
      if (error instanceof ControlPlaneError && error.code === "unimplemented") this.isOther = true;
      throw error;
    } finally {
      proof?.cancel();
    }
  }

  assertOurs(): void {
    if (!this.isOther) return;
    throw new ControlPlaneError("unimplemented", "the control plane speaks another version of the protocol");
  }
}

function contextOf(order: ReportOrder): ContextValues {
  return withHeaders(createContextValues(), { [reportOrderHeader]: formatReportOrder(order) });
}

/** Only the kind knows the schema of its request. */
function requestOf(fields: Readonly<Record<string, unknown>>): MessageInitShape<DescMessage> {
  return fields as MessageInitShape<DescMessage>;
}

async function responseOf<S>(
  { knownFingerprint, knownVersion = 0n }: DesiredRequest,
  ask: (context: ContextValues) => Promise<S>,
): Promise<DesiredResponse<S>> {
  const fingerprint = new ResponseFingerprint(knownFingerprint);
  const context = contextWith(fingerprint);
  if (knownVersion > 0n) withHeaders(context, { [versionKnownHeader]: String(knownVersion) });
  try {
    const state = await ask(context);
    if (fingerprint.isKnown) return { kind: "same" };
    return {
      kind: "found",
      state,
      ...(fingerprint.value !== undefined && { fingerprint: fingerprint.value }),
    };
  } catch (error) {
    if (error instanceof ControlPlaneError && error.code === "not_found") return { kind: "not-found" };
    throw error;
  }
}

interface ReportsDeps {
  readonly unary: Calls["unary"];
  readonly addition: ReturnType<typeof createAdditionCall>;
  readonly generation: () => number;
  readonly clock: Clock;
}

type AnyReport = MessageInitShape<DescMessage>;

/** The reports of each kind; a connection has one or two. */
function createReports({ unary, addition, generation, clock }: ReportsDeps) {
  const byMethod = new Map<DescMethodUnary, Pick<ReportBatches<AnyReport>, "send">>();
  const create = (one: DescMethodUnary, many: KindRpcs<DescMessage, DescMessage>["reportMany"]) => {
    const sendOne = async ({ report, order }: OrderedReport<AnyReport>, signal: AbortSignal) => {
      await unary(one, report, signal, order && contextOf(order));
    };
    if (many === undefined) return { send: sendOne };
    return new ReportBatches<AnyReport>({
      ...{ clock, generation, sendOne },
      async sendMany(reports, signal) {
        const order = reports[0]?.order;
        const entries = reports.map((each) => ({ report: each.report, number: each.order?.number ?? 0n }));
        const answer = await addition(many, requestOf({ entries }), signal, order && contextOf(order));
        return answer?.notFound;
      },
    });
  };
  return {
    of({ rpcs: { report, reportMany } }: WireKind) {
      if (report === undefined) throw new TypeError("this kind has no report");
      const known = byMethod.get(report) ?? create(report, reportMany);
      byMethod.set(report, known);
      return known;
    },
  };
}

type UnaryCall = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  signal: AbortSignal,
  context?: ContextValues,
) => Promise<MessageShape<O>>;

/** Calls an RPC that not every server has. */
function createAdditionCall(unary: UnaryCall, link: Link, log: Log | undefined) {
  const refusedAt = new Map<string, number>();
  return async <I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    signal: AbortSignal,
    context?: ContextValues,
  ): Promise<MessageShape<O> | undefined> => {
    if (refusedAt.get(method.name) === link.generation) return undefined;
    try {
      return await unary(method, request, signal, context);
    } catch (error) {
      if (!(error instanceof ControlPlaneError && error.code === "unimplemented")) throw error;
      refusedAt.set(method.name, link.generation);
      log?.info("the control plane does not support this RPC; not calling it again on this connection", {
        method: method.name,
      });
      return undefined;
    }
  };
}

/** With either code, the token file is read again, in case there is a newer token. */
function isTokenRefused(error: ControlPlaneError | undefined): boolean {
  return error?.code === "unauthenticated" || error?.code === "permission_denied";
}

function observe(
  controller: string,
  { method, durationMs, error }: CallEnd,
  metrics: ControlPlaneDeps["metrics"],
): void {
  // Not found is a normal response to a resync.
  const result = error === undefined || error.code === "not_found" ? "success" : "error";
  metrics?.controlPlaneRequests.inc({ controller, method, result });
  if (durationMs !== undefined)
    metrics?.controlPlaneDuration.observe({ controller, method }, durationMs / 1_000);
}
