// The repairs that an agent's report has and the previous one had not, as entries of the history of what was repaired.
import type { Repair } from "../gen/krane/v1/agent_pb.ts";
import { kindOfController } from "../kinds/kinds.ts";
import type { AgentReport, HistoryEntry } from "./store.ts";
import { isSameProcess } from "./trouble-news.ts";

const outcomeCharsMax = 300;

/** Of two reports as they were received, the later one last. */
export function repairNews(before: AgentReport | undefined, after: AgentReport): HistoryEntry[] {
  const { report, atMs } = after;
  const isSame = isSameProcess(before, after);
  return (report.state?.controllers ?? []).flatMap(({ name, repairs }) => {
    const kind = kindOfController(name)?.name;
    if (kind === undefined) return [];
    const known = before?.report.state?.controllers.find((each) => each.name === name)?.repairs ?? [];
    const last = known.at(-1)?.number ?? 0n;
    // Numbers begin again with each process. Two that report in turns must not tell everything each time.
    const isNew = ({ number, atMs: madeAtMs }: Repair) =>
      isSame ? number > last : Number(madeAtMs) > (before?.atMs ?? 0);
    const fresh = repairs.filter((repair) => repair.id !== "" && isNew(repair));
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
