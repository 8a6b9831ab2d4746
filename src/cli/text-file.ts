// Reads the small text files that a person or Kubernetes puts in place.
import { createReadStream } from "node:fs";

const bytesMax = 1024 * 1024;

/**
 * Takes pipes as well as files, so that `--config <(decrypt krane.toml)` works; hence
 * the limit is on what comes rather than on the size of the file.
 */
export async function readTextFile(path: string, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of createReadStream(path, { signal })) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > bytesMax) throw new Error("larger than 1 MiB");
    }
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    throw new Error(explain(cause), { cause });
  }
  return Buffer.concat(chunks).toString("utf8");
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
