// What `make` would run: it installs what a command needs, and `make dev` no more than that.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { build } from "esbuild";
import { projectFiles, projectRoot, readProjectFile } from "../support/project-files.ts";

/** What the rules name; the folders of sources may be empty. */
const files =
  /^(Makefile|package(-lock)?\.json|\.npmrc|biome\.json|tsconfig\.json|packages\/[^/]+\/package\.json|tools\/.*)$/;

let clone: string;

before(async () => {
  clone = await mkdtemp(join(tmpdir(), "krane-make-"));
  for (const name of projectFiles(files)) await cp(join(projectRoot, name), join(clone, name));
  for (const folder of ["src", "sim", "test", "bench", "proto"]) await mkdir(join(clone, folder));
});

after(() => rm(clone, { recursive: true, force: true }));

beforeEach(() => rm(join(clone, ".cache"), { recursive: true, force: true }));

/** The installs that these commands would make. */
function installs(...goals: readonly string[]): readonly string[] {
  const { MAKEFLAGS: _, MAKELEVEL: __, ...env } = process.env;
  const out = execFileSync("make", ["--dry-run", ...goals], { cwd: clone, env, encoding: "utf8" });
  return out.match(/^npm ci.*$/gm) ?? [];
}

async function finish(install: string): Promise<void> {
  await mkdir(join(clone, ".cache"), { recursive: true });
  await writeFile(join(clone, ".cache", install), "");
}

const everything = "npm ci --ignore-scripts";

test("make dev installs what running needs, and make test everything, once", async () => {
  assert.deepEqual(installs("dev"), [`${everything} --omit=dev`]);
  for (const goal of ["test", "check", "build", "bin/krane"])
    assert.deepEqual(installs(goal), [everything], goal);
  assert.deepEqual(installs("dev", "check"), [everything]);
});

test("after make dev, make dev installs nothing and make test what was left out", async () => {
  await finish("installed-to-run");
  assert.deepEqual([installs("dev"), installs("test")], [[], [everything]]);
});

test("after make test, make dev installs nothing", async () => {
  await finish("installed");
  assert.deepEqual([installs("dev"), installs("test")], [[], []]);
});

test("the program is built from packages that make dev installs", async () => {
  const { packages } = JSON.parse(readProjectFile("package-lock.json")) as {
    readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
  };
  const external = await importedPackages("tools/bundle.ts");
  assert.ok(external.includes("esbuild"));
  for (const name of [...external, "tsx"])
    assert.deepEqual([name, packages[`node_modules/${name}`]?.dev], [name, undefined]);
});

/** The npm packages that a script loads at its start. */
async function importedPackages(script: string): Promise<readonly string[]> {
  const { metafile } = await build({
    absWorkingDir: projectRoot,
    entryPoints: [script],
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    outdir: "unused",
    write: false,
    metafile: true,
    logLevel: "silent",
  });
  const found = new Set<string>();
  const files = new Set([script]);
  for (const file of files)
    for (const { path, kind, external } of metafile.inputs[file]?.imports ?? []) {
      if (kind !== "import-statement" || path.startsWith("node:")) continue;
      if (external) found.add(path);
      else files.add(path);
    }
  return [...found];
}
