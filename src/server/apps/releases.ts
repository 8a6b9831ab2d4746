// The releases of an app as a state machine: a pure function of the app, of what is seen of its deployments, and of the
// time. A release starts beside the current one, becomes the current one after all of its pods have been ready for a
// while, and the other one drains and ends. A release that does not become ready ends without having been current.
//
// - At most one release is starting, and at most one is current.
// - A release becomes current only if it is seen ready in the same step.
// - Every release but the current one ends, whatever is seen, once the route no longer leads to it.
// - While nothing is known of a release that starts, its time does not count: what is unknown has not failed. The same holds
//   for a time in which nothing could be stored.
// - While an app is paused, no release starts, becomes current or fails; one that drains still ends.
// - The route of an app leads to the current release from the transaction on that makes it current. A release that drains
//   ends only after the agent has reported that, so that no connection is sent to pods that are gone.
// - An undo makes a release that drains current again at once, if all of its pods are seen ready and it has enough of them.
//   Otherwise what it ran starts as a new release.
// - With hostnames and steps, a release that is ready gets a part of the requests before it becomes current, and none from the
//   step on in which it is seen unready. If it ends instead, it drains first.
// - A step depends only on what is stored and seen, so that it may be repeated, or made by another server.
import { clone, create, equals } from "@bufbuild/protobuf";
import { formatDuration } from "../../config/duration.ts";
import { type ApplyDeployment, ApplyDeploymentSchema } from "../../gen/ctrl/v1/deployment_pb.ts";
import type { ApplyRoute } from "../../gen/ctrl/v1/route_pb.ts";
import {
  type App,
  AppSchema,
  type AppSpec,
  AppSpecSchema,
  Release_Phase as Phase,
  type Release,
  ReleaseSchema,
} from "../../gen/krane/admin/v1/app_pb.ts";
import { appRoute } from "../../kinds/app-route.ts";
import { isReleaseOf, releaseTemplate } from "../../kinds/deployment/release-names.ts";
import { policyOf } from "../../kinds/deployment/release-policy.ts";

/** What is seen of a release's deployment. */
export type Sight =
  | ({ readonly state: "ready" } & Heard)
  /** Nobody has heard of it for a while. */
  | { readonly state: "unknown" }
  /** `failing` may pass, `refused` does not. */
  | ({ readonly state: "waiting" | "failing" | "refused"; readonly reason: string } & Heard);

interface Heard {
  /** Nothing was heard immediately before it, so no time counts from earlier. Default: it was always heard. */
  readonly heardSinceMs?: number;
}

/** Where the route of an app leads, as far as seen. */
export type Traffic =
  /** The app has no route, or the agent is too old for routes. */
  | { readonly state: "none" }
  /** The agent has not reported it, or is silent. */
  | { readonly state: "unknown" }
  /** The id of a deployment. `isFinal`: it leads there until something else changes, as with a name that is taken. */
  | {
      readonly state: "at";
      readonly deploymentId: string;
      readonly isFinal: boolean;
      /** The agent has applied the newest route. Until then the report may be from before traffic moved away and back. */
      readonly isSettled: boolean;
      /** What gets a part of the requests by hostname beside it; empty for none. */
      readonly nextDeploymentId?: string;
    };

const noRoute: Traffic = { state: "none" };

/** How long a release may be failing, as with an image that cannot be pulled, before it has failed. */
const failingMaxMs = 30_000;

const endedPhases: ReadonlySet<Phase> = new Set([Phase.RETIRED, Phase.FAILED, Phase.SUPERSEDED]);

export function hasEnded({ phase }: Release): boolean {
  return endedPhases.has(phase);
}

export function currentRelease({ releases }: App): Release | undefined {
  return releases.find(({ phase }) => phase === Phase.CURRENT);
}

export function startingRelease({ releases }: App): Release | undefined {
  return releases.find(({ phase }) => phase === Phase.STARTING);
}

