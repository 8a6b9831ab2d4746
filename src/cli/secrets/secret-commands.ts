// krane secrets: its words and flags; what it does is imported when it is done, because an agent must not pay for it
// at its start.
import type { Command } from "commander";
import { addAdminOptions, type CommandDeps, withAdmin } from "../admin/admin-access.ts";

type ExitWith = (code: number) => void;

export function addSecretCommands(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const secrets = program
    .command("secrets")
    .description("set and remove the secrets that the deployments of an environment get")
    .addHelpText(
      "after",
      `
Examples:
  krane secrets set env_demo DB_PASSWORD                    asks for the value, and does not show it
  pass show db | krane secrets set env_demo DB_PASSWORD     from standard input
  krane secrets list env_demo                               the names; values cannot be read back
  krane secrets unset env_demo DB_PASSWORD

A deployment takes the secrets that its environment has when it is first applied. The value is encrypted by the vault
of the context before it is sent, and is never an argument, which everybody on the machine can read.
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
    .description("set a secret to the value that is typed or on standard input")
    .option("--in <path>", "read this file instead of standard input")
    .option("--exact", "keep a newline at the end of the value")
    .option("-c, --config <path>", "encrypt with the vault of this configuration instead of the context's");
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
