// Changes one line of the contexts file and preserves the rest, comments included.
import { realpath, rename, stat, writeFile } from "node:fs/promises";
import { CommandError } from "../command-error.ts";
import { parseContextFile } from "./context-file.ts";

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
export async function writeContextFile(path: string, text: string): Promise<void> {
  const target = await realpath(path);
  const { mode } = await stat(target);
  const draft = `${target}.${process.pid}`;
  await writeFile(draft, text, { mode: mode & 0o777, flag: "wx" });
  await rename(draft, target);
}
