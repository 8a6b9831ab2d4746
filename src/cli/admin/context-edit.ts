// Changes one line of the contexts file and leaves the rest as its owner wrote it, comments included.
import { realpath, rename, stat, writeFile } from "node:fs/promises";
import { CommandError } from "../command-error.ts";
import { parseContextFile } from "./context-file.ts";

/** The text with that context as the current one. */
export function withCurrent(file: { readonly path: string; readonly text: string }, name: string): string {
  const line = `current = ${JSON.stringify(name)}`;
  const lines = file.text.split("\n");
  // What stands below the first header belongs to a section.
  const firstHeader = lines.findIndex((text) => /^\s*\[/.test(text));
  const top = firstHeader < 0 ? lines : lines.slice(0, firstHeader);
  const at = top.findIndex((text) => /^\s*(current|"current"|'current')\s*=/.test(text));
  const rest = at < 0 ? lines : lines.slice(at + 1);
  const text = [...(at < 0 ? [] : lines.slice(0, at)), line, ...rest].join("\n");
  // Whatever else a file may hold that this does not foresee: no other text than a right one is written.
  const outcome = parseContextFile({ path: file.path, text });
  if (outcome.kind === "valid" && outcome.file.current === name) return text;
  throw new CommandError(
    "failed",
    `${file.path}: cannot be changed by krane; write ${line} into its first line`,
  );
}

/** All or nothing: a file cut short by a full disk would be the loss of every context. */
export async function writeContextFile(path: string, text: string): Promise<void> {
  const target = await realpath(path);
  const { mode } = await stat(target);
  const draft = `${target}.${process.pid}`;
  await writeFile(draft, text, { mode: mode & 0o777, flag: "wx" });
  await rename(draft, target);
}
