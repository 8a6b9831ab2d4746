// The releases of an app as a state machine: a pure function of the app, of what is seen of its deployments, and of the
// time. A release starts beside the current one, becomes the current one after all of its pods have been ready for a
// while, and the other one drains and ends. A release that does not become ready ends without having been current.
//
// - At most one release is starting, and at most one is current.
// - A release becomes current only if it is seen ready in the same step.
// - Every release but the current one ends, whatever is seen. While nothing is known of a release that starts, its time
//   does not count: what is unknown has not failed.
// - A step depends only on what is stored and seen, so that it may be repeated, or made by another server.
import { clone, create, equals } from "@bufbuild/protobuf";
import { formatDuration } from "../../config/duration.ts";
import { type ApplyDeployment, ApplyDeploymentSchema } from "../../gen/ctrl/v1/deployment_pb.ts";
import {
  type App,
  AppSchema,
  type AppSpec,
  Release_Phase as Phase,
  type Release,
  ReleaseSchema,
} from "../../gen/krane/admin/v1/app_pb.ts";
import { releaseTemplate } from "../../kinds/deployment/release-names.ts";
import { policyOf } from "../../kinds/deployment/release-policy.ts";

/** What is seen of a release's deployment. */
export type Sight =
  | { readonly state: "ready" }
  /** Nobody has heard of it for a while. */
  | { readonly state: "unknown" }
  /** `failing` may pass, `refused` does not. */
  | { readonly state: "waiting" | "failing" | "refused"; readonly reason: string };

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

/** The app after the steps that are due; the same object if none is. */
export function advance(app: App, sightOf: (release: Release) => Sight, nowMs: number): App {
  const next = clone(AppSchema, app);
  const now = BigInt(Math.trunc(nowMs));
  const starting = startingRelease(next);
  if (starting !== undefined) judge(next, starting, sightOf(starting), now);
  const { drainMs } = policyOf(next.spec?.policy);
  for (const release of next.releases) {
    if (release.phase !== Phase.DRAINING) continue;
    release.drainingAtMs = earlier(release.drainingAtMs, now);
    if (now - release.drainingAtMs >= drainMs) end(release, Phase.RETIRED, now);
  }
  forgetOld(next);
  return equals(AppSchema, app, next) ? app : next;
}

function judge(app: App, release: Release, sight: Sight, now: bigint): void {
  const { readyMs, deadlineMs } = policyOf(app.spec?.policy);
  if (sight.state === "unknown") {
    // All times count from the beginning once it is seen again.
    Object.assign(release, { startedAtMs: 0n, readySinceMs: 0n, failingSinceMs: 0n });
    return;
  }
  // A clock that was set back must not make a release wait for the time it was set back by.
  release.startedAtMs = earlier(release.startedAtMs || now, now);
  if (sight.state === "ready") {
    release.readySinceMs = earlier(release.readySinceMs || now, now);
    release.failingSinceMs = 0n;
    if (now - release.readySinceMs >= readyMs) makeCurrent(app, release, now);
    return;
  }
  release.readySinceMs = 0n;
  if (sight.state === "refused") {
    end(release, Phase.FAILED, now, sight.reason);
    return;
  }
  if (sight.state === "failing") {
    // Not reset by a pause between two crashes.
    release.failingSinceMs = earlier(release.failingSinceMs || now, now);
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

function makeCurrent(app: App, to: Release, now: bigint): void {
  const from = currentRelease(app);
  if (from !== undefined) {
    from.phase = Phase.DRAINING;
    from.drainingAtMs = now;
  }
  to.phase = Phase.CURRENT;
  to.currentAtMs = now;
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
  const runs = (one: Release | undefined) =>
    one !== undefined && isSameProgram(one.template, releaseTemplate(spec, one.number));
  if (runs(startingRelease(next))) return next;
  if (!runs(currentRelease(next))) return release(next, origin);
  // Back to what runs: nothing has to start.
  supersede(next, BigInt(Math.trunc(origin.atMs)));
  return next;
}

/** The app with another number of pods, for the releases that do not drain. */
export function scaled(app: App, replicas: number): App {
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
  if (starting !== undefined) end(starting, Phase.SUPERSEDED, now);
}

/** Whether two templates differ in nothing but the number of pods and the secrets. */
function isSameProgram(a: ApplyDeployment | undefined, b: ApplyDeployment | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  const bare = { replicas: 0, encryptedEnvironmentVariables: new Uint8Array() };
  const program = (message: ApplyDeployment) => create(ApplyDeploymentSchema, { ...message, ...bare });
  return equals(ApplyDeploymentSchema, program(a), program(b));
}
