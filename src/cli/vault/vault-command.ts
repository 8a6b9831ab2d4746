// krane vault: creates master keys, encrypts and decrypts single values, rotates keys, and serves a vault.
import type { Command } from "commander";
import type { ProcessEnv } from "../../config/expand.ts";
import type { BuildInfo } from "../../telemetry/metrics.ts";
import { addConfigOptions } from "../config-source.ts";
import type { Io } from "../io.ts";
import { addVaultServerOptions } from "./vault-access.ts";

const examples = `
Examples:
  (umask 077; krane vault keygen >> master-keys)    create a master key; the last line encrypts
  printf %s "$PASSWORD" | krane vault encrypt --config vault.toml --keyring env_1 --name DB_PASSWORD
  krane vault decrypt --config vault.toml --keyring env_1 --name DB_PASSWORD < encrypted
  krane vault rotate --config vault.toml            after adding a new master key everywhere
  krane vault serve --config vault.toml             for agents that set vault.url

Values are read from standard input or a file, never from the command line.
`;

const ofVault = (path: string) => path.startsWith("vault.");

export function addVaultCommands(
  program: Command,
  { env, io, build }: { readonly env: ProcessEnv; readonly io: Io; readonly build: BuildInfo },
  exitWith: (code: number) => void,
): void {
  const vault = program
    .command("vault")
    .description("encrypt and decrypt values, manage keys, serve a vault")
    .addHelpText("after", examples);

  vault
    .command("keygen")
    .description("print a new master key")
    .addHelpText("after", "\nExample:\n  (umask 077; krane vault keygen >> master-keys)\n")
    .action(async () => {
      const { runKeygen } = await import("./vault-value-commands.ts");
      exitWith(runKeygen(io));
    });

  const encrypt = vault.command("encrypt").description("encrypt the value on standard input");
  addConfigOptions(addValueOptions(encrypt).option("--exact", "keep a final newline"), ofVault)
    .addHelpText(
      "after",
      '\nExample:\n  printf %s "$PASSWORD" | krane vault encrypt -c vault.toml --keyring env_1 --name DB_PASSWORD\n\nOne newline at the end is not part of the value; --exact keeps it.\n',
    )
    .action(async () => {
      const { runEncrypt } = await import("./vault-value-commands.ts");
      exitWith(await runEncrypt(encrypt, env, io));
    });

  const decrypt = vault.command("decrypt").description("decrypt the value on standard input");
  addConfigOptions(addValueOptions(decrypt), ofVault)
    .addHelpText(
      "after",
      "\nExample:\n  krane vault decrypt -c vault.toml --keyring env_1 --name DB_PASSWORD < encrypted\n",
    )
    .action(async () => {
      const { runDecrypt } = await import("./vault-value-commands.ts");
      exitWith(await runDecrypt(decrypt, env, io));
    });

  const rotate = vault
    .command("rotate")
    .description("re-encrypt every data key with the newest master key; safe to interrupt and run again");
  addConfigOptions(rotate, ofVault)
    .addHelpText(
      "after",
      "\nTo replace a master key:\n  1. krane vault keygen, appended as the last line of vault.master_keys of every vault and agent\n  2. krane vault rotate -c vault.toml\n  3. remove the old lines\n",
    )
    .action(async () => {
      const { runRotate } = await import("./vault-value-commands.ts");
      exitWith(await runRotate(rotate, env, io));
    });

  const serve = vault.command("serve").description("serve VaultService until SIGTERM or SIGINT");
  addVaultServerOptions(serve)
    .addHelpText("after", "\nExample:\n  krane vault serve -c vault.toml --rpc-port 8060\n")
    .action(async () => {
      const { runServe } = await import("./vault-server.ts");
      exitWith(await runServe(serve, env, io, build));
    });
}

function addValueOptions(command: Command): Command {
  return command
    .requiredOption("--keyring <name>", "the keyring; krane uses the id of the environment")
    .option("--name <name>", "the name of the value, such as the variable's; bound into the ciphertext")
    .option("--in <path>", "read this file instead of standard input");
}
