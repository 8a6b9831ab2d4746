// Flags and help of krane secrets. Its code is imported only when it runs, to keep the start of the agent fast.
import type { Command } from "commander";
import { addAdminOptions, type CommandDeps, withAdmin } from "../admin/admin-access.ts";

type ExitWith = (code: number) => void;

export function addSecretCommands(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const secrets = program
    .command("secrets")
    .description("manage the secrets of an environment's deployments")
    .addHelpText(
      "after",
      `
Examples:
  krane secrets set env_demo DB_PASSWORD                    prompts for the value
  pass show db | krane secrets set env_demo DB_PASSWORD     from standard input
  krane secrets list env_demo                               the names; values cannot be read back
  krane secrets unset env_demo DB_PASSWORD

A deployment gets the secrets that its environment has when it is first applied, and a release of an app those that
it has when the release starts. After a change, krane release APP --restart releases them. The vault of the context
encrypts the value before it is sent. A value is never an argument, because every user of the machine could read it.
`,
    );
  addSetSecret(secrets, deps, exitWith);
  const unset = secrets.command("unset <environment> <name>").description("remove a secret");
  addAdminOptions(unset)
    .addHelpText("after", "\nExample:\n  krane secrets unset env_demo DB_PASSWORD\n")
    .action(async (environment: string, name: string) =>
      exitWith(
        await withAdmin(unset, deps, async (admin) => {
          const { unsetSecret } = await import("./environment-secrets.ts");
          return unsetSecret(admin, deps.io, { environment, name });
        }),
      ),
    );
  const list = secrets.command("list <environment>").description("list the names of the secrets");
  addAdminOptions(list, { output: true })
    .addHelpText("after", "\nExample:\n  krane secrets list env_demo\n")
    .action(async (environment: string) =>
      exitWith(
        await withAdmin(list, deps, async (admin) => {
          const { listSecrets } = await import("./environment-secrets.ts");
          return listSecrets(admin, deps.io, environment);
        }),
      ),
    );
}

function addSetSecret(secrets: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const set = secrets
    .command("set <environment> <name>")
    .description("set a secret; prompts for the value or reads standard input")
    .option("--in <path>", "read this file instead of standard input")
    .option("--exact", "keep a final newline")
    .option("-c, --config <path>", "encrypt with the vault of this configuration, not the context's");
  addAdminOptions(set)
    .addHelpText(
      "after",
      `
Examples:
  krane secrets set env_demo DB_PASSWORD
  krane secrets set env_demo TLS_KEY --in key.pem --exact
`,
    )
    .action(async (environment: string, name: string) =>
      exitWith(
        await withAdmin(set, deps, async (admin) => {
          const { setSecret } = await import("./environment-secrets.ts");
          return setSecret(admin, deps, set, { environment, name });
        }),
      ),
    );
}
