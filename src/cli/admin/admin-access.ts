// Shared by all commands that call a control plane: the flags for its address, a client, the output format, and the
// error messages.
//
//   const get = addAdminOptions(program.command("get"), { output: true });
//   get.action(async () => exitWith(await withAdmin(get, deps, async (admin) => { ... return exitCodes.ok; })));
//
// Calls take `{ signal: admin.signal }`; a stream takes `...endless` (admin-client.ts) as well. Objects are found
// with object-search.ts, shown with table.ts, age.ts and output.ts. A command reports failures as CommandError.
// Ctrl-C ends each of them with 130 and without a message.
import { Code, ConnectError } from "@connectrpc/connect";
import type { Command } from "commander";
import { createSystemClock } from "../../concurrency/clock.ts";
import type { ProcessEnv } from "../../config/expand.ts";
import type { Secret, SecretRef } from "../../config/secret.ts";
import { createSecretSource } from "../../config/secret-source.ts";
import { bearerToken } from "../../config/secret-types.ts";
import { CommandError } from "../command-error.ts";
import type { Io } from "../io.ts";
import { runInterruptible } from "../process/interruptible.ts";
import { createPaint, type Paint } from "../terminal/colours.ts";
import { addOutputOption, type OutputFormat, outputOf } from "../terminal/output.ts";
import type { AdminClient } from "./admin-client.ts";
import { type AdminTarget, addTargetOptions, loadTarget } from "./admin-target.ts";

export interface CommandDeps {
  readonly env: ProcessEnv;
  readonly io: Io;
}

export interface Admin {
  /** Calls time out after 10 s. They throw a ConnectError, which `withAdmin` turns into a message. */
  readonly client: AdminClient;
  readonly target: AdminTarget;
  /** The region to work in. Throws if neither flag, environment nor context names one. */
  readonly region: string;
  readonly output: OutputFormat;
  /** Of the output format "path". */
  readonly path: string;
  /** Colours for standard output. */
  readonly paint: Paint;
  /** Wall time in milliseconds since 1970. */
  now(): number;
  /** Turns a failed call into a message. `withAdmin` does this for errors that a command does not catch. */
  explain(error: ConnectError): CommandError;
  readonly signal: AbortSignal;
  close(): void;
}

/** Adds the flags that `openAdmin` reads. */
export function addAdminOptions(
  command: Command,
  {
    output = false,
    aboutRegion,
  }: { readonly output?: boolean | readonly OutputFormat[]; readonly aboutRegion?: string } = {},
): Command {
  const more = output === true || output === false ? [] : output;
  return addTargetOptions(output === false ? command : addOutputOption(command, more), aboutRegion);
}

/** Connects with the first call. Rejects with a CommandError if the context is incomplete. */
export async function openAdmin(
  command: Command,
  env: ProcessEnv,
  io: Io,
  signal: AbortSignal,
): Promise<Admin> {
  const target = await loadTarget(command, env, io, signal);
  const token = await loadSecret(target.token, io, signal);
  const ca = target.caFile === undefined ? undefined : await loadFile(target.caFile, "ca_file", io, signal);
  // Imported here to keep the start of the agent fast, which never needs it.
  const { createAdminClient } = await import("./admin-client.ts");
  const { commandErrorOf } = await import("./admin-refusal.ts");
  const { client, close } = createAdminClient({ url: target.url, token, ca });
  const clock = createSystemClock();
  return {
    client,
    target,
    get region() {
      if (target.region !== undefined) return target.region;
      const place = target.context === undefined ? "" : `, or add region to context ${target.context.name}`;
      throw new CommandError("config", `no region; set it with --region or KRANE_REGION${place}`);
    },
    ...outputOf(command),
    paint: createPaint(io.stdout, env),
    now: () => clock.wallMs(),
    explain: (error) => commandErrorOf(error, target, token.reveal()),
    signal,
    close,
  };
}

/** Runs a command that calls a control plane, from its flags to its exit code. */
export async function withAdmin(
  command: Command,
  { env, io }: CommandDeps,
  work: (admin: Admin) => Promise<number>,
): Promise<number> {
  return runInterruptible(io, async (signal) => {
    const admin = await openAdmin(command, env, io, signal);
    try {
      return await work(admin);
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      throw (await flawOfCall(admin, error)) ?? admin.explain(error);
    } finally {
      admin.close();
    }
  });
}

/**
 * The error if a call failed for a cause that only another call can tell: its region is unknown, or the control plane is
 * too old for it. `region` defaults to that of the command.
 */
export async function flawOfCall(
  admin: Admin,
  error: unknown,
  region: string | undefined = admin.target.region,
): Promise<CommandError | undefined> {
  if (error instanceof ConnectError && error.code === Code.Unimplemented) return olderServer(admin);
  const isRefused = error instanceof ConnectError && error.code === Code.FailedPrecondition;
  if (!isRefused || region === undefined) return undefined;
  const { unknownRegion } = await import("./known-regions.ts");
  return unknownRegion(admin, region).catch(() => undefined);
}

/** Every control plane lists its agents. One that does serves the admin API, and only lacks the call. */
async function olderServer({ client, target, signal }: Admin): Promise<CommandError | undefined> {
  try {
    await client.listAgents({ region: "" }, { signal });
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
  return new CommandError(
    "failed",
    `the control plane at ${target.url} is too old for this; update it, or use a krane of its version`,
  );
}

/** Reads a token. Rejects with an error that names the file. */
async function loadSecret(ref: SecretRef, io: Io, signal: AbortSignal): Promise<Secret> {
  const clock = createSystemClock();
  const deps = { readTextFile: io.readTextFile, nowMs: () => clock.nowMs() };
  return createSecretSource(ref, deps, bearerToken()).current(signal);
}

/** Reads the text file that the context names under the key. Rejects with a CommandError that names both. */
export async function loadFile(path: string, key: string, io: Io, signal: AbortSignal): Promise<string> {
  try {
    return await io.readTextFile(path, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw new CommandError(
      "config",
      `${key}: cannot read ${path}: ${error instanceof Error ? error.message : error}`,
    );
  }
}
