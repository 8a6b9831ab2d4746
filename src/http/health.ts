// Serves the kubelet's probes: /health/live, /health/startup and /health/ready.
//
// Liveness and startup only report whether krane has started. Readiness is 503 before the start and during shutdown, and
// at no other time: while the control plane or the API server is unavailable, krane still serves secrets to pods, and a
// restart would only lose its state. So a failing check is shown in the body, with status 200.
import type { Clock } from "../concurrency/clock.ts";
import { type HttpHandler, jsonResponse, serveReads, type TextResponse } from "./http-handler.ts";

export type HealthPhase = "not started" | "running" | "shutting down";

/** Resolves when healthy. The message that it rejects with is visible to anyone who can reach the port. */
export type HealthCheck = (signal: AbortSignal) => Promise<void>;

export interface HealthDeps {
  readonly clock: Clock;
  /** Facts that are no problems, for the body of /health/ready. */
  facts?(): Readonly<Record<string, string>>;
}

export interface Health {
  readonly phase: HealthPhase;
  markStarted(): void;
  markShuttingDown(): void;
  /** Calls the listener after every change of the phase. Returns a function that unsubscribes it. */
  subscribe(listener: () => void): () => void;
  /** The handlers by path. */
  routes(): ReadonlyMap<string, HttpHandler>;
}

const checkTimeoutMs = 500;
/** The four controllers of an agent name what they cannot watch in about 250. */
const reasonCharsMax = 300;

export function createHealth(checks: ReadonlyMap<string, HealthCheck>, deps: HealthDeps): Health {
  let phase: HealthPhase = "not started";
  let inFlight: Promise<CheckResults> | undefined;
  const listeners = new Set<() => void>();
  const become = (next: HealthPhase) => {
    if (phase === next) return;
    phase = next;
    for (const listener of listeners) listener();
  };
  // Concurrent probes share one run, so that a flood of probes does not multiply the calls that checks make.
  const sharedResults = () => {
    inFlight ??= runChecks(checks, deps.clock).finally(() => {
      inFlight = undefined;
    });
    return inFlight;
  };
  const alive = () => aliveResponse(phase);
  const ready = async () => {
    const results = phase === "running" ? await sharedResults() : new Map();
    return readyResponse(phase, results, deps.facts?.() ?? {});
  };
  return {
    get phase() {
      return phase;
    },
    markStarted() {
      if (phase === "not started") become("running");
    },
    markShuttingDown() {
      become("shutting down");
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    routes: () =>
      new Map([
        ["/health/live", serveReads(alive)],
        ["/health/startup", serveReads(alive)],
        ["/health/ready", serveReads(ready)],
      ]),
  };
}

/** The reason for each check that failed, undefined for each that passed. */
type CheckResults = ReadonlyMap<string, string | undefined>;

// Still alive while stopping: otherwise the kubelet would kill krane in the middle of its clean-up.
function aliveResponse(phase: HealthPhase): TextResponse {
  return phase === "not started" ? jsonResponse(503, { status: phase }) : jsonResponse(200, { status: "ok" });
}

function readyResponse(
  phase: HealthPhase,
  results: CheckResults,
  facts: Readonly<Record<string, string>>,
): TextResponse {
  if (phase !== "running") return jsonResponse(503, { status: phase });
  if (results.size === 0) return jsonResponse(200, { status: "ok" });
  const failing = [...results.values()].some((reason) => reason !== undefined);
  const checks = Object.fromEntries([...results].map(([name, reason]) => [name, reason ?? "ok"]));
  return jsonResponse(200, { status: failing ? "degraded" : "ok", checks, ...facts });
}

async function runChecks(checks: ReadonlyMap<string, HealthCheck>, clock: Clock): Promise<CheckResults> {
  const results = [...checks].map(async ([name, check]) => [name, await runCheck(check, clock)] as const);
  return new Map(await Promise.all(results));
}

function runCheck(check: HealthCheck, clock: Clock): Promise<string | undefined> {
  return new Promise((resolve) => {
    const timeout = new AbortController();
    const timer = clock.setTimer(checkTimeoutMs, () => {
      const reason = `no response within ${checkTimeoutMs} ms`;
      timeout.abort(new Error(reason));
      resolve(reason);
    });
    const settle = (reason: string | undefined) => {
      timer.cancel();
      resolve(reason);
    };
    Promise.resolve(timeout.signal)
      .then(check)
      .then(
        () => settle(undefined),
        (error: unknown) => settle(reasonOf(error)),
      );
  });
}

function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return (message === "" ? "failed" : message).slice(0, reasonCharsMax);
}
