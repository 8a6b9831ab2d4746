import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { checksumsName, verifyChecksums, writeChecksums } from "./release-checksums.ts";

async function filled(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "krane-sums-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "a.tgz"), "a");
  await writeFile(join(folder, "b.tar"), "b");
  await writeChecksums(folder);
  return folder;
}

test("checksums are those of sha256sum", async (t) => {
  const folder = await filled(t);
  const { stdout } = await promisify(execFile)("sha256sum", ["--check", "--strict", checksumsName], {
    cwd: folder,
  });
  assert.equal(stdout, "a.tgz: OK\nb.tar: OK\n");
  await verifyChecksums(folder);
});

test("a changed, a missing and an additional file are noticed", async (t) => {
  const folder = await filled(t);
  await writeFile(join(folder, "c.tar"), "c");
  await assert.rejects(verifyChecksums(folder), /not in SHA256SUMS: c\.tar/);
  await rm(join(folder, "c.tar"));
  await writeFile(join(folder, "a.tgz"), "A");
  await assert.rejects(verifyChecksums(folder), /a\.tgz: wrong checksum/);
  await rm(join(folder, "a.tgz"));
  await assert.rejects(verifyChecksums(folder), { code: "ENOENT" });
});
