// Stores data keys in a folder: `<folder>/keyring/<keyring>/<name>`, one small file each.
//
// An object is written to a temporary file, synced, and moved to its place atomically; the folder is synced before the
// write is acknowledged. So neither a crash nor a power failure leaves a partial object or loses an acknowledged one. A
// failed write removes its temporary file, because on a full disk each retry would leave another one. Only a crash may leave
// a file in `.tmp`, which a later process removes.
//
// Several processes may share the folder. The file system decides which one creates an object. Replacing compares and then
// renames: if two processes replace the same object at the same moment, both succeed, and the later one stays. That loses
// nothing: under a key's own id both are the same key, wrapped by configured master keys; and for `LATEST`, where they may
// be two keys, each is stored under its own id before it is used.
import { createHash, randomUUID } from "node:crypto";
import type { Dirent, Stats } from "node:fs";
import { type FileHandle, link, mkdir, open, readdir, rename, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "../../concurrency/clock.ts";
import { VaultError } from "../vault-error.ts";
import { objectBytesMax, type StoredObject, type VaultStorage } from "./storage.ts";

/** The file system calls, so that a test can simulate a crash between any two of them. */
export interface FileSystem {
  open(path: string, flags: string, mode?: number): Promise<FileHandle>;
  link(from: string, to: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  mkdir(path: string, options: { readonly mode: number }): Promise<unknown>;
  readdir(path: string, options: { readonly withFileTypes: true }): Promise<Dirent[]>;
  stat(path: string): Promise<Stats>;
}

export interface FileStorageDeps {
  readonly clock: Pick<Clock, "wallMs">;
  readonly fileSystem?: FileSystem;
}

const fileMode = 0o600;
const folderMode = 0o700;
// A write takes milliseconds. A file this old does not belong to a running process.
const leftoverAgeMs = 10 * 60_000;

export function createFileStorage(folder: string, deps: FileStorageDeps): VaultStorage {
  const files = new DurableFiles(folder, deps);
  const at = (objectKey: string) => join(folder, ...objectKey.split("/"));
  return {
    read: (objectKey, signal) => attempt(`read ${objectKey}`, signal, () => files.read(at(objectKey))),
    create: (objectKey, bytes, signal) =>
      attempt(`create ${objectKey}`, signal, () => files.create(at(objectKey), bytes)),
    replace: (objectKey, bytes, version, signal) =>
      attempt(`replace ${objectKey}`, signal, async () => {
        if ((await files.read(at(objectKey)))?.version !== version) return "changed";
        signal.throwIfAborted();
        await files.replace(at(objectKey), bytes);
        return "replaced";
      }),
    async *list(prefix, signal) {
      const keyrings = await attempt("list the keyrings", signal, () => files.entries(at("keyring")));
      for (const keyring of keyrings.filter((entry) => entry.isDirectory())) {
        const path = `keyring/${keyring.name}`;
        for (const { name } of await attempt(`list ${path}`, signal, () => files.entries(at(path))))
          if (`${path}/${name}`.startsWith(prefix)) yield `${path}/${name}`;
      }
    },
    close: async () => undefined,
  };
}

class DurableFiles {
  private readonly spare: string;
  private readonly fs: FileSystem;
  private readonly clock: Pick<Clock, "wallMs">;
  private cleaned = false;

  constructor(folder: string, deps: FileStorageDeps) {
    this.spare = join(folder, ".tmp");
    this.fs = deps.fileSystem ?? { open, link, rename, unlink, mkdir, readdir, stat };
    this.clock = deps.clock;
  }

  async read(path: string): Promise<StoredObject | undefined> {
    const file = await unlessMissing(this.fs.open(path, "r"));
    if (file === undefined) return undefined;
    try {
      const buffer = Buffer.alloc(objectBytesMax + 1);
      const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
      if (bytesRead > objectBytesMax) throw new Error(`is larger than ${objectBytesMax} bytes`);
      const bytes = Uint8Array.from(buffer.subarray(0, bytesRead));
      return { bytes, version: createHash("sha256").update(bytes).digest("base64url") };
    } finally {
      await file.close();
    }
  }

  async create(path: string, bytes: Uint8Array): Promise<"created" | "exists"> {
    const spare = await this.writeSpare(path, bytes);
    try {
      await this.fs.link(spare, path);
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
      // The caller relies on the existing object, so it must be durable too.
      await this.sync(dirname(path));
      return "exists";
    } finally {
      await this.discard(spare);
    }
    await this.sync(dirname(path));
    return "created";
  }

  async replace(path: string, bytes: Uint8Array): Promise<void> {
    const spare = await this.writeSpare(path, bytes);
    try {
      await this.fs.rename(spare, path);
    } catch (error) {
      await this.discard(spare);
      throw error;
    }
    await this.sync(dirname(path));
  }

  /** The entries of a folder; empty if it does not exist. */
  async entries(path: string): Promise<Dirent[]> {
    return (await unlessMissing(this.fs.readdir(path, { withFileTypes: true }))) ?? [];
  }

  /** Writes a synced temporary file, ready to be moved to its place; returns its path. */
  private async writeSpare(path: string, bytes: Uint8Array): Promise<string> {
    await this.makeFolder(dirname(path));
    await this.makeFolder(this.spare);
    await this.removeLeftovers();
    const spare = join(this.spare, randomUUID());
    const file = await this.fs.open(spare, "wx", fileMode);
    try {
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
    } catch (error) {
      await this.discard(spare);
      throw error;
    }
    return spare;
  }

  /** A failure here must not hide the outcome of the write; the file is then removed as a leftover. */
  private async discard(spare: string): Promise<void> {
    await this.fs.unlink(spare).catch(() => undefined);
  }

  /** Syncs the parent too: if a folder's own entry is not synced, a power failure loses everything in it. */
  private async makeFolder(path: string): Promise<void> {
    if ((await unlessMissing(this.fs.stat(path))) !== undefined) return;
    if (dirname(path) !== path) await this.makeFolder(dirname(path));
    try {
      await this.fs.mkdir(path, { mode: folderMode });
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    }
    await this.sync(dirname(path));
  }

  private async removeLeftovers(): Promise<void> {
    if (this.cleaned) return;
    this.cleaned = true;
    for (const { name } of await this.entries(this.spare)) {
      const path = join(this.spare, name);
      const entry = await unlessMissing(this.fs.stat(path));
      if (entry === undefined || this.clock.wallMs() - entry.mtimeMs < leftoverAgeMs) continue;
      await unlessMissing(this.fs.unlink(path));
    }
  }

  private async sync(folder: string): Promise<void> {
    const handle = await this.fs.open(folder, "r");
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }
}

async function attempt<T>(what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  try {
    return await work();
  } catch (cause) {
    signal.throwIfAborted();
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new VaultError("unavailable", `vault.file: cannot ${what}: ${reason}`, { cause });
  }
}

async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
