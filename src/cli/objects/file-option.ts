// The flag -f of commands that read documents.
import type { Command } from "commander";
import { CommandError } from "../command-error.ts";

/** Paths without -f are parsed as well, but only for an error that shows the right command. */
export function addFileOption(command: Command): Command {
  return command
    .argument("[path...]")
    .usage("[options] -f <path...>")
    .option("-f, --file <path...>", "files or folders of documents; - for standard input");
}

export function filePaths(command: Command): readonly string[] {
  const { file } = command.opts<{ file?: readonly string[] }>();
  const [stray] = command.args;
  const name = command.name();
  if (file === undefined && stray === undefined)
    throw new CommandError("usage", `nothing to ${name}: pass -f FILE`);
  if (stray === undefined) return file ?? [];
  const paths = [...(file ?? []), ...command.args].map((path) => `-f ${path}`);
  throw new CommandError("usage", `${stray} needs a -f: krane ${name} ${paths.join(" ")}`);
}