/** Whether time alone may change it. */
export function isActive(app: App): boolean {
  return app.releases.some(({ phase }) => phase === Phase.STARTING || phase === Phase.DRAINING);
}

/** The deployments that should run, oldest first. */
export function wantedDeployments({ releases }: App): readonly ApplyDeployment[] {
  return releases.flatMap((release) =>
    hasEnded(release) || release.template === undefined ? [] : [release.template],
  );
}

/** Its route; undefined without one. Backends are what runs: a release may be reached before traffic moves to it. */
export function wantedRoute(app: App): ApplyRoute | undefined {
  const leadsTo = currentRelease(app)?.template?.deploymentId ?? "";
  const { percent = 0, template } = startingRelease(app) ?? {};
  const next = leadsTo === "" ? undefined : { deploymentId: template?.deploymentId ?? "", percent };
  return app.spec && appRoute(app.spec, leadsTo, wantedDeployments(app), next);
}

/** The app after the steps that are due; the same object if none is. */
export function advance(
  app: App,
  sightOf: (release: Release) => Sight,
  nowMs: number,
  traffic: Traffic = noRoute,
): App {
  const next = clone(AppSchema, app);
  const now = BigInt(Math.trunc(nowMs));
  const starting = startingRelease(next);
  if (starting !== undefined) {
    const sight = sightOf(starting);
    keepFromUnready(starting, sight, now);
    judge(next, starting, next.paused ? { state: "unknown" } : sight, now);
  }
  for (const release of next.releases) {
    if (release.phase === Phase.DRAINING) drain(next, release, traffic, now);
  }
  forgetOld(next);
  return equals(AppSchema, app, next) ? app : next;
}

/** Requests go to what is not seen unready only, also while the app is paused. The time to its deadline starts again. */
function keepFromUnready(release: Release, { state }: Sight, now: bigint): void {
  if (release.percent === 0 || state === "ready" || state === "unknown") return;
  Object.assign(release, { percent: 0, percentAtMs: 0n, startedAtMs: now });
}

function judge(app: App, release: Release, sight: Sight, now: bigint): void {
  const { readyMs, deadlineMs } = policyOf(app.spec?.policy);
  if (sight.state === "unknown") {
    // All times count from the beginning once it is seen again.
    Object.assign(release, { startedAtMs: 0n, readySinceMs: 0n, failingSinceMs: 0n, percentAtMs: 0n });
    return;
  }
  // A clock that was set back must not make a release wait for the time it was set back by.
  const heardSince = BigInt(Math.trunc(sight.heardSinceMs ?? 0));
  const since = (ms: bigint) => earlier(later(ms || now, heardSince), now);
  release.startedAtMs = since(release.startedAtMs);
  if (sight.state === "ready") {
    release.readySinceMs = since(release.readySinceMs);
    release.failingSinceMs = 0n;
    if (now - release.readySinceMs >= readyMs) moveOn(app, release, now);
    return;
  }
  release.readySinceMs = 0n;
  if (sight.state === "refused") {
    end(release, Phase.FAILED, now, sight.reason);
    return;
  }
  if (sight.state === "failing") {
    // Not reset by a pause between two crashes.
    release.failingSinceMs = since(release.failingSinceMs);
    if (now - release.failingSinceMs >= failingMaxMs) {
      end(release, Phase.FAILED, now, sight.reason);
      return;
    }
  }
  if (now - release.startedAtMs >= deadlineMs) {
    const because = sight.reason === "" ? "" : `: ${sight.reason}`;
    end(release, Phase.FAILED, now, `not ready within ${formatDuration(Number(deadlineMs))}${because}`);
  }
}

/** The next step of a release that is ready, if that is due: more requests, or all of them. */
function moveOn(app: App, release: Release, now: bigint): void {
  const { steps, stepMs } = policyOf(app.spec?.policy);
  if (release.percent > 0) {
    release.percentAtMs = earlier(release.percentAtMs || now, now);
    if (now - release.percentAtMs < stepMs) return;
  }
  const hasSteps = (app.spec?.hostnames ?? []).length > 0 && currentRelease(app) !== undefined;
  const next = hasSteps ? steps.find((percent) => percent > release.percent) : undefined;
  if (next === undefined) makeCurrent(app, release, now);
  else Object.assign(release, { percent: next, percentAtMs: now });
}

