// Flags and help of krane hostnames. Its code is imported only when it runs, to keep the start of the agent fast.
import type { Command } from "commander";
import { addAdminOptions, type CommandDeps, withAdmin } from "../admin/admin-access.ts";

type ExitWith = (code: number) => void;

export function addHostnameCommands(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const hostnames = program
    .command("hostnames")
    .description("say which workspace may use a hostname")
    .addHelpText(
      "after",
      `
Examples:
  krane hostnames grant shop.example.com ws_acme        apps of ws_acme may have this name
  krane hostnames grant '*.acme.example.com' ws_acme    and every name below acme.example.com
  krane hostnames list
  krane hostnames revoke shop.example.com

A grant holds in all regions. The most specific one decides, so a name below a wildcard can belong to another
workspace. A name that an app or route has cannot be revoked, or granted to somebody else.
`,
    );
  const grant = hostnames.command("grant <name> <workspace>").description("let a workspace use a hostname");
  addAdminOptions(grant)
    .addHelpText("after", "\nExample:\n  krane hostnames grant shop.example.com ws_acme\n")
    .action(async (name: string, workspace: string) =>
      exitWith(
        await withAdmin(grant, deps, async (admin) => {
          const { grantHostname } = await import("./granted-hostnames.ts");
          return grantHostname(admin, deps.io, { name, workspace });
        }),
      ),
    );
  const revoke = hostnames.command("revoke <name>").description("take a grant back");
  addAdminOptions(revoke)
    .addHelpText("after", "\nExample:\n  krane hostnames revoke shop.example.com\n")
    .action(async (name: string) =>
      exitWith(
        await withAdmin(revoke, deps, async (admin) => {
          const { revokeHostname } = await import("./granted-hostnames.ts");
          return revokeHostname(admin, deps.io, name);
        }),
      ),
    );
  const list = hostnames
    .command("list")
    .description("list the grants")
    .option("--workspace <id>", "only those of this workspace");
  addAdminOptions(list, { output: true })
    .addHelpText("after", "\nExamples:\n  krane hostnames list\n  krane hostnames list --workspace ws_acme\n")
    .action(async ({ workspace }: { readonly workspace?: string }) =>
      exitWith(
        await withAdmin(list, deps, async (admin) => {
          const { listHostnames } = await import("./granted-hostnames.ts");
          return listHostnames(admin, deps.io, workspace);
        }),
      ),
    );
}
