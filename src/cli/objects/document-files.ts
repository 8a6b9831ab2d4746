// The files of `-f`: single ones, all of a folder, or standard input for `-`. In the order in which they were
// named, and within a folder by name, so that a run can be repeated.
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileCharsMax } from "../../documents/parse.ts";
import { splitRemedy } from "../../documents/yaml-trees.ts";
import { CommandError } from "../command-error.ts";
import type { Io } from "../io.ts";

export interface TextFile {
  readonly name: string;
  readonly text: string;
}

/** Each character has at least one byte. */
const bytesMax = fileCharsMax;
const filesMax = 1_000;
const inFolder = /\.(ya?ml|json)$/i;

export async function readDocumentFiles(
  paths: readonly string[],
  io: Io,
  signal: AbortSignal,
): Promise<readonly TextFile[]> {
  if (paths.filter((path) => path === "-").length > 1)
    throw new CommandError("usage", "standard input can be read once, and -f - is there twice");
  const files: TextFile[] = [];
  for (const path of paths) files.push(...(await readOne(path, io, signal)));
  return files;
}

async function readOne(path: string, io: Io, signal: AbortSignal): Promise<readonly TextFile[]> {
  if (path === "-") return [await readStandardInput(io, signal)];
  try {
    return [await readFile(path, io, signal)];
  } catch (error) {
    if (systemCode(error) === "EISDIR") return readFolder(path, io, signal);
    throw unreadable(path, error, signal);
  }
}

async function readStandardInput(io: Io, signal: AbortSignal): Promise<TextFile> {
  if (io.readInput === undefined) throw new TypeError("no standard input to read");
  const name = "standard input";
  try {
    return { name, text: await io.readInput(undefined, bytesMax, signal) };
  } catch (error) {
    if (systemCode(error) !== "EFBIG") throw error;
    throw new CommandError("failed", `${name}: is larger than ${bytesMax / 1024 / 1024} MiB; ${splitRemedy}`);
  }
}

async function readFile(path: string, io: Io, signal: AbortSignal): Promise<TextFile> {
  // A pipe in a folder may have nobody who writes to it, and would be waited for without end. What the system lends a
  // name to, such as /dev/stdin and the /dev/fd/63 of a shell, has a writer.
  const isPipe = (await stat(path).catch(() => undefined))?.isFIFO();
  if (isPipe && !path.startsWith("/dev/") && !path.startsWith("/proc/"))
    throw new CommandError("failed", `${path}: is a pipe and no file; pipe it to -f - instead`);
  return { name: path, text: await io.readTextFile(path, signal, bytesMax) };
}

function unreadable(path: string, error: unknown, signal: AbortSignal): unknown {
  signal.throwIfAborted();
  if (error instanceof CommandError) return error;
  const code = systemCode(error) === "ENOENT" ? "not_found" : "failed";
  const reason = error instanceof Error ? error.message : error;
  const remedy = systemCode(error) === "EFBIG" ? `; ${splitRemedy}` : "";
  return new CommandError(code, `${path}: cannot be read: ${reason}${remedy}`);
}

async function readFolder(folder: string, io: Io, signal: AbortSignal): Promise<readonly TextFile[]> {
  const names = (await readdir(folder)).filter((name) => inFolder.test(name)).sort();
  if (names.length === 0)
    throw new CommandError("not_found", `${folder}: has no .yaml, .yml or .json file in it`);
  if (names.length > filesMax)
    throw new CommandError("failed", `${folder}: has more than ${filesMax} files in it`);
  const files: TextFile[] = [];
  for (const name of names) {
    const path = join(folder, name);
    try {
      files.push(await readFile(path, io, signal));
    } catch (error) {
      throw unreadable(path, error, signal);
    }
  }
  return files;
}

function systemCode(error: unknown): unknown {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && "code" in cause ? cause.code : undefined;
}
