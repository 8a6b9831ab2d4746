// StreamLogs: reads the logs of an app's or a deployment's pods through the agent of the region.
import { Code, ConnectError } from "@connectrpc/connect";
import { linkSignals } from "../../concurrency/abort.ts";
import { type Clock, sleep } from "../../concurrency/clock.ts";
import { type LogEnd, LogEnd_Reason as Reason } from "../../gen/ctrl/v1/logs_pb.ts";
import type { StreamLogsRequest, StreamLogsResponse } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Log } from "../../telemetry/log.ts";
import { LineBuffer } from "../logs/line-buffer.ts";
import type { LogBroker } from "../logs/log-broker.ts";
import type { ReaderAdmission } from "../logs/reader-admission.ts";
import type { Row, Store } from "../store.ts";
import { checked } from "./bad-request.ts";
import { parseRegion } from "./object-refs.ts";

export interface LogDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly broker: LogBroker;
  readonly admission: ReaderAdmission;
}

const releasesEveryMs = 2_000;
const deploymentsMax = 10;
// A minute.
const drainingLooks = 30;
const positionsMax = 200;
const retrySeconds = "2";

interface Target {
  readonly kind: "app" | "deployment";
  readonly id: string;
}

export async function* streamLogs(
  deps: LogDeps,
  request: StreamLogsRequest,
  caller: string,
  signal: AbortSignal,
): AsyncGenerator<StreamLogsResponse, void> {
  const { region, target } = parseRequest(request);
  const leave = deps.admission.enter(region, caller);
  const life = linkSignals(signal);
  const reading = new LogReading(deps, request, { region, target });
  try {
    await reading.start();
    // Who read what, and nothing of what it was.
    deps.log.info("logs are read", {
      component: caller,
      kind: target.kind,
      name: target.id,
      address: region,
    });
    if (request.follow && target.kind === "app")
      reading.followReleases(life.signal).catch((error: unknown) => reading.buffer.fail(error));
    yield* reading.buffer.read(life.signal);
  } finally {
    life.abort(new Error("the stream has ended"));
    reading.stop();
    leave();
  }
}

function parseRequest(request: StreamLogsRequest): { readonly region: string; readonly target: Target } {
  return checked((refuse) => {
    const { case: kind, value: id = "" } = request.target;
    if (id === "") refuse("target", "is required: the id of an app or a deployment");
    if (request.follow && request.previous)
      refuse("previous", "cannot be followed: that container has ended");
    if (request.positions.length > positionsMax) refuse("positions", `has more than ${positionsMax} entries`);
    const target: Target = { kind: kind === "appId" ? "app" : "deployment", id };
    return { region: parseRegion(request.region, refuse), target };
  });
}

class LogReading {
  readonly buffer = new LineBuffer();
  private readonly deps: LogDeps;
  private readonly request: StreamLogsRequest;
  private readonly region: string;
  private readonly target: Target;
  private readonly open = new Map<string, () => void>();
  /** Deployments that were asked for, also those that have ended. */
  private readonly asked = new Set<string>();
  /** For how many looks its deployments have not been desired any more. */
  private readonly retiredFor = new Map<string, number>();
  private firstFailure: ConnectError | undefined;
  /** Why some logs could not be read; those that could are delivered first. */
  private readonly flaws: string[] = [];
  private hasDelivered = false;
  private isStarted = false;

  constructor(
    deps: LogDeps,
    request: StreamLogsRequest,
    { region, target }: { readonly region: string; readonly target: Target },
  ) {
    this.deps = deps;
    this.request = request;
    this.region = region;
    this.target = target;
  }

  async start(): Promise<void> {
    const rows = await this.deployments();
    if (rows.length === 0 && !this.request.follow)
      throw new ConnectError(`app ${this.target.id} has no releases with pods`, Code.NotFound);
    await this.checkAgent();
    for (const row of rows) this.ask(row);
    this.isStarted = true;
    this.closeIfDone();
  }

