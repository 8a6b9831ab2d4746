// Flags and help of why, events and status. Their code is imported only when they run, to keep the start of the agent
// fast.
import { type Command, InvalidArgumentError, Option } from "commander";
import { addAdminOptions, type CommandDeps, withAdmin } from "../admin/admin-access.ts";
import { regionFlag } from "../admin/admin-target.ts";
import type { AdoptOptions } from "./adopt-objects.ts";
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
OBJECT is an id, a name or NAMESPACE/NAME, alone or behind its kind: hello, app/hello, app hello, demo/hello.

Examples:
  krane why hello
  krane why app/hello
  krane why deployment d_hello
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
  krane events hello                        of one object
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

export function addDeletionCommands(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const deletions = program
    .command("deletions")
    .description("list and release the deletions that an agent is holding back")
    .addHelpText(
      "after",
      `
An agent deletes what the control plane tells it to delete. If an object merely went missing from the control plane,
the agent holds back its deletion where that may be a mistake, until an operator releases it.

Examples:
  krane deletions list
  krane deletions release deployments demo/hello
`,
    );
  const list = deletions.command("list").description("list the held-back deletions");
  addAdminOptions(list, { output: true })
    .addHelpText("after", "\nExamples:\n  krane deletions list\n  krane deletions list -o json\n")
    .action(async () =>
      exitWith(
        await withAdmin(list, deps, async (admin) => {
          const { listDeletions } = await import("./held-deletions.ts");
          return listDeletions(admin, deps.io);
        }),
      ),
    );
  const release = deletions
    .command("release <controller> <key>")
    .description("allow a held-back deletion; controller and key are as in the list");
  addAdminOptions(release)
    .addHelpText("after", "\nExample:\n  krane deletions release deployments demo/hello\n")
    .action(async (controller: string, key: string) =>
      exitWith(
        await withAdmin(release, deps, async (admin) => {
          const { releaseDeletion } = await import("./held-deletions.ts");
          return releaseDeletion(admin, deps.io, { controller, key });
        }),
      ),
    );
}

export function addAdoptCommand(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const adopt = program
    .command("adopt [name...]")
    .description("let an agent take over objects that carry the seal of another krane")
    .option("--kind <kind>", "only this Kubernetes kind, such as ReplicaSet")
    .option("--namespace <namespace>", "only this namespace")
    .option("--dry-run", "only show what would be adopted")
    .option("-y, --yes", "do not ask for confirmation");
  addAdminOptions(adopt, { output: true })
    .addHelpText(
      "after",
      `
An agent neither changes nor deletes objects that are sealed with an unknown key, for another region or for another
cluster. After a lost key, a renamed region or a restored cluster these are its own objects, and this command makes
them its own again. It shows them first, and asks.

Only objects that desired state names by kind, namespace, name and id are adopted, and only with the uid that was
shown. All others are left alone. Nothing is deleted. An object that differs from desired state is updated after that.
Stop any other krane that uses this key or region first: two agents would change the objects back and forth.

NAME is a name, NAMESPACE/NAME or an id.

Examples:
  krane adopt --dry-run                             what would be adopted, and why
  krane adopt                                       asks first
  krane adopt --namespace demo --yes
  krane adopt --kind ReplicaSet hello demo/web
  krane adopt --dry-run -o json | jq '.strangers[].reason'
`,
    )
    .action(async (names: readonly string[]) =>
      exitWith(
        await withAdmin(adopt, deps, async (admin) => {
          const { adoptObjects } = await import("./adopt-objects.ts");
          return adoptObjects(admin, deps.io, names, adopt.opts<AdoptOptions>());
        }),
      ),
    );
}
