// Flags and help of krane logs. Its code is imported only when it runs.
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseDuration } from "../../config/duration.ts";
import { addAdminOptions, type CommandDeps, withAdmin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import type { LogOptions } from "./read-logs.ts";

const tailMax = 1_000_000;

export function addLogsCommand(program: Command, deps: CommandDeps, exitWith: (code: number) => void): void {
  const logs = program
    .command("logs <object> [name]")
    .description("show the logs of an app, a deployment or a pod")
    .option("-f, --follow", "go on with new lines, new pods and new releases until Ctrl-C")
    .option("--previous", "of the container that ran before the last restart")
    .addOption(new Option("--tail <n>", "only the last lines of each pod").argParser(parseTail))
    .addOption(new Option("--since <duration>", "only lines of this time, such as 10m").argParser(parseSince))
    .option("-c, --container <name>", "the container, if a pod has several")
    .option("--timestamps", "print the time of each line");
  addAdminOptions(logs)
    .addHelpText(
      "after",
      `
OBJECT is an app, a deployment or a pod: app/web, deployment/d_web, pod/web-x7k2p, or just a unique name.

Examples:
  krane logs web                            of all pods of an app
  krane logs -f --tail 20 app/web           the last 20 lines of each pod, then new ones
  krane logs --previous pod/web-x7k2p       why did its last container end?
  krane logs --since 10m web > web.log

With several pods, each line begins with the name of its pod. The token needs the role logs, and the region's agent the
chart option agent.logs.enabled. The control plane stores nothing of the logs. What comes faster than it can be read is
dropped, and the place says how many lines.
`,
    )
    .action(async (first: string, second: string | undefined) => {
      const options = logs.opts<LogOptions>();
      if (options.follow && options.previous)
        throw new CommandError("usage", "pass either --follow or --previous: that container has ended");
      exitWith(
        await withAdmin(logs, deps, async (admin) => {
          const { readLogs } = await import("./read-logs.ts");
          return readLogs(admin, deps.io, { first, second }, options);
        }),
      );
    });
}

function parseTail(text: string): number {
  const lines = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN;
  if (lines <= tailMax) return lines;
  throw new InvalidArgumentError(`Must be a number of lines up to ${tailMax}.`);
}

function parseSince(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined && ms > 0) return ms;
  throw new InvalidArgumentError("Must be a duration such as 30s, 10m or 2h.");
}
