// krane status: shows the state of each agent, one line per controller, followed by its problems.
import { create } from "@bufbuild/protobuf";
import { type AgentView, ListAgentsResponseSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import {
  BreakerStatus_State as Breaker,
  type ControllerStatus,
  LeaseStatus_Role,
  StreamStatus_State as Stream,
} from "../../gen/krane/v1/agent_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import { controllerOf } from "../../why/facts.ts";
import { heardAtMs, isSilent, isStale } from "../../why/silence.ts";
import type { Admin } from "../admin/admin-access.ts";
import { unknownRegion } from "../admin/known-regions.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { ageOf } from "../terminal/age.ts";
import type { Paint, Tone } from "../terminal/colours.ts";
import { isForPrograms, jsonOf, renderValue } from "../terminal/output.ts";
import { type Cell, renderTable } from "../terminal/table.ts";
import { adoptHint, sealsText } from "./seal-table.ts";

/** `region`: only this region; undefined for all. */
export async function showStatus(admin: Admin, io: Io, region: string | undefined): Promise<number> {
  const { client, signal, output, paint } = admin;
  const answer = await client.listAgents({ region: region ?? "" }, { signal });
  if (region !== undefined && answer.agents.length === 0) {
    const flaw = await unknownRegion(admin, region);
    if (flaw !== undefined) throw flaw;
  }
  if (isForPrograms(output)) {
    io.stdout.write(
      await renderValue(jsonOf(ListAgentsResponseSchema, create(ListAgentsResponseSchema, answer)), output),
    );
    return exitCodes.ok;
  }
  if (answer.agents.length === 0)
    io.stderr.write("no regions yet; add one with a token in server.agent_tokens\n");
  io.stdout.write(answer.agents.map((agent) => agentText(agent, Number(answer.nowMs), paint)).join("\n"));
  return exitCodes.ok;
}

function agentText(agent: AgentView, nowMs: number, paint: Paint): string {
  const { region, state, newestVersion } = agent;
  const newest = `newest version ${newestVersion}`;
  if (heardAtMs(agent) === 0n)
    return `Region ${printable(region)}: ${paint("no agent has ever connected", "bad")}; ${newest}\n`;
  const heard = paint(
    `last heard ${ageOf(heardAtMs(agent), nowMs)} ago`,
    isSilent(agent, nowMs) ? "bad" : "good",
  );
  const reported = state === undefined ? "" : `agent ${printable(state.version)}, `;
  const version = state?.inferred ? "agent of the original (state inferred from its streams), " : reported;
  // The agent may be alive and fail to report its state.
  const isOld = state !== undefined && isStale(agent.stateAtMs, nowMs);
  const old = isOld ? paint(`, state from ${ageOf(agent.stateAtMs, nowMs)} ago`, "bad") : "";
  const title = `Region ${printable(region)}: ${version}${heard}${old}, ${newest}\n`;
  const controllers = state?.controllers ?? [];
  const table =
    controllers.length === 0
      ? ""
      : renderTable(
          titles,
          controllers.map((controller) => rowOf(controller, agent, isOld)),
          paint,
        );
  const warnings = (state?.warnings ?? []).map((warning) => `warning: ${printable(warning)}`);
  const problems = [
    ...otherClusters(agent, nowMs),
    ...warnings,
    ...controllers.flatMap((controller) => problemsOf(controller)),
  ].map((line) => `  ${paint(line, "bad")}\n`);
  const lease = leaseText(agent, nowMs);
  const held = heldBackCount(agent);
  const hint =
    held === 0
      ? ""
      : `  ${held} held-back ${held === 1 ? "deletion" : "deletions"}: krane deletions list --region ${printable(region)}\n`;
  const originals = originalsText(controllers);
  const seals = `${sealsText(controllers, isOld, paint)}${adoptHint(controllers, region)}`;
  return `${title}${lease}${indented(table)}${problems.join("")}${hint}${originals}${indented(seals)}`;
}

/** Agents list only some of many held-back deletions, and count all. */
export function heldBackCount({ state, blockedDeletions: listed }: AgentView): number {
  const counted = (state?.controllers ?? []).reduce((sum, { blockedDeletions }) => sum + blockedDeletions, 0);
  return Math.max(listed.length, counted);
}

/** Warnings of clusters that claim the same region. */
export function otherClusters({ state, region }: AgentView, nowMs: number): readonly string[] {
  return (state?.otherClusters ?? []).map(({ clusterId, instanceId, heardAtMs }) => {
    const other = `cluster ${printable(clusterId)} (agent ${printable(instanceId)}, last heard ${ageOf(heardAtMs, nowMs)} ago)`;
    const own = `cluster ${printable(state?.clusterId ?? "")} (agent ${printable(state?.instanceId ?? "")})`;
    return `warning: two clusters claim region ${printable(region)}: ${own} and ${other}; their reports overwrite each other`;
  });
}

function originalsText(controllers: readonly ControllerStatus[]): string {
  const pods = controllers.reduce((sum, { originalPods }) => sum + originalPods, 0);
  if (pods === 0) return "";
  const [who, them] = pods === 1 ? ["1 pod", "it is"] : [`${pods} pods`, "they are"];
  return `  ${who} of the original krane: served secrets for a token of the API server until ${them} replaced\n`;
}

/** Standbys say only that they are there. */
function leaseText({ state, standbys }: AgentView, nowMs: number): string {
  const lease = state?.lease;
  if (lease?.role !== LeaseStatus_Role.LEADER) return "";
  const held = `for ${ageOf(lease.sinceMs, nowMs)}`;
  const heard = standbys
    .filter(({ heardAtMs }) => !isStale(heardAtMs, nowMs))
    .map(
      ({ instanceId, heardAtMs }) => `${printable(instanceId)} (last heard ${ageOf(heardAtMs, nowMs)} ago)`,
    );
  return `  leader: ${printable(lease.leader)} ${held}, lease renewed ${ageOf(lease.renewedAtMs, nowMs)} ago
  standbys: ${heard.join(", ") || "none heard"}\n`;
}

const titles = [
  "CONTROLLER",
  "STREAM",
  "CURSOR",
  "LAG",
  "UNSETTLED",
  "QUEUE",
  "REPORTS",
  "OBJECTS",
  "PARKED",
  "RETRYING",
  "CONFLICTS",
  "FAILING",
  "BLOCKED",
] as const;

const streamWords: Readonly<Record<Stream, readonly [word: string, tone: Tone | undefined]>> = {
  [Stream.UNSPECIFIED]: ["not started", "busy"],
  [Stream.CONNECTING]: ["connecting", "busy"],
  [Stream.OPEN]: ["open", "good"],
  [Stream.BACKING_OFF]: ["down", "bad"],
  [Stream.STOPPED]: ["stopped", "bad"],
  [Stream.UNSUPPORTED]: ["unsupported", undefined],
};

const breakerWords: Readonly<Record<Breaker, readonly [word: string, tone: Tone | undefined]>> = {
  [Breaker.UNSPECIFIED]: ["", undefined],
  [Breaker.CLOSED]: ["sent", "good"],
  [Breaker.OPEN]: ["held back", "bad"],
  // The next report closes the breaker, but there is nothing to report until something changes.
  [Breaker.HALF_OPEN]: ["sent", "good"],
};

/** How many versions the controller is behind. */
function lagOf({ name, stream }: ControllerStatus, { newestVersions }: AgentView): number {
  const newest = newestVersions.find(({ kind }) => controllerOf(kind) === name)?.version ?? 0n;
  const { cursor = 0n, settledUpTo = 0n } = stream ?? {};
  const done = cursor > settledUpTo ? cursor : settledUpTo;
  return newest > done ? Number(newest - done) : 0;
}

// What an old state says about connections is no longer known; the numbers are shown with the age of the state.
const unknownCell: Cell = { text: "unknown", tone: "bad" };

function rowOf(controller: ControllerStatus, agent: AgentView, isOld: boolean): Cell[] {
  const { name, stream, queue, breaker, objects, parked, retrying, conflicts, failing, blockedDeletions } =
    controller;
  const [streamWord, streamTone] = streamWords[stream?.state ?? Stream.UNSPECIFIED] ?? ["unknown", "bad"];
  const [breakerWord, breakerTone] = breakerWords[breaker?.state ?? Breaker.UNSPECIFIED] ?? [
    "unknown",
    "bad",
  ];
  const queued = (queue?.waiting ?? 0) + (queue?.inFlight ?? 0);
  return [
    name,
    isOld ? unknownCell : { text: streamWord, tone: streamTone },
    `${stream?.cursor ?? 0n}`,
    count(lagOf(controller, agent), "busy"),
    count(stream?.unsettled.length ?? 0, "busy"),
    count(queued, "busy"),
    isOld ? unknownCell : { text: breakerWord, tone: breakerTone },
    `${objects}`,
    count(parked, "bad"),
    count(retrying, "bad"),
    count(conflicts, "bad"),
    count(failing, "bad"),
    count(blockedDeletions, "bad"),
  ];
}

function count(value: number, tone: Tone): Cell {
  return { text: `${value}`, tone: value === 0 ? undefined : tone };
}

function problemsOf({ name, stream, caches }: ControllerStatus): string[] {
  const isDown =
    stream !== undefined &&
    stream.state !== Stream.OPEN &&
    stream.state !== Stream.UNSUPPORTED &&
    stream.lastError !== "";
  const down = isDown ? [`${name}: stream: ${stream.lastErrorCode}: ${stream.lastError}`] : [];
  const blind = caches
    .filter(({ lastError }) => lastError !== "")
    .map(
      ({ kind, lastError, synced }) => `${name}: ${kind}: ${synced ? "" : "not loaded yet: "}${lastError}`,
    );
  const ignored = stream?.ignoredResponses ?? 0n;
  const old =
    ignored === 0n
      ? []
      : [
          `${name}: a server on an old database still answers: ${ignored} responses ignored since the agent started`,
        ];
  return [...down, ...old, ...blind].map(printable);
}

function indented(text: string): string {
  return text.replaceAll(/^(?=.)/gm, "  ");
}
