// Memory and disk against the contract, and what disk promises beyond it.
import assert from "node:assert/strict";
import {
  link,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  unlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { createFileStorage, type FileSystem } from "../../../src/vault/storage/file-storage.ts";
import { createMemoryStorage } from "../../../src/vault/storage/memory-storage.ts";
import { defineStorageContract } from "./storage-contract.ts";

const { signal } = new AbortController();
const clock = createSystemClock();
const objectKey = "keyring/env_1/LATEST";
const bytesOf = (text: string) => Uint8Array.from(Buffer.from(text));

async function freshFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "krane-vault-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

defineStorageContract({
  name: "memory",
  async makePlace() {
    const storage = createMemoryStorage();
    return { open: () => storage };
  },
});

defineStorageContract({
  name: "disk",
  async makePlace(t) {
    const folder = join(await freshFolder(t), "vault");
    return { open: () => createFileStorage(folder, { clock }) };
  },
});

test("files and folders are for their owner alone", async (t) => {
  const folder = join(await freshFolder(t), "vault");
  const storage = createFileStorage(folder, { clock });
  await storage.create(objectKey, bytesOf("x"), signal);
  const mode = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);
  for (const path of [folder, join(folder, "keyring"), join(folder, "keyring/env_1"), join(folder, ".tmp")])
    assert.equal(await mode(path), "700", path);
  assert.equal(await mode(join(folder, objectKey)), "600");
});

/** The real file system up to the call with this number, and nothing from it on, as after a kill. */
function mortal(callsLeft: number): FileSystem & { readonly calls: number } {
  let calls = 0;
  const killed = new Error("killed");
  const step = async <T>(work: () => Promise<T>): Promise<T> => {
    calls += 1;
    if (calls > callsLeft) throw killed;
    return work();
  };
  return {
    get calls() {
      return calls;
    },
    open: (path, flags, mode) =>
      step(async () => {
        const handle = await open(path, flags, mode);
        const { sync, writeFile: write } = handle;
        handle.sync = () => step(() => sync.call(handle));
        // A kill in the middle of a write leaves half of it.
        handle.writeFile = (async (data: Uint8Array) => {
          if (calls >= callsLeft) await write.call(handle, data.subarray(0, data.length / 2));
          await step(() => write.call(handle, data));
        }) as typeof handle.writeFile;
        return handle;
      }),
    link: (from, to) => step(() => link(from, to)),
    rename: (from, to) => step(() => rename(from, to)),
    unlink: (path) => step(() => unlink(path)),
    mkdir: (path, options) => step(() => mkdir(path, options)),
    readdir: (path, options) => step(() => readdir(path, options)),
    stat: (path) => step(() => stat(path)),
  };
}

for (const verb of ["create", "replace"] as const) {
  test(`a kill at any step of a ${verb} leaves the old object or the new one, and a later write goes through`, async (t) => {
    const folder = await freshFolder(t);
    let killedAt = 0;
    for (let left = 0; ; left++) {
      const place = join(folder, `${verb}-${left}`);
      const survivor = createFileStorage(place, { clock });
      if (verb === "replace") await survivor.create(objectKey, bytesOf("old object"), signal);
      const before = await survivor.read(objectKey, signal);
      const killed = createFileStorage(place, { clock, fileSystem: mortal(left) });
      const outcome = await (verb === "create"
        ? killed.create(objectKey, bytesOf("new object"), signal)
        : killed.replace(objectKey, bytesOf("new object"), before?.version ?? "", signal)
      ).catch((error: unknown) => error);
      const after = await survivor.read(objectKey, signal);
      const text = after && Buffer.from(after.bytes).toString();
      assert.ok([before && "old object", "new object"].includes(text), `after ${left} steps: ${text}`);
      if (outcome === "created" || outcome === "replaced") {
        assert.equal(text, "new object");
        assert.ok(killedAt > 5, "every step before was tried");
        return;
      }
      killedAt = left;
      const next =
        after === undefined
          ? await survivor.create(objectKey, bytesOf("later"), signal)
          : await survivor.replace(objectKey, bytesOf("later"), after.version, signal);
      assert.match(next, /created|replaced/);
    }
  });
}

