// Flags and help of krane adopt. Its code is imported only when it runs, to keep the start of the agent fast.
import type { Command } from "commander";
import { addAdminOptions, type CommandDeps, withAdmin } from "../admin/admin-access.ts";
import type { AdoptOptions } from "./adopt-objects.ts";

export function addAdoptCommand(program: Command, deps: CommandDeps, exitWith: (code: number) => void): void {
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
