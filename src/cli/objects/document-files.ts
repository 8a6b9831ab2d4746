// Reads the files of `-f`: single files, folders, or standard input for `-`. They are read in the order given, and by
// name within a folder, so that a run is reproducible.
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
    throw new CommandError("usage", "-f - was given twice, but standard input can be read only once");
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
  // Reading a named pipe without a writer would block forever. /dev/stdin and a shell's /dev/fd/63 do have a writer.
  const isPipe = (await stat(path).catch(() => undefined))?.isFIFO();
  if (isPipe && !path.startsWith("/dev/") && !path.startsWith("/proc/"))
    throw new CommandError("failed", `${path}: is a pipe, not a file; pipe it to -f - instead`);
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
    throw new CommandError("not_found", `${folder}: contains no .yaml, .yml or .json file`);
  if (names.length > filesMax)
    throw new CommandError("failed", `${folder}: contains more than ${filesMax} files`);
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
