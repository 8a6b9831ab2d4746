// Flags and help of why, events and status. Their code is imported only when they run, to keep the start of the agent
// fast.
import { type Command, InvalidArgumentError, Option } from "commander";
import { kindNames } from "../../kinds/kinds.ts";
import { addAdminOptions, type CommandDeps, withAdmin } from "../admin/admin-access.ts";
import { regionFlag } from "../admin/admin-target.ts";
import { listed } from "../terminal/word-list.ts";
import type { EventOptions } from "./event-list.ts";

type ExitWith = (code: number) => void;

export function addInsightCommands(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  addWhy(program, deps, exitWith);
  addEvents(program, deps, exitWith);
  addStatus(program, deps, exitWith);
}

function addWhy(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const why = program
    .command("why <object> [id]")
    .description("explain why an object is not ready, and what to do");
  addAdminOptions(why, { output: true })
    .addHelpText(
      "after",
      `
OBJECT is ${listed(kindNames, "or")}, followed by an ID; or just a unique name or id.

Examples:
  krane why hello
  krane why deployment d_hello
  krane why sentinel/gateway
  krane why hello -o json | jq -r .cause    a stable code such as image-pull
`,
    )
    .action(async (first: string, second: string | undefined) =>
      exitWith(
        await withAdmin(why, deps, async (admin) => {
          const { explainObject } = await import("./why-object.ts");
          return explainObject(admin, deps.io, { first, second });
        }),
      ),
    );
}

const limitDefault = 50;
const limitMax = 1_000;

function addEvents(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const events = program
    .command("events [kind] [id]")
    .description("show events, newest last")
    .option("--follow", "keep showing new events until Ctrl-C")
    .addOption(
      new Option("--limit <n>", "how many past events to show").argParser(parseLimit).default(limitDefault),
    );
  addAdminOptions(events, { output: true })
    .addHelpText(
      "after",
      `
Examples:
  krane events                              of all objects in the region
  krane events deployment d_hello
  krane events deployments --follow
  krane events --follow -o json | jq .      one JSON value per event
`,
    )
    .action(async (kind: string | undefined, name: string | undefined) =>
      exitWith(
        await withAdmin(events, deps, async (admin) => {
          const { listEvents } = await import("./event-list.ts");
          return listEvents(admin, deps.io, { kind, name }, events.opts<EventOptions>());
        }),
      ),
    );
}

function addStatus(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const status = program.command("status").description("show the state of the agents of all regions");
  addAdminOptions(status, {
    output: true,
    aboutRegion: "only this region, such as us-east-1.aws (default: all)",
  })
    .addHelpText(
      "after",
      `
CURSOR is the version up to which the agent has processed everything, LAG how many versions it is behind,
UNSETTLED how many objects are still to be processed, REPORTS whether status reports are sent.

Examples:
  krane status
  krane status --region us-east-1.aws       only this one
  krane status -o json | jq '.agents[].state.controllers[].stream.state'
`,
    )
    .action(async () =>
      exitWith(
        await withAdmin(status, deps, async (admin) => {
          const { showStatus } = await import("./agent-status.ts");
          return showStatus(admin, deps.io, regionFlag(status));
        }),
      ),
    );
}

function parseLimit(text: string): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= limitMax) return limit;
  throw new InvalidArgumentError(`Must be a whole number from 1 to ${limitMax}.`);
}
