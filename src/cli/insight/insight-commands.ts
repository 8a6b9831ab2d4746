// The commands that look into what happens: why, events, status. Here are their words and flags; what they do is
// imported when it is done, because an agent must not pay for it at its start.
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
    .description("say what stands in the way of an object, and what to do");
  addAdminOptions(why, { output: true })
    .addHelpText(
      "after",
      `
OBJECT is ${listed(kindNames, "or")} with an ID, or alone a name or id that only one object has.

Examples:
  krane why hello
  krane why deployment d_hello
  krane why sentinel/gateway
  krane why hello -o json | jq -r .cause    a word that does not change, such as image-pull
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
    .description("show what happened, the newest last")
    .option("--follow", "go on with what happens from now on, until Ctrl-C")
    .addOption(
      new Option("--limit <n>", "how many of those that happened to show")
        .argParser(parseLimit)
        .default(limitDefault),
    );
  addAdminOptions(events, { output: true })
    .addHelpText(
      "after",
      `
Examples:
  krane events                              of everything in the region
  krane events deployment d_hello
  krane events deployments --follow
  krane events --follow -o json | jq .      one JSON value for each event
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
  const status = program.command("status").description("show how the agents of all regions are doing");
  addAdminOptions(status, {
    output: true,
    aboutRegion: "only this region, such as us-east-1.aws (default: all)",
  })
    .addHelpText(
      "after",
      `
CURSOR is the version up to which everything is settled, LAG how many versions there are beyond what
the agent has dealt with, UNSETTLED how many objects wait to be settled,
REPORTS whether what runs can be reported.

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
  throw new InvalidArgumentError(`It must be a whole number from 1 to ${limitMax}.`);
}
