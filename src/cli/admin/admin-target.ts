// Determines which control plane a command calls, and with which token. Flags override the environment, which overrides
// the context.
import type { Command } from "commander";
import type { ProcessEnv } from "../../config/expand.ts";
import { renderProblems } from "../../config/render.ts";
import { Secret, type SecretRef } from "../../config/secret.ts";
import { bearerToken } from "../../config/secret-types.ts";
import { url } from "../../config/url-types.ts";
import { printable } from "../../telemetry/scrub.ts";
import { CommandError } from "../command-error.ts";
import type { Io } from "../io.ts";
import {
  type Context,
  type ContextFile,
  contextFilePath,
  knownContexts,
  parseContextFile,
  plainHttpProblem,
  regionName,
} from "./context-file.ts";

export interface AdminTarget {
  /** The context in use; undefined if flags and environment set everything. */
  readonly context: Context | undefined;
  readonly url: string;
  readonly token: SecretRef;
  /** Where the token comes from, for messages: `--token-file`, `KRANE_TOKEN`, or the context. */
  readonly tokenFrom: string;
  readonly caFile: string | undefined;
  readonly region: string | undefined;
}

interface TargetFlags {
  readonly context?: string;
  readonly server?: string;
  readonly tokenFile?: string;
  readonly region?: string;
}

const regionHelp = "the region, such as us-east-1.aws (default: $KRANE_REGION, else the context's)";

/** Adds the flags for the control plane, token and region. */
export function addTargetOptions(command: Command, aboutRegion = regionHelp): Command {
  return command
    .option("--context <name>", "the context to use (default: $KRANE_CONTEXT, else the current one)")
    .option("--region <region>", aboutRegion)
    .option("--server <url>", "the control plane (default: $KRANE_SERVER, else the context's)")
    .option("--token-file <path>", "a file with the token (default: $KRANE_TOKEN, else the context's)");
}

/** The region from the flag alone, not from the environment or the context. */
export function regionFlag(command: Command): string | undefined {
  return command.opts<TargetFlags>().region;
}

export async function loadTarget(
  command: Command,
  env: ProcessEnv,
  io: Io,
  signal: AbortSignal,
): Promise<AdminTarget> {
  const flags = command.opts<TargetFlags>();
  const file = await loadContextFile(env, io, signal);
  const context = chosenContext(file, flags.context, env);
  const missing = (what: string, key: string, ways: string) =>
    new CommandError("config", missingText({ what, key, ways }, context, file, env));
  const address = named([
    ["--server", flags.server],
    ["KRANE_SERVER", env["KRANE_SERVER"]],
  ]);
  const server = address === undefined ? context?.server.url : checkedUrl(address);
  if (server === undefined) throw missing("control plane", "server", "--server or KRANE_SERVER");
  const token = givenToken(flags, env) ?? contextToken(context, address, server);
  if (token === undefined) throw missing("token", "token_file", "--token-file or KRANE_TOKEN");
  const region = named([
    ["--region", flags.region],
    ["KRANE_REGION", env["KRANE_REGION"]],
  ]);
  return {
    context,
    url: server,
    token,
    tokenFrom: tokenOrigin(flags, env, context),
    caFile: context?.server.caFile,
    region: region === undefined ? context?.region : checked(region, regionName.fromText(region.text)),
  };
}

/** The contexts file; undefined if it does not exist and KRANE_CONFIG does not name it. */
export async function loadContextFile(
  env: ProcessEnv,
  io: Io,
  signal: AbortSignal,
): Promise<ContextFile | undefined> {
  const path = contextFilePath(env);
  if (path === undefined) return undefined;
  let text: string;
  try {
    text = await io.readTextFile(path, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!env["KRANE_CONFIG"] && isMissing(error)) return undefined;
    const reason = error instanceof Error ? error.message : String(error);
    const remedy = env["KRANE_CONFIG"] ? "; check KRANE_CONFIG" : "";
    throw new CommandError("config", `${path}: cannot be read: ${reason}${remedy}`);
  }
  const outcome = parseContextFile({ path, text });
  if (outcome.kind === "valid") return outcome.file;
  throw new CommandError("config", renderProblems(outcome.problems).trimEnd());
}

