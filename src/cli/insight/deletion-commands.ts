// Flags and help of krane deletions. Its code is imported only when it runs, to keep the start of the agent fast.
import type { Command } from "commander";
import { addAdminOptions, type CommandDeps, withAdmin } from "../admin/admin-access.ts";

export function addDeletionCommands(
  program: Command,
  deps: CommandDeps,
  exitWith: (code: number) => void,
): void {
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