type FailingCall = "write" | "sync" | "close" | "link" | "rename";

/** The real file system, in which one kind of call fails as on a full disk. */
function full(failing: FailingCall): FileSystem {
  const unlessFailing = async <T>(call: FailingCall, work: () => Promise<T>): Promise<T> => {
    if (call === failing)
      throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
    return work();
  };
  return {
    ...{ unlink, readdir, stat },
    mkdir: (path, options) => mkdir(path, options),
    link: (from, to) => unlessFailing("link", () => link(from, to)),
    rename: (from, to) => unlessFailing("rename", () => rename(from, to)),
    async open(path, flags, mode) {
      const handle = await open(path, flags, mode);
      if (flags !== "wx") return handle;
      const { sync, close, writeFile: write } = handle;
      handle.sync = () => unlessFailing("sync", () => sync.call(handle));
      // A close that fails still releases the descriptor.
      handle.close = async () => {
        await close.call(handle);
        await unlessFailing("close", async () => undefined);
      };
      // A full disk takes a part of a write before it fails.
      handle.writeFile = (async (data: Uint8Array) => {
        await write.call(handle, data.subarray(0, data.length / 2));
        await unlessFailing("write", () => write.call(handle, data.subarray(data.length / 2)));
      }) as typeof handle.writeFile;
      return handle;
    },
  };
}

for (const failing of ["write", "sync", "close", "link", "rename"] as const) {
  test(`a write whose ${failing} fails on a full disk leaves no temporary file`, async (t) => {
    const folder = await freshFolder(t);
    const healthy = createFileStorage(folder, { clock });
    await healthy.create(objectKey, bytesOf("old object"), signal);
    const { version } = (await healthy.read(objectKey, signal)) ?? { version: "" };
    const storage = createFileStorage(folder, { clock, fileSystem: full(failing) });
    const otherKey = "keyring/env_2/LATEST";
    for (let round = 0; round < 3; round++) {
      const write =
        failing === "rename"
          ? storage.replace(objectKey, bytesOf("new object"), version, signal)
          : storage.create(otherKey, bytesOf("new object"), signal);
      await assert.rejects(write, /vault\.file: cannot .*ENOSPC/);
    }
    assert.deepEqual(await readdir(join(folder, ".tmp")), []);
    assert.equal(await healthy.read(otherKey, signal), undefined);
    assert.equal(await readFile(join(folder, objectKey), "utf8"), "old object");
  });
}

test("what a killed write left behind is removed once it is old, and not before", async (t) => {
  const folder = await freshFolder(t);
  const spare = join(folder, ".tmp");
  await mkdir(spare);
  await writeFile(join(spare, "of-a-running-write"), "x");
  await writeFile(join(spare, "of-a-killed-write"), "x");
  const anHourAgo = new Date(Date.now() - 3_600_000);
  await utimes(join(spare, "of-a-killed-write"), anHourAgo, anHourAgo);
  await createFileStorage(folder, { clock }).create(objectKey, bytesOf("x"), signal);
  assert.deepEqual(await readdir(spare), ["of-a-running-write"]);
  assert.equal(await readFile(join(folder, objectKey), "utf8"), "x");
});

test("an acknowledged object and every folder above it were synced", async (t) => {
  const folder = join(await freshFolder(t), "a", "b");
  const synced: string[] = [];
  const fileSystem: FileSystem = {
    ...{ link, rename, unlink, readdir, stat },
    mkdir: (path, options) => mkdir(path, options),
    async open(path, flags, mode) {
      const handle = await open(path, flags, mode);
      const { sync } = handle;
      handle.sync = () => {
        synced.push(path);
        return sync.call(handle);
      };
      return handle;
    },
  };
  await createFileStorage(folder, { clock, fileSystem }).create(objectKey, bytesOf("x"), signal);
  for (const path of ["..", ".", "keyring", "keyring/env_1"].map((each) => join(folder, each)))
    assert.ok(synced.includes(path), `${path} was not synced`);
  assert.ok(synced.some((path) => path.startsWith(join(folder, ".tmp/"))));
});
