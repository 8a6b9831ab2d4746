// The generated code is committed, so that nobody needs a generator to build
// krane. The price is that it can go stale, which is noticed here.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { listFiles, projectRoot } from "./descriptors.ts";

async function buf(...args: string[]): Promise<void> {
  const run = promisify(execFile)(`${projectRoot}node_modules/.bin/buf`, args, { cwd: projectRoot });
  // buf writes its findings to stdout, which the error of a failed process leaves out of its message.
  await run.catch((error: { stdout: string; stderr: string }) => {
    assert.fail(`buf ${args[0]} failed:\n${error.stdout}${error.stderr}`);
  });
}

test("src/gen is what the .proto files generate", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "krane-gen-"));
  t.after(() => rm(folder, { recursive: true }));
  await buf("generate", "--output", folder);

  const fresh = join(folder, "src/gen");
  const committed = `${projectRoot}src/gen`;
  const paths = await listFiles(fresh);
  assert.ok(paths.length > 0, "buf generate made no files");
  assert.deepEqual(await listFiles(committed), paths, "src/gen lacks files or has too many: run `make gen`");
  for (const path of paths) {
    const same = (await readFile(join(fresh, path))).equals(await readFile(join(committed, path)));
    assert.ok(same, `src/gen/${path} is stale or was edited by hand: run \`make gen\``);
  }
});

test("the .proto files pass buf lint", async () => {
  await buf("lint");
});

test("the .proto files are formatted as buf format would", async () => {
  await buf("format", "--exit-code", "--diff");
});
