// The build of a node, with a `go` of our own on the PATH that records what it compiles.

import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { readProjectFile } from "../test/support/project-files.ts";
import { resolveNodeBinaries } from "./node-binaries.ts";
import { nodeSteps } from "./node-recipe.ts";

const never = new AbortController().signal;
const edit = nodeSteps.flatMap((step) => step.edit ?? [])[0] ?? assert.fail("no step changes its source");

/** A machine with a Go of that version, and the module that is changed with that text. */
async function machine(t: TestContext, version: string, source: string) {
  const dir = await mkdtemp(join(tmpdir(), "krane-tools-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const bin = join(dir, "bin");
  const changed = join(dir, "module", edit.path);
  await mkdir(bin);
  await mkdir(dirname(changed), { recursive: true });
  await writeFile(changed, source);
  const script = `#!/bin/sh
case "$1 $2" in
"env "*) echo ${version} ;;
"mod download") echo '{"Dir": "${join(dir, "module")}"}' ;;
"mod edit") echo "\${3#*=*=}" > ${join(dir, "replaced")} ;;
"build "*)
  copied=$(cat ${join(dir, "replaced")} 2>/dev/null)
  [ -z "$copied" ] || cp "$copied/${edit.path}" ${join(dir, "compiled-source")}
  while [ $# -gt 1 ]; do [ "$1" = -o ] && target=$2; shift; done
  echo "$1" >> ${join(dir, "compiled")}
  echo binary > "$target"
  ;;
esac
`;
  await writeFile(join(bin, "go"), script);
  await chmod(join(bin, "go"), 0o755);
  const env = { PATH: `${bin}:/usr/bin:/bin`, XDG_CACHE_HOME: join(dir, "cache"), HOME: dir };
  const read = (name: string) => readFile(join(dir, name), "utf8");
  return {
    resolve: () => resolveNodeBinaries(env, { report: () => undefined }, never),
    compiled: async () => (await read("compiled")).trim().split("\n"),
    compiledSource: () => read("compiled-source"),
    cached: () => readdir(join(env.XDG_CACHE_HOME, "krane", "node")),
  };
}

test("the first search builds every part, one from changed source; the second compiles nothing", async (t) => {
  const { resolve, compiled, compiledSource, cached } = await machine(
    t,
    "go1.99.0",
    `a\n${edit.before}\nz\n`,
  );
  const first = await resolve();
  assert.ok(first.kind === "ready");
  assert.deepEqual((await readdir(first.dir)).sort(), nodeSteps.map(({ file }) => file).sort());
  const packages = nodeSteps.map(({ importPath }) => importPath);
  assert.deepEqual(await compiled(), packages);
  assert.equal(await compiledSource(), `a\n${edit.after}\nz\n`);
  assert.deepEqual(await resolve(), first);
  assert.deepEqual(await compiled(), packages);
  assert.equal((await cached()).length, 1, "no lock and no unfinished folder remains");
});

test("source that no longer has the line to change fails the build and leaves nothing", async (t) => {
  const { resolve, cached } = await machine(t, "go1.99.0", "something else\n");
  await assert.rejects(resolve(), /gvisor\.dev\/gvisor changed: pkg\/shim\/v1\/manager\.go has 0 lines/);
  assert.deepEqual(await cached(), []);
});

test("a Go that is too old is missing, with the version that is needed", async (t) => {
  const found = await (await machine(t, "go1.20.1", "")).resolve();
  assert.ok(found.kind === "missing" && found.goPresent);
  assert.match(found.what, /go on the PATH is go1\.20\.1; install Go 1\.\d+/);
});

test("kubelet and control plane are of one version", () => {
  const pins = (folder: string) =>
    readProjectFile(`tools/${folder}/go.mod`)
      .split("\n")
      .filter((line) => /^\tk8s\.io\/\S+ => |k8s\.io\/kubernetes v/.test(line));
  assert.ok(pins("kubelet").length > 20);
  assert.deepEqual(pins("kubelet"), pins("kubernetes"));
});
