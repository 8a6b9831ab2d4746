import assert from "node:assert/strict";
import { cp, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { parseVersion, stampChangelog, stampVersion } from "./release-version.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const version = "9.8.7-rc.6";

async function copyOfTree(t: TestContext): Promise<string> {
  const tree = await mkdtemp(join(tmpdir(), "krane-stamped-"));
  t.after(() => rm(tree, { recursive: true }));
  const paths = ["package.json", "package-lock.json", "CHANGELOG.md", "deploy", "docs/operations"];
  const packages = (await readdir(join(root, "packages"))).map((name) => `packages/${name}/package.json`);
  for (const path of [...paths, ...packages])
    await cp(join(root, path), join(tree, path), { recursive: true });
  return tree;
}

test("a version is X.Y.Z, with or without a pre-release", () => {
  for (const good of ["0.1.0", "1.20.300", version]) assert.equal(parseVersion(good), good);
  for (const bad of ["", "v1.2.3", "1.2", "01.2.3", "1.2.3+build", "1.2.3 ", "1.2.3-", "latest"])
    assert.throws(() => parseVersion(bad), /make release version=1\.2\.3/, bad);
});

test("every file that states the version gets the new one, and nothing else changes", async (t) => {
  const tree = await copyOfTree(t);
  const { version: old } = JSON.parse(await readFile(join(tree, "package.json"), "utf8"));
  await stampVersion(tree, version, "2026-11-16");
  const read = (path: string) => readFile(join(tree, path), "utf8");
  // What is rendered from the chart is rendered again.
  const entries = await readdir(tree, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const stamped: string[] = [];
  for (const path of files.map((file) => file.slice(tree.length + 1)).sort()) {
    const [before, after] = [
      (await readFile(join(root, path), "utf8")).split("\n"),
      (await read(path)).split("\n"),
    ];
    assert.equal(after.length, before.length, path);
    const changed = after.filter((line, index) => line !== before[index]);
    for (const line of changed) assert.ok(line.includes(version), `${path}: ${line}`);
    if (changed.length > 0) stamped.push(path);
  }
  assert.deepEqual(
    stamped.filter((path) => !path.startsWith("docs/")),
    [
      "CHANGELOG.md",
      "deploy/chart/krane/Chart.yaml",
      "deploy/image/Dockerfile",
      "package-lock.json",
      "package.json",
      "packages/kube-apiserver/package.json",
    ],
  );
  assert.ok(stamped.includes("docs/operations/install.md"));
  for (const path of stamped.filter((name) => !["CHANGELOG.md", "package-lock.json"].includes(name)))
    assert.ok(!(await read(path)).includes(old), `${path} still has ${old}`);
});

test("a changelog without anything to release is refused; one that has the version already is kept", () => {
  assert.throws(() => stampChangelog("# Changelog\n\n## 0.0.1\n", "0.0.2", "2026-11-16"), /Unreleased/);
  const dated = "# Changelog\n\n## 0.0.2 (2026-11-01)\n";
  assert.equal(stampChangelog(dated, "0.0.2", "2026-11-16"), dated);
});