// A Service that moves reaches the proxies of all nodes within about 3 seconds, and a connection that was opened by then
// gets 2 more.
const routeDrainMinMs = 5_000n;

function drain(app: App, release: Release, traffic: Traffic, now: bigint): void {
  const { drainMs } = policyOf(app.spec?.policy);
  release.drainingAtMs = earlier(release.drainingAtMs, now);
  if (traffic.state === "none") {
    if (now - release.drainingAtMs >= drainMs) retire(release, now);
    return;
  }
  if (traffic.state === "at") {
    const own = release.template?.deploymentId;
    const current = currentRelease(app)?.template?.deploymentId;
    const isAtOwn = traffic.deploymentId === own || traffic.nextDeploymentId === own;
    const hasMoved = !isAtOwn && (traffic.isFinal || traffic.deploymentId === current);
    if (!hasMoved) release.movedAtMs = 0n;
    else if (traffic.isFinal || traffic.isSettled || release.movedAtMs > 0n)
      release.movedAtMs = earlier(release.movedAtMs || now, now);
  }
  if (release.movedAtMs === 0n) return;
  const leastMs = drainMs > routeDrainMinMs ? drainMs : routeDrainMinMs;
  if (now - release.movedAtMs >= leastMs) retire(release, now);
}

function retire(release: Release, now: bigint): void {
  const { currentAtMs, reason } = release;
  const phase = reason === "" ? Phase.SUPERSEDED : Phase.FAILED;
  end(release, currentAtMs > 0n ? Phase.RETIRED : phase, now, reason);
}

function makeCurrent(app: App, to: Release, now: bigint): void {
  const from = currentRelease(app);
  if (from !== undefined) {
    from.phase = Phase.DRAINING;
    from.drainingAtMs = now;
    from.movedAtMs = 0n;
  }
  Object.assign(to, { phase: Phase.CURRENT, percent: 0, percentAtMs: 0n });
  // Later than any other, also after the clock was set back: the order says which release was current before.
  to.currentAtMs = app.releases.reduce((latest, { currentAtMs }) => later(latest, currentAtMs + 1n), now);
  to.drainingAtMs = 0n;
}

function end(release: Release, phase: Phase, now: bigint, reason = ""): void {
  release.phase = phase;
  release.endedAtMs = now;
  release.reason = reason;
}

function forgetOld(app: App): void {
  const { history } = policyOf(app.spec?.policy);
  const ended = app.releases.filter(hasEnded);
  const dropped = new Set(ended.slice(0, Math.max(0, ended.length - history)));
  app.releases = app.releases.filter((release) => !dropped.has(release));
}