function chosenContext(
  file: ContextFile | undefined,
  flag: string | undefined,
  env: ProcessEnv,
): Context | undefined {
  const name = flag ?? (env["KRANE_CONTEXT"] || file?.current);
  if (name === undefined) return undefined;
  const context = file?.contexts.get(name);
  if (context !== undefined) return context;
  const place =
    file === undefined
      ? `the file ${contextFilePath(env) ?? ""} does not exist`
      : knownContexts(file.contexts.keys());
  throw new CommandError("config", `no context ${printable(name)}: ${place.trimEnd()}`);
}

function givenToken(flags: TargetFlags, env: ProcessEnv): SecretRef | undefined {
  if (flags.tokenFile !== undefined)
    return { kind: "file", path: flags.tokenFile, setting: "token", shownAs: "--token-file" };
  const variable = env["KRANE_TOKEN"];
  if (!variable) return undefined;
  const parsed = bearerToken().fromText(variable);
  if (parsed.kind === "ok") return { kind: "inline", secret: new Secret(variable) };
  throw new CommandError("config", `KRANE_TOKEN: ${parsed.message}; ${parsed.remedy}`);
}

function tokenOrigin(flags: TargetFlags, env: ProcessEnv, context: Context | undefined): string {
  if (flags.tokenFile !== undefined) return `--token-file ${printable(flags.tokenFile)}`;
  if (env["KRANE_TOKEN"] || context === undefined) return "KRANE_TOKEN";
  const key = context.server.token?.kind === "file" ? "token_file" : "token";
  return `${key} of context ${context.name}`;
}

/** A context's token is sent only to its own server: a copied command or variable with another address must not leak it. */
function contextToken(
  context: Context | undefined,
  address: NamedText | undefined,
  server: string,
): SecretRef | undefined {
  const { url: own, token } = context?.server ?? {};
  if (context === undefined || token === undefined || address === undefined) return token;
  if (own !== undefined && new URL(own).origin === new URL(server).origin) return token;
  const problem =
    own === undefined
      ? `context ${context.name} has a token but no server, so the token is not sent there`
      : `the token of context ${context.name} is for ${new URL(own).origin} only`;
  throw new CommandError("config", `${address.where}: ${problem}; pass one with --token-file or KRANE_TOKEN`);
}

interface NamedText {
  readonly where: string;
  readonly text: string;
}

// Templates often export a variable that is empty, which counts as not set.
function named(
  choices: readonly (readonly [where: string, text: string | undefined])[],
): NamedText | undefined {
  for (const [where, text] of choices) if (text) return { where, text };
  return undefined;
}

function checkedUrl(address: NamedText): string {
  const parsed = checked(address, url().fromText(address.text));
  const insecure = plainHttpProblem(parsed);
  if (insecure === undefined) return parsed;
  throw new CommandError("config", `${address.where}: ${insecure.message}; ${insecure.remedy}`);
}

function checked({ where }: NamedText, parsed: ReturnType<typeof regionName.fromText>): string {
  if (parsed.kind === "ok") return parsed.value;
  throw new CommandError("config", `${where}: ${parsed.message}; ${parsed.remedy}`);
}

function missingText(
  { what, key, ways }: { readonly what: string; readonly key: string; readonly ways: string },
  context: Context | undefined,
  file: ContextFile | undefined,
  env: ProcessEnv,
): string {
  if (context !== undefined)
    return `context ${context.name} has no ${what}; add ${key} to it, or use ${ways}`;
  if (file !== undefined && file.contexts.size > 0)
    return `no current context; choose one with krane context use NAME; ${knownContexts(file.contexts.keys())}`;
  const path = contextFilePath(env);
  const place = path === undefined ? "" : `, or write a context to ${path}`;
  return (
    `no ${what}; set it with ${ways}${place}; ` +
    "krane dev and krane server --data-dir print the KRANE_CONFIG to use"
  );
}

function isMissing(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && "code" in cause && cause.code === "ENOENT";
}
