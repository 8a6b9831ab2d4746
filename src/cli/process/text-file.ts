// Reads small text files written by users or Kubernetes.
import { constants, createReadStream, fstat, open } from "node:fs";
import { Socket } from "node:net";
import { addAbortSignal, type Readable } from "node:stream";
import { isatty, ReadStream as TerminalStream } from "node:tty";
import { promisify } from "node:util";

const mebibyte = 1024 * 1024;

/**
 * Reads pipes as well as files, so that `--config <(decrypt krane.toml)` works. A pipe has no size, so the limit applies
 * to the bytes read.
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

/** Has a code, so that callers can recognise it and add a remedy. */
export function tooLarge(bytesMax: number): Error {
  return Object.assign(new Error(`larger than ${bytesMax / mebibyte} MiB`), { code: "EFBIG" });
}

/**
 * Node opens and reads files in threads that cannot be interrupted, and the process cannot exit before they are done. A
 * pipe without a writer would block one forever, so it is opened without blocking and read by the event loop.
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
