// Reads the small text files that a person or Kubernetes puts in place.
import { constants, createReadStream, fstat, open } from "node:fs";
import { Socket } from "node:net";
import { addAbortSignal, type Readable } from "node:stream";
import { isatty, ReadStream as TerminalStream } from "node:tty";
import { promisify } from "node:util";

const mebibyte = 1024 * 1024;

/**
 * Takes pipes as well as files, so that `--config <(decrypt krane.toml)` works; hence
 * the limit is on what comes rather than on the size of the file.
 */
export async function readTextFile(
  path: string,
  signal: AbortSignal,
  bytesMax: number = mebibyte,
): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of addAbortSignal(signal, await openText(path))) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > bytesMax) throw tooLarge(bytesMax);
    }
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    throw new Error(explain(cause), { cause });
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** By its code a command that knows what to do about it can say so. */
export function tooLarge(bytesMax: number): Error {
  return Object.assign(new Error(`larger than ${bytesMax / mebibyte} MiB`), { code: "EFBIG" });
}

/**
 * Files are opened and read in threads that nothing can interrupt, and the process cannot
 * exit before they are done. A pipe to which nobody writes would hold one for ever, so
 * opening does not wait, and what may come later is read by the event loop.
 */
async function openText(path: string): Promise<Readable> {
  const fd = await promisify(open)(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if (isatty(fd)) return new TerminalStream(fd);
  const isPipe = (await promisify(fstat)(fd)).isFIFO();
  return isPipe ? new Socket({ fd, readable: true, writable: false }) : createReadStream(path, { fd });
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  ENOTDIR: "no such file",
  EACCES: "permission denied",
  EISDIR: "is a folder",
};

// Node repeats the path and the system call; the caller names the path already.
function explain(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  return reasons[code ?? ""] ?? message;
}
