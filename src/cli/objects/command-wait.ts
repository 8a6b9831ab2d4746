// The flags for --wait, and the wait with its output for people.
import { type Command, InvalidArgumentError, Option } from "commander";
import { createSystemClock } from "../../concurrency/clock.ts";
import { parseDuration } from "../../config/duration.ts";
import type { Admin } from "../admin/admin-access.ts";
import type { Io } from "../io.ts";
import type { WaitPlan } from "./object-wait.ts";

const timeoutMsDefault = 5 * 60_000;

export function addWaitOptions(command: Command, until: string): Command {
  return command.option("--wait", `wait until ${until}`).addOption(waitTimeout());
}

export function waitTimeout(): Option {
  return new Option("--timeout <duration>", "the longest time to wait")
    .default(timeoutMsDefault, "5m")
    .argParser(parseTimeout);
}

/** Ctrl-C ends only the wait, not the change itself, and a message says so. */
export async function waitAndTell(admin: Admin, io: Io, plan: WaitPlan): Promise<void> {
  const { titleOf } = await import("./object-search.ts");
  const { createProgressLine } = await import("../terminal/progress-line.ts");
  const { readyText, phaseCell } = await import("./object-rows.ts");
  const { waitForObjects } = await import("./object-wait.ts");
  const { olderText } = await import("./wait-verdict.ts");
  try {
    await waitForObjects(
      plan,
      {
        client: admin.client,
        clock: createSystemClock(),
        progress: createProgressLine(io.stderr),
        onDone(ref, object) {
          const ready = object === undefined || plan.goal === "deleted" ? "" : readyText(object);
          const { text, tone } =
            object === undefined || plan.goal === "deleted"
              ? { text: "Deleted", tone: "faint" as const }
              : phaseCell(object);
          const older = object === undefined ? "" : olderText(object);
          const pods = ready === "" ? "" : `, ${ready} pods${older}`;
          const word = older === "" ? text.toLowerCase() : "running";
          io.stdout.write(`${titleOf(ref)} is ${admin.paint(word, tone)}${pods}\n`);
        },
      },
      admin.signal,
    );
  } catch (error) {
    if (admin.signal.aborted) io.stderr.write("stopped waiting; the change itself continues\n");
    throw error;
  }
}

function parseTimeout(text: string): number {
  const timeoutMs = parseDuration(text);
  if (timeoutMs !== undefined && timeoutMs > 0) return timeoutMs;
  throw new InvalidArgumentError("Must be a duration such as 30s, 5m or 1h30m.");
}
