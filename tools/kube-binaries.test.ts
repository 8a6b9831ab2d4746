// The search for binaries, with a `go` of our own on the PATH that records what
// it is asked for, so that these tests cost nothing and run without Go.

import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { eventually } from "../test/support/eventually.ts";
import { type KubeBinaries, resolveKubeBinaries } from "./kube-binaries.ts";
import { buildSteps, isOlderGo } from "./kube-recipe.ts";

const never = new AbortController().signal;

interface Machine {
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly reported: string[];
  resolve(signal?: AbortSignal): Promise<KubeBinaries>;
  /** The main packages that were compiled, in order. */
  compiled(): Promise<readonly string[]>;
}

/** `build` is the shell code that the machine's `go build` runs; none means no Go at all. */
async function machine(t: TestContext, go?: { version: string; build: string }): Promise<Machine> {
  const dir = await mkdtemp(join(tmpdir(), "krane-tools-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const env = { PATH: join(dir, "bin"), XDG_CACHE_HOME: join(dir, "cache"), HOME: dir };
  await mkdir(env.PATH);
  const crd = join(dir, "module", "pkg/k8s/apis/cilium.io/client/crds/v2/ciliumnetworkpolicies.yaml");
  await mkdir(dirname(crd), { recursive: true });
  await writeFile(crd, "kind: CustomResourceDefinition\n");
  if (go !== undefined) {
    const script = `#!/bin/sh
case "$1" in
env) echo ${go.version} ;;
mod) echo '{"Dir": "${join(dir, "module")}"}' ;;
build)
  while [ $# -gt 1 ]; do [ "$1" = -o ] && target=$2; shift; done
  echo "$1" >> ${join(dir, "compiled")}
  ${go.build}
  ;;
esac
`;
    await writeFile(join(env.PATH, "go"), script);
    await chmod(join(env.PATH, "go"), 0o755);
  }
  const reported: string[] = [];
  return {
    dir,
    env,
    reported,
    resolve: (signal = never) => resolveKubeBinaries(env, { report: (line) => reported.push(line) }, signal),
    compiled: () =>
      readFile(join(dir, "compiled"), "utf8").then(
        (text) => text.trim().split("\n"),
        () => [],
      ),
  };
}

const goodGo = { version: "go1.99.0", build: 'echo binary > "$target"' };
const packages = buildSteps.flatMap(({ from }) => (from.kind === "main-package" ? [from.importPath] : []));

async function cacheEntries(env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  return readdir(join(env["XDG_CACHE_HOME"] ?? "", "krane", "kube"));
}

test("the first search builds everything, the second compiles nothing", async (t) => {
  const { resolve, compiled, reported, env } = await machine(t, goodGo);
  const first = await resolve();
  assert.ok(first.kind === "ready");
  assert.deepEqual((await readdir(first.dir)).sort(), buildSteps.map((step) => step.file).sort());
  assert.match(reported[0] ?? "", /first time takes about 6 to 10 minutes/);
  assert.deepEqual(await compiled(), packages);
  assert.deepEqual(await resolve(), first);
  assert.deepEqual(await compiled(), packages);
  assert.equal((await cacheEntries(env)).length, 1, "no lock and no unfinished folder stays");
});

test("two searches at once build once", async (t) => {
  const { resolve, compiled } = await machine(t, goodGo);
  const [left, right] = await Promise.all([resolve(), resolve()]);
  assert.equal(left.kind, "ready");
  assert.deepEqual(left, right);
  assert.deepEqual(await compiled(), packages);
});

test("another Go version has a cache of its own", async (t) => {
  const one = await machine(t, goodGo);
  const other = await machine(t, { ...goodGo, version: "go1.99.1" });
  const dirs = [await one.resolve(), await other.resolve()].map(
    (found) => found.kind === "ready" && found.dir,
  );
  assert.notEqual(String(dirs[0]).split("/").at(-1), String(dirs[1]).split("/").at(-1));
});

test("an interrupted build leaves nothing that looks finished", async (t) => {
  // The exec leaves one process, so that the abort reaches what is running.
  const hang = 'case "$target" in */etcd) echo binary > "$target" ;; *) exec /bin/sleep 600 ;; esac';
  const { resolve, compiled, env } = await machine(t, { ...goodGo, build: hang });
  const stopping = new AbortController();
  const building = resolve(stopping.signal);
  building.catch(() => undefined);
  await eventually("the second package is being compiled", async () => {
    assert.equal((await compiled()).length, 2);
  });
  stopping.abort();
  await assert.rejects(building);
  assert.deepEqual(await cacheEntries(env), []);
});

test("a lock and a folder that a killed build left behind are taken over", async (t) => {
  const { resolve, env } = await machine(t, goodGo);
  const done = await resolve();
  assert.ok(done.kind === "ready");
  await rm(done.dir, { recursive: true });
  const longAgo = new Date(0);
  await writeFile(`${done.dir}.lock`, "");
  await utimes(`${done.dir}.lock`, longAgo, longAgo);
  await mkdir(`${done.dir}.building-1`);
  assert.deepEqual(await resolve(), done);
  assert.equal((await cacheEntries(env)).length, 1);
});

test("a cache folder that lost a file is built again", async (t) => {
  const { resolve } = await machine(t, goodGo);
  const done = await resolve();
  assert.ok(done.kind === "ready");
  await rm(join(done.dir, "kubectl"));
  assert.deepEqual(await resolve(), done);
  assert.ok((await stat(join(done.dir, "kubectl"))).isFile());
});

test("code that does not compile is an error with the compiler's words", async (t) => {
  const { resolve, env } = await machine(t, {
    ...goodGo,
    build: "echo 'server.go:1: undefined: x' >&2; exit 1",
  });
  await assert.rejects(resolve(), /undefined: x/);
  assert.deepEqual(await cacheEntries(env), []);
});

test("modules that cannot be downloaded are missing, not an error", async (t) => {
  const build = "echo 'Get proxy: dial tcp: lookup proxy: no such host' >&2; exit 1";
  const found = await (await machine(t, { ...goodGo, build })).resolve();
  assert.ok(found.kind === "missing" && found.goPresent);
  assert.match(found.what, /could not be downloaded .*no such host/);
});

test("without Go the remedy names the version to install", async (t) => {
  const found = await (await machine(t)).resolve();
  assert.ok(found.kind === "missing" && !found.goPresent);
  assert.match(found.what, /go is not on the PATH; install Go 1\.\d+/);
});

test("a Go that is too old is missing, with the version that is needed", async (t) => {
  const found = await (await machine(t, { ...goodGo, version: "go1.20.1" })).resolve();
  assert.ok(found.kind === "missing" && found.goPresent);
  assert.match(found.what, /is go1\.20\.1, and the pinned Kubernetes needs 1\.\d+/);
});

test("KUBEBUILDER_ASSETS wins over Go when it is complete, and names what it lacks", async (t) => {
  const { dir, env, resolve, compiled } = await machine(t, goodGo);
  const assets = join(dir, "assets");
  env["KUBEBUILDER_ASSETS"] = assets;
  await mkdir(assets);
  for (const { file } of buildSteps.filter(({ file }) => file !== "etcd" && file !== "kwok")) {
    await writeFile(join(assets, file), "");
  }
  const incomplete = await resolve();
  assert.ok(incomplete.kind === "missing");
  assert.match(incomplete.what, /lacks etcd, kwok;/);
  await writeFile(join(assets, "etcd"), "");
  await writeFile(join(assets, "kwok"), "");
  assert.deepEqual(await resolve(), { kind: "ready", dir: assets });
  assert.deepEqual(await compiled(), []);
});

test("Go versions compare by number, and a pre-release counts as its release", () => {
  const older: [string, string][] = [
    ["go1.9", "1.26.0"],
    ["go1.25.12", "1.26.0"],
    ["go1.26.0", "1.26.1"],
  ];
  for (const [version, needed] of older) {
    assert.equal(isOlderGo(version, needed), true, `${version} < ${needed}`);
    assert.equal(isOlderGo(needed, version), false, `${needed} >= ${version}`);
  }
  assert.equal(isOlderGo("go1.26rc1", "1.26.0"), false);
  assert.equal(isOlderGo("go1.26.8", "1.26.0"), false);
});
