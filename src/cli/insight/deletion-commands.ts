// krane deletions: its words and flags; what it does is imported when it is done, because an agent must not pay for
// it at its start.
import type { Command } from "commander";
import { addAdminOptions, type CommandDeps, withAdmin } from "../admin/admin-access.ts";

export function addDeletionCommands(
  program: Command,
  deps: CommandDeps,
  exitWith: (code: number) => void,
): void {
  const deletions = program
    .command("deletions")
    .description("see and release the deletions that an agent holds back")
    .addHelpText(
      "after",
      `
An agent deletes what it is told to delete. What the control plane merely does not know any more is held back where
that may be a mistake, until somebody says that it is none.

Examples:
  krane deletions list
  krane deletions release deployments demo/hello
`,
    );
  const list = deletions.command("list").description("list what is held back");
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
    .description("say that a deletion is right; both are as in the list");
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
