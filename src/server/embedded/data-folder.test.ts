import assert from "node:assert/strict";
import { mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { prepareDataFolder } from "./data-folder.ts";
import { EmbeddedError } from "./embedded-error.ts";

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "krane-data-folder-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const refused = (path: string) =>
  assert.rejects(
    prepareDataFolder(path, undefined),
    (error) =>
      error instanceof EmbeddedError &&
      error.code === "data_dir_unusable" &&
      error.message.startsWith(`--data-dir: ${path} `),
  );

test("a folder is made with those above it, is closed to others, and may be there already", async (t) => {
  const path = join(await makeFolder(t), "a", "b", "c");
  await prepareDataFolder(path, undefined);
  assert.equal((await stat(path)).mode & 0o777, 0o700);
  await prepareDataFolder(path, undefined);
});

test(
  "a place where no folder can be made is refused rather than tried for ever",
  { skip: process.platform !== "linux" && "there is no /proc", timeout: 20_000 },
  () => refused("/proc/nope/data"),
);

test("a file in its place, a dangling link and a folder of another owner are rejected", async (t) => {
  const folder = await makeFolder(t);
  await writeFile(join(folder, "file"), "");
  await symlink(join(folder, "nowhere"), join(folder, "link"));
  for (const path of [
    join(folder, "file"),
    join(folder, "file", "below"),
    join(folder, "link"),
    join(folder, "link", "below"),
    folder,
  ])
    await refused(path);
});
