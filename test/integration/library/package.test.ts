// The packages as npm would publish them, in a project of its own: only what is in the archive and in
// `dependencies` can be found from there.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { projectRoot, readProjectFile } from "../../support/project-files.ts";

const run = promisify(execFile);
const compiler = join(projectRoot, "node_modules/typescript/bin/tsc");

const page = readProjectFile("docs/library.md");

/** By the folder that is published. */
const packages = new Map([
  ["krane", "."],
  ["@krane/kube-apiserver", "packages/kube-apiserver/dist"],
]);

const compilerOptions = {
  target: "es2023",
  module: "nodenext",
  types: ["node"],
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
};

describe("the published package", () => {
  let project = "";

  before(async () => {
    assert.ok(existsSync(join(projectRoot, "dist/index.js")), "there is no dist/: run `make build`");
    project = await mkdtemp(join(tmpdir(), "krane-library-"));
    const needed = new Set(["@types/node"]);
    for (const [name, folder] of packages) {
      const { dependencies } = await unpack(project, name, join(projectRoot, folder));
      for (const dependency of Object.keys(dependencies)) needed.add(dependency);
    }
    for (const name of needed) if (!packages.has(name)) await link(project, name);
    await writeFile(join(project, "package.json"), JSON.stringify({ type: "module" }));
    await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  });

  after(() => rm(project, { recursive: true, force: true }));

  test("compiles all code of the page by its types, and the example prints what the page shows", async () => {
    await copyFile(join(projectRoot, "examples/library/one-region.ts"), join(project, "one-region.ts"));
    const pieces = [...page.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code = ""]) => code);
    assert.equal(pieces.length, 4);
    for (const [index, code] of pieces.slice(1).entries())
      await writeFile(join(project, `piece-${index}.ts`), `declare const signal: AbortSignal;\n${code}`);
    assert.equal(await compile(project), "");
    const { stdout } = await run(process.execPath, ["one-region.js"], { cwd: project, timeout: 60_000 });
    const shown = /<!-- output:begin -->\n```text\n([\s\S]*?)```/.exec(page)?.[1];
    assert.equal(stdout, shown);
  });

  test("refuses a misspelt field and a missing option when compiling", async () => {
    const text = `import { CiliumController, DeploymentController, SentinelController, type ControllerDeps } from "krane";
declare const deps: ControllerDeps;
const controller = new SentinelController({}, deps);
new DeploymentController({}, deps);
new CiliumController({}, deps);
await controller.applySentinel({ sentinelIdd: "se_1" }, AbortSignal.abort());
`;
    await writeFile(join(project, "wrong.ts"), text);
    const compiled = await compile(project);
    await rm(join(project, "wrong.ts"));
    for (const line of [3, 4, 5])
      assert.match(
        compiled,
        new RegExp(`wrong\\.ts\\(${line},[^)]+\\)[^\\n]+\\n +Property 'region' is missing`),
      );
    assert.match(compiled, /wrong\.ts\(6,.*'sentinelIdd'/);
  });

  test("knows the errors of its test cluster by their class", async () => {
    const text = `import { KubeApiError } from "krane";
import { kinds, startTestCluster } from "krane/testing";
const cluster = await startTestCluster();
const signal = AbortSignal.timeout(10_000);
const refused = cluster.api.list({ ...kinds.pods, plural: "nothings" }, {}, signal);
console.log(await refused.catch((error) => error instanceof KubeApiError));
await cluster.stop();
`;
    await writeFile(join(project, "errors.js"), text);
    const { stdout } = await run(process.execPath, ["errors.js"], { cwd: project, timeout: 60_000 });
    assert.equal(stdout, "true\n");
  });

  test("has an API server that works on its own, by the example of its page", async () => {
    const readme = readProjectFile("packages/kube-apiserver/README.md");
    const [, example = ""] = /^```ts\n([\s\S]*?)^```/m.exec(readme) ?? [];
    assert.match(example, /from "@krane\/kube-apiserver"/);
    await writeFile(join(project, "server.ts"), example);
    assert.equal(await compile(project), "");
    // The variable by which Node tells a test that it runs within another one.
    const env = { ...process.env, NODE_TEST_CONTEXT: undefined };
    const options = { cwd: project, timeout: 60_000, env };
    const { stdout } = await run(process.execPath, ["--test", "server.js"], options);
    assert.match(stdout, /pass 1/);
  });

  test("has a program that starts", async () => {
    const { stdout } = await run(process.execPath, ["node_modules/krane/bin/krane", "--version"], {
      cwd: project,
    });
    assert.match(stdout, /\d+\.\d+\.\d+/);
  });
});

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
}

/** Puts what npm would publish from the folder where npm would install it. */
async function unpack(project: string, name: string, folder: string): Promise<Manifest> {
  const packed = await run("npm", ["pack", "--json", "--pack-destination", project], { cwd: folder });
  const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }];
  await run("tar", ["-xzf", filename], { cwd: project });
  const place = join(project, "node_modules", name);
  await mkdir(dirname(place), { recursive: true });
  await rename(join(project, "package"), place);
  return JSON.parse(await readFile(join(place, "package.json"), "utf8")) as Manifest;
}

/** What the compiler complains about. */
async function compile(project: string): Promise<string> {
  try {
    return (await run(process.execPath, [compiler, "-p", "."], { cwd: project })).stdout;
  } catch (error) {
    return (error as { readonly stdout: string }).stdout;
  }
}

async function link(project: string, name: string): Promise<void> {
  const place = join(project, "node_modules", name);
  await mkdir(dirname(place), { recursive: true });
  await symlink(join(projectRoot, "node_modules", name), place);
}
