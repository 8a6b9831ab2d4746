import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { CommandError, type CommandErrorCode } from "../command-error.ts";
import { readInput } from "../process/input.ts";
import { readTextFile } from "../process/text-file.ts";
import { readDocumentFiles } from "./document-files.ts";

const { signal } = new AbortController();
const read = (...paths: string[]) =>
  readDocumentFiles(paths, Object.assign(new FakeIo(), { readTextFile }), signal);

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "krane-documents-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const refuses = (code: CommandErrorCode, text: string) => (error: unknown) =>
  error instanceof CommandError && error.code === code && error.message.includes(text);

test("a folder gives its documents by name, also those that links lead to", async (t) => {
  const folder = await makeFolder(t);
  await writeFile(join(folder, "b.yaml"), "b");
  await writeFile(join(folder, "notes.txt"), "no");
  await symlink(join(folder, "b.yaml"), join(folder, "a.json"));
  const files = await read(folder);
  assert.deepEqual(
    files.map(({ name, text }) => [name, text]),
    [
      [join(folder, "a.json"), "b"],
      [join(folder, "b.yaml"), "b"],
    ],
  );
});

test("a pipe that nobody writes to is refused by its name and not waited for", {
  timeout: 20_000,
}, async (t) => {
  const folder = await makeFolder(t);
  const pipe = join(folder, "a.yaml");
  execFileSync("mkfifo", [pipe]);
  await assert.rejects(read(folder), refuses("failed", `${pipe}: is a pipe`));
  await assert.rejects(read(pipe), refuses("failed", `${pipe}: is a pipe`));
});

test("what a shell hands over as a file of its own is read", { timeout: 20_000 }, () => {
  // Another process, because its standard input is what /dev/stdin means.
  const script = `
    import { readDocumentFiles } from ${JSON.stringify(new URL("./document-files.ts", import.meta.url).href)};
    import { readTextFile } from ${JSON.stringify(new URL("../process/text-file.ts", import.meta.url).href)};
    const files = await readDocumentFiles(["/dev/stdin"], { readTextFile }, new AbortController().signal);
    process.stdout.write(files[0].text);`;
  const output = execFileSync(
    "sh",
    ["-c", 'echo "kind: x" | "$0" --import tsx --input-type=module --eval "$1"', process.execPath, script],
    { encoding: "utf8" },
  );
  assert.equal(output, "kind: x\n");
});

test("standard input is read once", async () => {
  await assert.rejects(
    read("-", "-"),
    refuses("usage", "-f - was given twice, but standard input can be read only once"),
  );
});

test("what is too large says how to make it smaller, whether it is a file or standard input", async (t) => {
  const path = join(await makeFolder(t), "large.yaml");
  const text = "x".repeat(4 * 1024 * 1024 + 1);
  await writeFile(path, text);
  const remedy = "larger than 4 MiB; split it into several files, and give them all to -f, ";
  await assert.rejects(read(path), refuses("failed", `${path}: cannot be read: ${remedy}`));
  const io = Object.assign(new FakeIo(), {
    readInput: (name: string | undefined, bytesMax: number, until: AbortSignal) =>
      readInput({ path: name, stdin: Readable.from([Buffer.from(text)]), bytesMax }, until),
  });
  await assert.rejects(
    readDocumentFiles(["-"], io, signal),
    refuses("failed", `standard input: is ${remedy}`),
  );
});

test("a folder with the name of a document is refused by its name, and what is not there is not found", async (t) => {
  const folder = await makeFolder(t);
  await mkdir(join(folder, "a.yaml"));
  await assert.rejects(
    read(folder),
    refuses("failed", `${join(folder, "a.yaml")}: cannot be read: is a folder`),
  );
  await assert.rejects(read(join(folder, "gone")), refuses("not_found", "no such file"));
});
