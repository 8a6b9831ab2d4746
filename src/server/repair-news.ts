// The repairs that an agent's report has and the previous one had not, as entries of the history of what was repaired.
import type { Repair } from "../gen/krane/v1/agent_pb.ts";
import { kindOfController } from "../kinds/kinds.ts";
import type { AgentReport, HistoryEntry } from "./store.ts";

const outcomeCharsMax = 300;

/** `isSameProcess`: numbers begin again with each process of the agent. */
export function repairNews(
  before: AgentReport | undefined,
  { report, atMs }: AgentReport,
  isSameProcess: boolean,
): HistoryEntry[] {
  return (report.state?.controllers ?? []).flatMap(({ name, repairs }) => {
    const kind = kindOfController(name)?.name;
    if (kind === undefined) return [];
    const known = before?.report.state?.controllers.find((each) => each.name === name)?.repairs ?? [];
    const seen = isSameProcess ? (known.at(-1)?.number ?? 0n) : 0n;
    const fresh = repairs.filter(({ id, number }) => id !== "" && number > seen);
    // A field that somebody keeps writing is one entry of a report, not twenty.
    const alike = new Map<string, Repair[]>();
    for (const repair of fresh) {
      const what = JSON.stringify([repair.id, repair.kind, repair.name, gist(repair.reason)]);
      alike.set(what, [...(alike.get(what) ?? []), repair]);
    }
    return [...alike.values()].flatMap((same) => {
      const last = same.at(-1);
      if (last === undefined) return [];
      const { id, version } = last;
      const outcome = textOf(last, same.length);
      return [{ by: "agent", atMs, kind, id, version, event: "repaired" as const, outcome }];
    });
  });
}

function textOf({ kind, name, reason }: Repair, times: number): string {
  const text = `${kind} ${name}: ${reason}${times > 1 ? ` (${times} times)` : ""}`;
  return text.length > outcomeCharsMax ? `${text.slice(0, outcomeCharsMax)}...` : text;
}

/** Times in it are not news. */
function gist(reason: string): string {
  return reason.replaceAll(/\d+/g, "#");
}
