// Serves the requests for logs that the control plane sends on a stream. A request goes on when the stream is cut: its lines
// travel in calls of their own, and the response to each says whether somebody still reads them.
import { isAbort, linkSignals } from "../../concurrency/abort.ts";
import { type Clock, sleep } from "../../concurrency/clock.ts";
import type { Random } from "../../concurrency/random.ts";
import { ControlPlaneError } from "../../control-plane/error.ts";
import { createReconnectDelay } from "../../control-plane/reconnect-delay.ts";
import { type LogRequest, LogEnd_Reason as Reason } from "../../gen/ctrl/v1/logs_pb.ts";
import type { Log } from "../../telemetry/log.ts";
import { type DeploymentLogDeps, readDeploymentLog } from "./deployment-log.ts";
import { EntryQueue } from "./entry-queue.ts";
import { type End, EntrySender, type SendLines } from "./entry-sender.ts";

export interface LogRequestsDeps extends Omit<DeploymentLogDeps, "add"> {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly instanceId: string;
  readonly send: SendLines;
  watch(signal: AbortSignal): AsyncIterable<LogRequest>;
}

// Together they may hold some megabytes, and as many connections to the API server as they have pods.
const requestsMax = 20;
const requestMaxMs = 60 * 60_000;
// An older control plane may be upgraded.
const unsupportedRestMs = 10 * 60_000;
const lastWordMs = 2_000;

/** Resolves when the signal aborts, after everything has stopped. */
export async function serveLogRequests(deps: LogRequestsDeps, signal: AbortSignal): Promise<void> {
  const { clock, random, log } = deps;
  const serving = new Set<Promise<void>>();
  const delay = createReconnectDelay(random);
  while (!signal.aborted) {
    const openedMs = clock.nowMs();
    let broughtMessages = false;
    let failure: ControlPlaneError | undefined;
    try {
      for await (const request of deps.watch(signal)) {
        broughtMessages = true;
        if (request.ticket.length === 0) continue;
        const isBusy = serving.size >= requestsMax;
        const running: Promise<void> = serve(request, isBusy, deps, signal).finally(() =>
          serving.delete(running),
        );
        serving.add(running);
      }
    } catch (error) {
      if (isAbort(error, signal)) break;
      if (!(error instanceof ControlPlaneError)) throw error;
      failure = error;
    }
    const isUnsupported = failure?.code === "unimplemented";
    if (isUnsupported) log.info("the control plane is too old to ask for logs");
    else log.debug("the stream of requests for logs ended", { error: failure });
    const livedMs = clock.nowMs() - openedMs;
    const ended = { broughtMessages, livedMs, ...(failure && { code: failure.code }) };
    const restMs = delay.afterMs({
      ...ended,
      retryAfterMs: failure?.retryAfterMs,
      ...(failure && { reach: failure.reach }),
    });
    await sleep(clock, isUnsupported ? unsupportedRestMs : restMs, signal).catch(() => undefined);
  }
  await Promise.all(serving);
}

/** Never rejects. */
async function serve(
  request: LogRequest,
  isBusy: boolean,
  deps: LogRequestsDeps,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log, instanceId } = deps;
  const { ticket, deploymentId, k8sNamespace: namespace } = request;
  const sender = new EntrySender({ ticket, instanceId }, deps);
  const life = linkSignals(signal);
  const timer = clock.setTimer(requestMaxMs, () => life.abort(timeOver));
  try {
    if (isBusy) return await sender.end(busy, life.signal);
    log.info("reading logs for somebody at the control plane", { deploymentId, namespace });
    await readAndSend(request, sender, deps, life.signal);
  } catch (error) {
    if (!life.signal.aborted) log.warn("reading logs failed", { deploymentId, namespace, error });
    const end = signal.aborted ? stopping : life.signal.aborted ? timeIsOver : failed;
    await tellBeforeStop(sender, end, clock);
  } finally {
    timer.cancel();
    life.release();
  }
}

async function readAndSend(
  request: LogRequest,
  sender: EntrySender,
  deps: LogRequestsDeps,
  signal: AbortSignal,
): Promise<void> {
  const queue = new EntryQueue(deps);
  const reading = linkSignals(signal);
  let end: End = {};
  const read = readDeploymentLog(
    request,
    { ...deps, add: (entry, inner) => queue.add(entry, inner) },
    reading.signal,
  ).then(
    (reached) => {
      end = reached;
      queue.close();
    },
    (error: unknown) => {
      // Also when nobody wants the lines any more.
      end = failed;
      queue.close();
      if (!reading.signal.aborted) throw error;
    },
  );
  // Awaited below, also if the sender fails first.
  read.catch(() => undefined);
  try {
    await sender.run(queue, () => end, signal);
  } finally {
    reading.abort(new Error("the lines are not wanted any more"));
    await read;
  }
}

const timeOver = new Error("the request lasted for as long as one may");
const stopping: End = {
  reason: Reason.STOPPING,
  message: "the agent stops, or another one leads the region",
};
const timeIsOver: End = { reason: Reason.TIME_OVER, message: "logs can be followed for an hour at a time" };
const failed: End = { reason: Reason.FAILED, message: "the agent failed; its log says why" };
const busy: End = {
  reason: Reason.BUSY,
  message: `the agent already serves ${requestsMax} requests for logs`,
};

async function tellBeforeStop(sender: EntrySender, end: End, clock: Clock): Promise<void> {
  const limit = linkSignals();
  const timer = clock.setTimer(lastWordMs, () => limit.abort(new Error("too late")));
  await sender.end(end, limit.signal).catch(() => undefined);
  timer.cancel();
}
