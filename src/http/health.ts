// What krane tells a kubelet about itself. The state is three words; the endpoints
// are a pure function of it and of the checks.
//
// Liveness and startup ask only whether krane got up. Readiness turns 503 before the
// start and on the way out, and for nothing else: while a control plane or API server
// is away krane still serves secrets to pods, and a restart would only lose what it
// knows. So a failing check is shown in the body, with status 200.
import type { Clock } from "../concurrency/clock.ts";
import { type HttpAnswer, type HttpHandler, jsonAnswer, serveReads } from "./http-handler.ts";

export type HealthPhase = "not started" | "running" | "shutting down";

/** Resolves when all is well; what it rejects with is shown to anyone who can reach the port. */
export type HealthCheck = (signal: AbortSignal) => Promise<void>;

export interface HealthDeps {
  readonly clock: Clock;
}

export interface Health {
  readonly phase: HealthPhase;
  markStarted(): void;
  markShuttingDown(): void;
  /** Tells of every change of the phase, after it; returns the way to stop listening. */
  subscribe(listener: () => void): () => void;
  /** The handlers by path. */
  routes(): ReadonlyMap<string, HttpHandler>;
}

const checkTimeoutMs = 500;
const reasonCharsMax = 200;

export function createHealth(checks: ReadonlyMap<string, HealthCheck>, deps: HealthDeps): Health {
  let phase: HealthPhase = "not started";
  let inFlight: Promise<CheckResults> | undefined;
  const listeners = new Set<() => void>();
  const become = (next: HealthPhase) => {
    if (phase === next) return;
    phase = next;
    for (const listener of listeners) listener();
  };
  // Probes that come at the same time share one run, so that no number of them can
  // multiply the calls that checks make.
  const sharedResults = () => {
    inFlight ??= runChecks(checks, deps.clock).finally(() => {
      inFlight = undefined;
    });
    return inFlight;
  };
  const alive = () => answerAlive(phase);
  const ready = async () => {
    const results = phase === "running" ? await sharedResults() : new Map();
    return answerReady(phase, results);
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

// A krane that is stopping is alive: a kubelet that thought otherwise would kill it
// in the middle of its clean-up.
function answerAlive(phase: HealthPhase): HttpAnswer {
  return phase === "not started" ? jsonAnswer(503, { status: phase }) : jsonAnswer(200, { status: "ok" });
}

function answerReady(phase: HealthPhase, results: CheckResults): HttpAnswer {
  if (phase !== "running") return jsonAnswer(503, { status: phase });
  if (results.size === 0) return jsonAnswer(200, { status: "ok" });
  const failing = [...results.values()].some((reason) => reason !== undefined);
  const checks = Object.fromEntries([...results].map(([name, reason]) => [name, reason ?? "ok"]));
  return jsonAnswer(200, { status: failing ? "degraded" : "ok", checks });
}

async function runChecks(checks: ReadonlyMap<string, HealthCheck>, clock: Clock): Promise<CheckResults> {
  const results = [...checks].map(async ([name, check]) => [name, await runCheck(check, clock)] as const);
  return new Map(await Promise.all(results));
}

function runCheck(check: HealthCheck, clock: Clock): Promise<string | undefined> {
  return new Promise((resolve) => {
    const timeout = new AbortController();
    const timer = clock.setTimer(checkTimeoutMs, () => {
      const reason = `no answer within ${checkTimeoutMs} ms`;
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
