// What needs a person, most urgent first. Pure.
import type { AgentView } from "../../gen/krane/admin/v1/admin_pb.ts";
import { StreamStatus_State as Stream } from "../../gen/krane/v1/agent_pb.ts";
import { heardAtMs, isSilent } from "../../why/silence.ts";
import { ageText, counted } from "./words.ts";

export interface Need {
  readonly region: string;
  readonly text: string;
  /** What the page about it shows. */
  readonly about: "region" | "troubled" | "held";
}

export function needsOf(agents: Iterable<AgentView>, nowMs: number): readonly Need[] {
  const ranked = [...agents].flatMap((agent) => needsOfRegion(agent, nowMs));
  return ranked.toSorted((a, b) => a.rank - b.rank || (a.region < b.region ? -1 : 1));
}

function needsOfRegion(agent: AgentView, nowMs: number): readonly (Need & { readonly rank: number })[] {
  const { region, state, blockedDeletions } = agent;
  const heard = heardAtMs(agent);
  if (heard === 0n) return [{ rank: 1, region, text: "No agent has ever connected.", about: "region" }];
  if (isSilent(agent, nowMs)) {
    const text = `The agent is silent: last heard ${ageText(Number(heard), nowMs)} ago.`;
    return [{ rank: 0, region, text, about: "region" }];
  }
  const controllers = state?.controllers ?? [];
  const sum = (field: "parked" | "conflicts" | "failing" | "retrying") =>
    controllers.reduce((total, controller) => total + controller[field], 0);
  const down = controllers.filter(({ stream }) => stream?.state === Stream.BACKING_OFF);
  const needs: (Need & { readonly rank: number })[] = [];
  const need = (rank: number, count: number, text: string, about: Need["about"]) => {
    if (count > 0) needs.push({ rank, region, text, about });
  };
  need(
    2,
    down.length,
    `No stream from the control plane: ${down.map(({ name }) => name).join(", ")}.`,
    "region",
  );
  need(
    3,
    blockedDeletions.length,
    `${counted(blockedDeletions.length, "deletion is", "deletions are")} held back.`,
    "held",
  );
  need(
    4,
    sum("failing"),
    `${counted(sum("failing"), "object has", "objects have")} pods that cannot run.`,
    "troubled",
  );
  need(5, sum("parked"), `${counted(sum("parked"), "object was", "objects were")} rejected.`, "troubled");
  need(
    6,
    sum("conflicts"),
    `${counted(sum("conflicts"), "name is", "names are")} taken by other objects.`,
    "troubled",
  );
  need(
    7,
    sum("retrying"),
    `${counted(sum("retrying"), "object is", "objects are")} being retried.`,
    "troubled",
  );
  for (const warning of state?.warnings ?? [])
    needs.push({ rank: 8, region, text: warning, about: "region" });
  return needs;
}
