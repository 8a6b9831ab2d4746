import assert from "node:assert/strict";
import { test } from "node:test";
import { readProjectFile } from "../support/project-files.ts";

interface Manifest {
  readonly dependencies: Record<string, string>;
  readonly version: string;
  readonly devDependencies?: Record<string, string>;
}

function documented(section: string): string[] {
  const [, body = ""] = readProjectFile("docs/dependencies.md").split(`## ${section}\n`);
  return [...(body.split("\n## ")[0] ?? "").matchAll(/^\| `([^`]+)` \| \S/gm)]
    .map(([, name = ""]) => name)
    .sort();
}

test("every dependency has its reason, and every reason its dependency", () => {
  const manifest = JSON.parse(readProjectFile("package.json")) as Manifest;
  assert.deepEqual(documented("At run time"), Object.keys(manifest.dependencies).sort());
  // In a workspace of their own, so that `make dev` installs them without the rest.
  const build = JSON.parse(readProjectFile("tools/build/package.json")) as Manifest;
  assert.deepEqual(
    documented("For development"),
    Object.keys({ ...manifest.devDependencies, ...build.dependencies }).sort(),
  );
});

test("the package in packages/ has krane's version and depends on what krane's reasons name", () => {
  const krane = JSON.parse(readProjectFile("package.json")) as Manifest;
  const server = JSON.parse(readProjectFile("packages/kube-apiserver/package.json")) as Manifest;
  assert.equal(server.version, krane.version);
  assert.equal(krane.dependencies["@krane/kube-apiserver"], krane.version);
  const known = { ...krane.dependencies, ...krane.devDependencies };
  for (const [name, version] of Object.entries(server.dependencies)) assert.equal(known[name], version, name);
});

test("versions are exact and the lock file holds no download addresses", () => {
  const manifests = ["package.json", "packages/kube-apiserver/package.json", "tools/build/package.json"].map(
    (name) => JSON.parse(readProjectFile(name)) as Manifest,
  );
  const versions = manifests.flatMap(({ dependencies, devDependencies }) => [
    ...Object.entries(dependencies),
    ...Object.entries(devDependencies ?? {}),
  ]);
  assert.deepEqual(
    versions.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version)),
    [],
  );
  for (const lock of ["package-lock.json", "tools/node24/package-lock.json"])
    assert.doesNotMatch(readProjectFile(lock), /"resolved": *"http/);
});