  /** A release makes a new deployment. */
  async followReleases(signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(this.deps.clock, releasesEveryMs, signal);
      // An outage of the database does not end a log that is being followed.
      const rows = await this.deployments().catch(() => undefined);
      if (rows === undefined) continue;
      this.leaveRetired(new Set(rows.map(({ id }) => id)));
      for (const row of rows) this.ask(row);
    }
  }

  /** The pods of a release that has ended drain for a while, and say how. */
  private leaveRetired(desired: ReadonlySet<string>): void {
    for (const [id, close] of this.open) {
      const looks = desired.has(id) ? 0 : (this.retiredFor.get(id) ?? 0) + 1;
      this.retiredFor.set(id, looks);
      if (looks <= drainingLooks) continue;
      close();
      this.open.delete(id);
      this.retiredFor.delete(id);
    }
  }

  stop(): void {
    for (const close of this.open.values()) close();
    this.open.clear();
  }

  private ask({ id, spec }: Row<"deployment">): void {
    if (this.asked.has(id) || this.open.size >= deploymentsMax) return;
    this.asked.add(id);
    const { k8sNamespace, k8sName } = spec;
    const { podName, container, previous, follow, tailLines, sinceMs, positions } = this.request;
    const isLater = this.isStarted;
    const close = this.deps.broker.open(
      { region: this.region, buffer: this.buffer, onEnd: (end) => this.ended(id, end) },
      {
        ...{ k8sNamespace, k8sName, deploymentId: id, podName, container, previous, follow, positions },
        // A release that starts while its app is followed is read from its beginning.
        ...(isLater || tailLines === undefined ? {} : { tailLines }),
        sinceMs: isLater ? 0n : sinceMs,
      },
    );
    this.open.set(id, close);
  }

  private ended(id: string, end: LogEnd | undefined): void {
    this.open.delete(id);
    const failure = errorOf(end, this.region);
    if (failure === undefined) this.hasDelivered = true;
    // A release without pods is nothing unusual, nor is a pod that is in another release.
    else if (end?.reason === Reason.NOT_FOUND) this.firstFailure ??= failure;
    else if (end?.reason === Reason.FAILED && !this.request.follow) this.flaws.push(end.message);
    else this.buffer.fail(failure);
    this.closeIfDone();
  }

  private closeIfDone(): void {
    if (this.open.size > 0 || !this.isStarted) return;
    // Nobody who waits for the end should take these logs for whole, or for the control plane being down.
    const flaws = `region ${this.region}: ${this.flaws.join("; ")}`;
    if (this.flaws.length > 0) this.buffer.fail(new ConnectError(flaws, Code.FailedPrecondition));
    else if (this.firstFailure !== undefined && !this.hasDelivered) this.buffer.fail(this.firstFailure);
    else if (!this.request.follow || this.target.kind === "deployment") this.buffer.close();
  }

  private async deployments(): Promise<readonly Row<"deployment">[]> {
    const { store } = this.deps;
    const { kind, id } = this.target;
    if (kind === "app") {
      const { app, deployments } = await store.app(this.region, id);
      if (app === undefined) throw new ConnectError(`no app ${id} in region ${this.region}`, Code.NotFound);
      return deployments.map(({ row }) => row);
    }
    const { row } = await store.find(this.region, "deployment", id);
    if (row === undefined || row.desired !== "running")
      throw new ConnectError(`no deployment ${id} in region ${this.region}`, Code.NotFound);
    return [row];
  }

  /** What the agent has reported says more than its silence. */
  private async checkAgent(): Promise<void> {
    const { region } = this;
    const [agent] = await this.deps.store.agents(region);
    const state = agent?.state?.report.state;
    if (state === undefined) return;
    const { version, logs, inferred } = state;
    if (logs === undefined) {
      // Agents of the original report no version.
      const which = inferred ? "" : ` (version ${version})`;
      throw new ConnectError(
        `the agent of region ${region}${which} is too old for logs; update it`,
        Code.FailedPrecondition,
      );
    }
    if (!logs.enabled)
      throw new ConnectError(
        `the agent of region ${region} does not serve logs; set agent.logs.enabled=true in its chart (setting logs.enabled)`,
        Code.FailedPrecondition,
      );
  }
}

/** Undefined if everything was sent. */
function errorOf(end: LogEnd | undefined, region: string): ConnectError | undefined {
  if (end === undefined)
    return unavailable(
      `the agent of region ${region} does not answer, or is not connected; see krane status`,
    );
  const { reason, message } = end;
  switch (reason) {
    case Reason.UNSPECIFIED:
      return undefined;
    case Reason.NOT_FOUND:
      return new ConnectError(message, Code.NotFound);
    case Reason.NOT_OURS:
    case Reason.FORBIDDEN:
      return new ConnectError(`region ${region}: ${message}`, Code.PermissionDenied);
    case Reason.BUSY:
      return new ConnectError(`region ${region}: ${message}; retry in 30 s`, Code.ResourceExhausted, {
        "retry-after": "30",
      });
    case Reason.TIME_OVER:
      return new ConnectError(message, Code.DeadlineExceeded);
    default:
      return unavailable(`region ${region}: ${message}`);
  }
}

function unavailable(message: string): ConnectError {
  return new ConnectError(message, Code.Unavailable, { "retry-after": retrySeconds });
}
