import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { constants } from "node:fs";
import { mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { eventually } from "../../../test/support/eventually.ts";
import { readTextFile } from "./text-file.ts";

const never = new AbortController().signal;

async function createFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "krane-text-"));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

async function createPipe(t: TestContext): Promise<string> {
  const path = join(await createFolder(t), "pipe");
  assert.equal(spawnSync("mkfifo", [path]).status, 0);
  return path;
}

/** Fails with ENXIO while nobody reads from the pipe. */
const openForWriting = (path: string) => open(path, constants.O_WRONLY | constants.O_NONBLOCK);

describe("a text file", () => {
  test("is read as it is, also when it is empty", async (t) => {
    const path = join(await createFolder(t), "file");
    for (const text of ["", "grüße\n", "x".repeat(1024 * 1024)]) {
      await writeFile(path, text);
      assert.equal(await readTextFile(path, never), text);
    }
    assert.equal(await readTextFile("/dev/null", never), "");
  });

  test("that cannot be read says why in a few words", async (t) => {
    const folder = await createFolder(t);
    const large = join(folder, "large");
    await writeFile(large, "x".repeat(1024 * 1024 + 1));
    for (const [path, message] of [
      [large, "larger than 1 MiB"],
      ["/dev/zero", "larger than 1 MiB"],
      [folder, "is a folder"],
      [join(folder, "none"), "no such file"],
      [join(large, "none"), "no such file"],
    ] as const)
      await assert.rejects(readTextFile(path, never), { message });
  });

  test("is not read once the signal has aborted", async () => {
    const reason = new Error("stopped");
    await assert.rejects(readTextFile("/dev/null", AbortSignal.abort(reason)), (error) => error === reason);
  });
});

describe("a pipe", () => {
  test("is read to its end, also by a reader that comes before the writer", async (t) => {
    const path = await createPipe(t);
    const text = readTextFile(path, never);
    const writer = await eventually("somebody reads", () => openForWriting(path));
    await writer.write("first ");
    await writer.write("second");
    await writer.close();
    assert.equal(await text, "first second");
  });

  for (const source of ["<(printf abc)", "/dev/stdin"]) {
    test(`of a shell is read: ${source}`, async () => {
      const module = JSON.stringify(new URL("./text-file.ts", import.meta.url));
      const script = `
        import { readTextFile } from ${module};
        console.log(await readTextFile(process.argv.at(-1), new AbortController().signal));`;
      const command = `printf abc | "$0" --import tsx --input-type=module --eval "$1" -- ${source}`;
      const { stdout } = await promisify(execFile)("bash", ["-c", command, process.execPath, script]);
      assert.equal(stdout, "abc\n");
    });
  }

  test("to which nobody writes does not outlast the signal, and nothing reads from it any more", async (t) => {
    const path = await createPipe(t);
    const reason = new Error("stopped");
    for (const hasWriter of [false, true]) {
      const stop = new AbortController();
      const text = readTextFile(path, stop.signal);
      const writer = hasWriter && (await eventually("somebody reads", () => openForWriting(path)));
      stop.abort(reason);
      await assert.rejects(text, (error) => error === reason);
      if (writer) await writer.close();
      await eventually("nobody reads", () => assert.rejects(openForWriting(path), { code: "ENXIO" }));
    }
  });
});
