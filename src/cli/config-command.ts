// krane config check, krane config print: look at a configuration without running it.
import type { Command } from "commander";
import { findUnusableFiles } from "../agent/named-files.ts";
import { renderConfig } from "../config/render.ts";
import { loadConfig } from "./config-source.ts";
import { renderErrors } from "./error-text.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Environment, Io } from "./io.ts";

/** Also reads the files that the configuration names, as a start would. */
export async function checkConfig(command: Command, env: Environment, io: Io): Promise<number> {
  const { signal } = new AbortController();
  const loaded = await loadConfig(command, env, io, signal);
  if (!loaded) return exitCodes.config;
  const unusable = await findUnusableFiles(loaded.config, io, signal);
  if (unusable.length > 0) {
    io.stderr.write(unusable.map(renderErrors).join(""));
    return exitCodes.config;
  }
  io.stdout.write("ok\n");
  return exitCodes.ok;
}

export async function printConfig(command: Command, env: Environment, io: Io): Promise<number> {
  const loaded = await loadConfig(command, env, io, new AbortController().signal);
  if (!loaded) return exitCodes.config;
  io.stdout.write(renderConfig(loaded));
  return exitCodes.ok;
}
