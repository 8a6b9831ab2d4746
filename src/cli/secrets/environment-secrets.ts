// krane secrets: manages the secrets that new deployments of an environment get. The vault encrypts a value before it is
// sent to the control plane, which never sees the plaintext and never returns the secret (K7).
import type { Command } from "commander";
import { EnvironmentSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { findVariableNameFlaw } from "../../kinds/deployment/secrets-blob.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin, CommandDeps } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { findEnvironment } from "../objects/environment-search.ts";
import { withoutFinalNewline } from "../process/input.ts";
import { isForPrograms, jsonOf, renderValue } from "../terminal/output.ts";
import { renderTable } from "../terminal/table.ts";
import { encryptSecret } from "./secret-encryption.ts";

export interface SetSecretOptions {
  readonly in?: string;
  readonly exact?: true;
}

// All secrets of a deployment share one environment variable of its pods, which can hold no more.
const valueBytesMax = 96 * 1024;

const takesEffect = "this applies to new deployments; existing ones keep their secrets\n";

export async function setSecret(
  admin: Admin,
  deps: CommandDeps,
  command: Command,
  { environment, name }: { readonly environment: string; readonly name: string },
): Promise<number> {
  const flaw = findVariableNameFlaw(name);
  if (flaw !== undefined) throw new CommandError("usage", `${printable(name)} ${flaw}`);
  const { client, region, signal } = admin;
  // Checked before the prompt, so that nobody types a secret for an environment that does not exist.
  await findEnvironment(admin, environment);
  const read = () => readValue(deps.io, name, command.opts<SetSecretOptions>(), signal);
  const encrypted = await encryptSecret({ keyring: environment, name, read }, admin, deps, command);
  await client.setSecret({ region, environmentId: environment, name, encrypted }, { signal });
  deps.io.stdout.write(`secret ${printable(name)} of environment ${printable(environment)} is set\n`);
  deps.io.stderr.write(takesEffect);
  return exitCodes.ok;
}

export async function unsetSecret(
  { client, region, signal }: Admin,
  io: Io,
  { environment, name }: { readonly environment: string; readonly name: string },
): Promise<number> {
  await client.unsetSecret({ region, environmentId: environment, name }, { signal });
  io.stdout.write(`secret ${printable(name)} of environment ${printable(environment)} is removed\n`);
  io.stderr.write(takesEffect);
  return exitCodes.ok;
}

export async function listSecrets(admin: Admin, io: Io, id: string): Promise<number> {
  const { output, paint } = admin;
  const environment = await findEnvironment(admin, id);
  if (isForPrograms(output)) {
    io.stdout.write(await renderValue(jsonOf(EnvironmentSchema, environment), output));
    return exitCodes.ok;
  }
  if (environment.secretNames.length === 0) io.stderr.write(`environment ${printable(id)} has no secrets\n`);
  else
    io.stdout.write(
      renderTable(
        ["NAME"],
        environment.secretNames.map((name) => [name]),
        paint,
      ),
    );
  return exitCodes.ok;
}

async function readValue(
  io: Io,
  name: string,
  { in: path, exact }: SetSecretOptions,
  signal: AbortSignal,
): Promise<string> {
  const typed = path === undefined ? await io.askHidden?.(`Value of ${name} (hidden): `, signal) : undefined;
  const text = typed ?? (await io.readInput?.(path, valueBytesMax, signal)) ?? "";
  const value = exact || typed !== undefined ? text : withoutFinalNewline(text);
  if (value === "")
    throw new CommandError("usage", "the value is empty; to remove a secret, use krane secrets unset");
  return value;
}