function later(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function earlier(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

/** Who makes a release, why, and with which secrets. */
export interface Origin {
  readonly by: string;
  readonly atMs: number;
  readonly cause: string;
  /** The secrets of the environment, as a deployment has them. */
  readonly secrets: Uint8Array<ArrayBuffer>;
}

/**
 * The app with another spec, and with a release of it unless one that starts or is current differs in nothing but the
 * number of pods. So the same spec again starts a release after one that failed.
 */
export function withSpec(app: App | undefined, spec: AppSpec, origin: Origin, firstNumber = 1): App {
  if (app === undefined) {
    return release(create(AppSchema, { spec, nextNumber: firstNumber }), origin);
  }
  const next = scaled(app, spec.template?.replicas ?? 0);
  next.spec = spec;
  if (next.paused) return next;
  const runs = (one: Release | undefined) => one !== undefined && isReleaseOf(spec, one);
  if (runs(startingRelease(next))) return next;
  if (!runs(currentRelease(next))) return release(next, origin);
  // Back to what runs: nothing has to start.
  supersede(next, BigInt(Math.trunc(origin.atMs)));
  return next;
}

/** The app with its program in a new release, also if that already runs. */
export function restarted(app: App, origin: Origin): App {
  return release(app, origin);
}

/**
 * The app with the program of an earlier release, under its own id and name and with as many pods as now. A release that
 * still has all of these pods ready becomes current again at once; what any other ran starts as a new release.
 */
export function backTo(app: App, earlierOne: Release, origin: Origin, sight: Sight): App {
  const { template, phase, number } = earlierOne;
  const own = app.spec?.template;
  if (app.spec === undefined || own === undefined || template === undefined) return app;
  const spec = clone(AppSpecSchema, app.spec);
  const { deploymentId, k8sName, replicas, encryptedEnvironmentVariables } = own;
  const kept = { deploymentId, k8sName, replicas, encryptedEnvironmentVariables };
  spec.template = Object.assign(clone(ApplyDeploymentSchema, template), kept);
  const isReady = phase === Phase.DRAINING && sight.state === "ready" && template.replicas >= replicas;
  if (!isReady) return withSpec(app, spec, origin);
  const next = clone(AppSchema, app);
  next.spec = spec;
  const now = BigInt(Math.trunc(origin.atMs));
  supersede(next, now);
  const again = next.releases.find((each) => each.number === number);
  if (again?.template !== undefined) {
    again.template.replicas = replicas;
    makeCurrent(next, again, now);
  }
  forgetOld(next);
  return next;
}

/**
 * The release to go back to: that with the number, or for 0 the one before: the current one if the newest is starting or has
 * failed, else the one that was current before it. Undefined if there is none.
 */
export function releaseBefore(app: App, number: number): Release | undefined {
  if (number > 0) return app.releases.find((each) => each.number === number);
  const current = currentRelease(app);
  const newest = app.releases.at(-1);
  const isUndecided = newest?.phase === Phase.STARTING || newest?.phase === Phase.FAILED;
  if (isUndecided) return current;
  const others = app.releases.filter((each) => each.currentAtMs > 0n && each !== current);
  return others.sort((a, b) => (a.currentAtMs < b.currentAtMs ? 1 : -1))[0];
}

/** The app with its releases paused or resumed. What was applied meanwhile starts with the latter. */
export function pausedOr(app: App, paused: boolean, origin: Origin): App {
  const next = clone(AppSchema, app);
  next.paused = paused;
  return paused || app.paused === paused || next.spec === undefined
    ? next
    : withSpec(next, next.spec, origin);
}

/** The app with another number of pods, for the releases that do not drain. */
function scaled(app: App, replicas: number): App {
  const next = clone(AppSchema, app);
  const running = next.releases.filter(({ phase }) => phase === Phase.STARTING || phase === Phase.CURRENT);
  for (const { template } of [...running, next.spec ?? {}]) {
    if (template !== undefined) template.replicas = replicas;
  }
  return next;
}

/** The app with a new release of its spec. */
function release(app: App, { by, atMs, cause, secrets }: Origin): App {
  const next = clone(AppSchema, app);
  const now = BigInt(Math.trunc(atMs));
  supersede(next, now);
  const number = next.nextNumber;
  const template = next.spec && releaseTemplate(next.spec, number, secrets);
  const times = { createdAtMs: now, startedAtMs: now };
  next.releases.push(
    create(ReleaseSchema, {
      number,
      phase: Phase.STARTING,
      cause,
      createdBy: by,
      ...times,
      ...(template && { template }),
    }),
  );
  next.nextNumber = number + 1;
  forgetOld(next);
  return next;
}

function supersede(app: App, now: bigint): void {
  const starting = startingRelease(app);
  if (starting === undefined) return;
  if (starting.percent === 0) end(starting, Phase.SUPERSEDED, now);
  // It gets requests, until the agent reports that it does not.
  else
    Object.assign(starting, {
      phase: Phase.DRAINING,
      drainingAtMs: now,
      movedAtMs: 0n,
      percent: 0,
      percentAtMs: 0n,
    });
}
