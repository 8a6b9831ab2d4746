// krane context: lists the configured control planes, and selects the one that commands use.

import { realpath, rename, stat, writeFile } from "node:fs/promises";
import type { Command } from "commander";
import type { SecretRef } from "../../config/secret.ts";
import { printable } from "../../telemetry/scrub.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import { listenForStop } from "../process/stop-request.ts";
import { createPaint } from "../terminal/colours.ts";
import { renderFields, renderTable } from "../terminal/table.ts";
import type { CommandDeps } from "./admin-access.ts";
import { addTargetOptions, loadContextFile, loadTarget } from "./admin-target.ts";
import {
  type ContextFile,
  contextFilePath,
  type Endpoint,
  knownContexts,
  parseContextFile,
} from "./context-file.ts";

const examples = `
Examples:
  krane context list                  every context; * marks the current one
  krane context use production        use it from now on
  krane context show                  the control plane and token in use

The file is $KRANE_CONFIG, else $XDG_CONFIG_HOME/krane/config.toml, else ~/.config/krane/config.toml:

  current = "dev"

  [contexts.dev]
  server = "http://127.0.0.1:7091"
  region = "local.dev"
  token_file = "admin-token"          # or token = "..."; paths are relative to this file
  # ca_file = "ca.pem"                # for https:// with a private CA

  [contexts.dev.vault]                # for krane secrets
  url = "http://127.0.0.1:7092"
  token_file = "vault-token"
`;

export function addContextCommands(
  program: Command,
  deps: CommandDeps,
  exitWith: (code: number) => void,
): void {
  const context = program
    .command("context")
    .description("choose the control plane that commands use")
    .addHelpText("after", examples);
  context
    .command("list")
    .description("list the contexts")
    .addHelpText("after", "\nExample:\n  krane context list\n")
    .action(async () => exitWith(await runList(deps)));
  context
    .command("use <name>")
    .description("make a context the current one")
    .addHelpText("after", "\nExample:\n  krane context use production\n")
    .action(async (name: string) => exitWith(await runUse(name, deps)));
  const show = context.command("show").description("show the control plane and token in use");
  addTargetOptions(show)
    .addHelpText("after", "\nExamples:\n  krane context show\n  krane context show --context production\n")
    .action(async () => exitWith(await runShow(show, deps)));
}

async function runList({ env, io }: CommandDeps): Promise<number> {
  const { contexts, current } = await loadFile({ env, io });
  const rows = [...contexts.values()].map(({ name, server, region }) => [
    name === current ? "*" : "",
    name,
    server.url ?? "",
    region ?? "",
  ]);
  io.stdout.write(renderTable(["CURRENT", "NAME", "SERVER", "REGION"], rows, createPaint(io.stdout, env)));
  return exitCodes.ok;
}

async function runUse(name: string, { env, io }: CommandDeps): Promise<number> {
  const { path, contexts } = await loadFile({ env, io });
  if (!contexts.has(name))
    throw new CommandError(
      "not_found",
      `no context ${printable(name)} in ${path}; ${knownContexts(contexts.keys())}`,
    );
  const stop = listenForStop(io);
  try {
    const text = await io.readTextFile(path, stop.signal);
    await writeContextFile(path, withCurrent({ path, text }, name));
  } finally {
    stop.release();
  }
  io.stdout.write(`switched to context ${name}\n`);
  return exitCodes.ok;
}

async function runShow(command: Command, { env, io }: CommandDeps): Promise<number> {
  const stop = listenForStop(io);
  try {
    const { context, url, token, caFile, region } = await loadTarget(command, env, io, stop.signal);
    io.stdout.write(
      renderFields(
        [
          ["Context", context?.name ?? "none; set by flags and environment"],
          ["Server", url],
          ["Region", region ?? "none; set it with --region"],
          ["Token", env["KRANE_TOKEN"] && token.kind === "inline" ? "in KRANE_TOKEN" : placeOf(token)],
          ["CA", caFile ?? ""],
          ["Vault", vaultText(context?.vault)],
        ],
        createPaint(io.stdout, env),
      ),
    );
    return exitCodes.ok;
  } finally {
    stop.release();
  }
}

function placeOf(token: SecretRef): string {
  return token.kind === "file" ? `in ${token.path}` : "in the contexts file";
}

function vaultText(vault: Endpoint | undefined): string {
  if (vault?.url === undefined) return "";
  return vault.token === undefined
    ? `${vault.url}, without a token`
    : `${vault.url}, token ${placeOf(vault.token)}`;
}

async function loadFile({ env, io }: CommandDeps): Promise<ContextFile> {
  const stop = listenForStop(io);
  try {
    const file = await loadContextFile(env, io, stop.signal);
    if (file !== undefined) return file;
    const path = contextFilePath(env);
    throw new CommandError(
      "config",
      path === undefined
        ? "no contexts file; set KRANE_CONFIG or HOME"
        : `the file ${path} does not exist; create it (see krane context --help), or set KRANE_CONFIG`,
    );
  } finally {
    stop.release();
  }
}

// Changes one line of the contexts file and preserves the rest, comments included.

/** The text with that context as the current one. */
export function withCurrent(file: { readonly path: string; readonly text: string }, name: string): string {
  const line = `current = ${JSON.stringify(name)}`;
  const lines = file.text.split("\n");
  // Everything after the first header belongs to a section.
  const firstHeader = lines.findIndex((text) => /^\s*\[/.test(text));
  const top = firstHeader < 0 ? lines : lines.slice(0, firstHeader);
  const at = top.findIndex((text) => /^\s*(current|"current"|'current')\s*=/.test(text));
  const rest = at < 0 ? lines : lines.slice(at + 1);
  const text = [...(at < 0 ? [] : lines.slice(0, at)), line, ...rest].join("\n");
  // The edit is textual, so check that the result parses to what was asked before writing it.
  const outcome = parseContextFile({ path: file.path, text });
  if (outcome.kind === "valid" && outcome.file.current === name) return text;
  throw new CommandError(
    "failed",
    `${file.path}: krane cannot edit this file; write ${line} as its first line`,
  );
}

/** Atomic: a file truncated by a full disk would lose all contexts. */
async function writeContextFile(path: string, text: string): Promise<void> {
  const target = await realpath(path);
  const { mode } = await stat(target);
  const draft = `${target}.${process.pid}`;
  await writeFile(draft, text, { mode: mode & 0o777, flag: "wx" });
  await rename(draft, target);
}
