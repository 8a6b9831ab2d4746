// Waits until apps are on the release that was applied: it is current, its pods are ready, and traffic has moved to it.
import { ConnectError } from "@connectrpc/connect";
import { createSystemClock, sleep } from "../../concurrency/clock.ts";
import { formatDuration } from "../../config/duration.ts";
import { type AppView, ObjectView_Phase as ObjectPhase } from "../../gen/krane/admin/v1/admin_pb.ts";
import { Release_Phase as Phase, type Release } from "../../gen/krane/admin/v1/app_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import { releasesOf, trafficOf } from "../../why/app-releases.ts";
import type { Admin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import type { Io } from "../io.ts";
import { readyText } from "../objects/object-rows.ts";
import { isPassing } from "../objects/object-wait.ts";
import { stateText } from "../objects/wait-verdict.ts";
import { createProgressLine } from "../terminal/progress-line.ts";

const pollMs = 500;

export interface AppliedApp {
  readonly region: string;
  readonly id: string;
  /** The release to wait for; 0 for the one that runs, or will run, what was applied. */
  readonly release: number;
}

export interface AppWaitPlan {
  readonly apps: readonly AppliedApp[];
  readonly timeoutMs: number;
}

/** One app after the other: together they take as long as the slowest. */
export async function waitForApps(admin: Admin, io: Io, { apps, timeoutMs }: AppWaitPlan): Promise<void> {
  const clock = createSystemClock();
  const progress = createProgressLine(io.stderr);
  const startedMs = clock.nowMs();
  try {
    for (const app of apps) {
      const title = `app/${printable(app.id)}`;
      for (;;) {
        const verdict = await look(admin, app);
        if (verdict.kind === "done") {
          progress.clear();
          io.stdout.write(`${title} is ${admin.paint("ready", "good")}, ${verdict.text}\n`);
          break;
        }
        if (verdict.kind === "failed") throw new CommandError("failed", `${title}: ${verdict.text}`);
        const waitedMs = clock.nowMs() - startedMs;
        if (waitedMs > timeoutMs) {
          const time = formatDuration(timeoutMs);
          throw new CommandError("failed", `not done after ${time}: ${title}: ${verdict.text}`);
        }
        progress.show(
          `${title}: ${verdict.text}`,
          `, ${formatDuration(Math.trunc(waitedMs / 1_000) * 1_000)}`,
        );
        await sleep(clock, pollMs, admin.signal);
      }
    }
  } catch (error) {
    if (admin.signal.aborted) io.stderr.write("stopped waiting; the release itself continues\n");
    throw error;
  } finally {
    progress.clear();
  }
}

interface AppVerdict {
  readonly kind: "done" | "waiting" | "failed";
  readonly text: string;
}

async function look({ client, signal }: Admin, { region, id, release }: AppliedApp): Promise<AppVerdict> {
  try {
    const { app } = await client.getApp({ region, id }, { signal });
    return app === undefined
      ? { kind: "failed", text: "it does not exist" }
      : verdictOn(app, release, `app/${printable(id)}`);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ConnectError) || !isPassing(error)) throw error;
    return { kind: "waiting", text: "the control plane does not respond" };
  }
}

/** `number`: the release to wait for; 0 for the one that runs, or will run, what was applied. */
export function verdictOn(view: AppView, number: number, title: string): AppVerdict {
  const releases = view.app?.releases ?? [];
  if (view.app?.paused)
    return { kind: "failed", text: `its releases are paused; to resume them: krane rollout resume ${title}` };
  const { starting, failed, current } = releasesOf(view);
  const release =
    number === 0
      ? ((starting ?? failed ?? current)?.release ?? releases.at(-1))
      : releases.find((each) => each.number === number);
  if (release === undefined) return { kind: "failed", text: `release ${number} has ended` };
  const name = `release ${release.number}`;
  switch (release.phase) {
    case Phase.CURRENT: {
      const deployment = releasesOf(view).current?.deployment;
      const isReady = deployment?.phase === ObjectPhase.READY || deployment?.phase === ObjectPhase.PAUSED;
      const traffic = isReady ? trafficOf(view) : "none";
      if (traffic === "refused")
        return { kind: "failed", text: `on ${name}, but its route failed; see krane why ${title}` };
      if (traffic === "moving")
        return { kind: "waiting", text: `on ${name}, its traffic has not moved yet; see krane why ${title}` };
      // Its policy is a part of it, and so is that krane get routes says the same.
      if (traffic === "moved" && view.route?.phase === ObjectPhase.WAITING)
        return { kind: "waiting", text: `on ${name}, the agent has not applied its route yet` };
      if (isReady) return { kind: "done", text: `on ${name}, ${readyText(deployment)} pods` };
      return { kind: "waiting", text: `on ${name}, ${stateText(deployment)}` };
    }
    case Phase.STARTING:
      return { kind: "waiting", text: startingText(view, release) };
    case Phase.FAILED:
      return { kind: "failed", text: `${failureText(view, release)}; see krane why ${title}` };
    default:
      return { kind: "failed", text: `a newer release has replaced ${name}` };
  }
}

function startingText(view: AppView, release: Release): string {
  const name = `release ${release.number}`;
  if (release.readySinceMs > 0n) return `${name} is ready; checking that it stays so`;
  const deployment = releasesOf(view).starting?.deployment;
  const state =
    deployment?.phase === ObjectPhase.READY ? `${readyText(deployment)} pods ready` : stateText(deployment);
  return `${name} is starting, ${state}`;
}

function failureText(view: AppView, { number, reason }: Release): string {
  const { current } = releasesOf(view);
  const stays = current === undefined ? "" : `; the app stays on release ${current.number}`;
  return `release ${number} failed: ${printable(reason)}${stays}`;
}
