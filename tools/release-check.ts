// Installs a release from its files only, and throws with the first thing that is wrong.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Architecture, ownArchitecture } from "./debian-tool.ts";
import { renderAnyChart } from "./helm-chart.ts";
import type { PackageList } from "./package-list.ts";
import { verifyChecksums } from "./release-checksums.ts";
import { releaseArchitectures, releaseFiles } from "./release-files.ts";

export interface ReleaseToCheck {
  readonly folder: string;
  readonly version: string;
  readonly commit: string;
  /** The repository, for the tests on a real node. */
  readonly root: string;
  readonly helmPath: string;
  readonly report: (line: string) => void;
}

const run = promisify(execFile);
const bytesMax = 2 ** 26;

export async function verifyRelease(release: ReleaseToCheck, signal: AbortSignal): Promise<void> {
  const { folder, report } = release;
  const work = await mkdtemp(join(tmpdir(), "krane-release-check-"));
  try {
    await verifyChecksums(folder);
    report(`checksums: ${(await readdir(folder)).length - 1} files`);
    const app = join(work, "app");
    await checkPackages(release, app, signal);
    await checkChart(release, signal);
    await checkPackageList(release);
    for (const architecture of releaseArchitectures) await checkImage(release, architecture, signal);
    await checkOnNode(release, join(work, "installed"), app, signal);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** In an empty folder, as a user would. */
async function checkPackages(
  { folder, version, commit, report }: ReleaseToCheck,
  app: string,
  signal: AbortSignal,
): Promise<void> {
  const files = releaseFiles(version);
  await mkdir(app);
  await writeFile(join(app, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const packages = [files.apiServer, files.program].map((name) => join(folder, name));
  // A database in a folder is for `krane server` without one of its own; it is large.
  const flags = ["--no-progress", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund"];
  await run("npm", ["install", ...flags, ...packages], { cwd: app, signal });
  const krane = async (...args: string[]) =>
    (await run(join(app, "node_modules/.bin/krane"), args, { cwd: app, signal, maxBuffer: bytesMax })).stdout;
  expectPart("krane --version", await krane("--version"), `krane ${version} (${commit}, `);
  const rendered = await krane("render", "-f", join(app, "node_modules/krane/examples/hello.yaml"));
  for (const kind of ["ReplicaSet", "Service"]) expectPart("krane render", rendered, `kind: ${kind}\n`);
  const code = `const { DeploymentController } = await import("krane");
    const { startTestCluster } = await import("krane/testing");
    await (await startTestCluster()).stop();
    console.log(typeof DeploymentController);`;
  const args = ["--input-type=module", "-e", code];
  const { stdout } = await run(process.execPath, args, { cwd: app, signal });
  expectEqual("the library", stdout.trim(), "function");
  report("npm packages: installed in an empty folder; program, example and library work");
}

async function checkChart(
  { folder, version, helmPath, report }: ReleaseToCheck,
  signal: AbortSignal,
): Promise<void> {
  const files = releaseFiles(version);
  const rendered = await renderAnyChart(helmPath, join(folder, files.chart), signal);
  const unpack = ["-xOzf", join(folder, files.manifests)];
  const { stdout: manifests } = await run("tar", unpack, { signal, maxBuffer: bytesMax });
  for (const [what, text] of Object.entries({ chart: rendered, manifests })) {
    const tags = new Set([...text.matchAll(/registry\.example\/krane:([^\s"]+)/g)].map(([, tag]) => tag));
    expectEqual(`images of the ${what}`, [...tags].join(), version);
    const versions = [...text.matchAll(/app\.kubernetes\.io\/version: "?([^\s"]+)/g)].map(
      ([, found]) => found,
    );
    expectEqual(`labels of the ${what}`, [...new Set(versions)].join(), version);
  }
  report("chart and manifests: rendered, all of this version");
}

async function checkPackageList({ folder, version, report }: ReleaseToCheck): Promise<void> {
  const text = await readFile(join(folder, releaseFiles(version).packageList), "utf8");
  const { metadata, components } = JSON.parse(text) as PackageList;
  expectEqual(
    "the list of packages",
    `${metadata.component.name} ${metadata.component.version}`,
    `krane ${version}`,
  );
  report(`list of packages: ${components.length} npm packages`);
}

interface Descriptor {
  readonly digest: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

async function checkImage(
  { folder, version, commit, report }: ReleaseToCheck,
  architecture: Architecture,
  signal: AbortSignal,
): Promise<void> {
  const archive = join(folder, releaseFiles(version).image(architecture));
  const read = async <T>(path: string): Promise<T> =>
    JSON.parse((await run("tar", ["-xOf", archive, path], { signal, maxBuffer: bytesMax })).stdout);
  const blob = <T>({ digest }: Descriptor) => read<T>(`blobs/${digest.replace(":", "/")}`);
  const { manifests } = await read<{ readonly manifests: readonly [Descriptor] }>("index.json");
  const { config } = await blob<{ readonly config: Descriptor }>(manifests[0]);
  const image = await blob<{
    readonly architecture: string;
    readonly config: { readonly Labels: Readonly<Record<string, string>> };
  }>(config);
  expectEqual(`the image for ${architecture}`, image.architecture, architecture);
  for (const [label, expected] of Object.entries({ version, revision: commit }))
    expectEqual(
      `its label ${label}`,
      image.config.Labels[`org.opencontainers.image.${label}`] ?? "",
      expected,
    );
  const name = manifests[0].annotations?.["org.opencontainers.image.ref.name"] ?? "";
  expectEqual("its name", name, `registry.example/krane:${version}`);
  const isRun = architecture === ownArchitecture;
  report(`image for ${architecture}: of this version${isRun ? "" : "; it cannot be run on this machine"}`);
}

/** Runs test/node/install.test.ts with the program, chart and image of the release; it says so if there is no node. */
async function checkOnNode(
  { folder, version, root }: ReleaseToCheck,
  installed: string,
  app: string,
  signal: AbortSignal,
): Promise<void> {
  const files = releaseFiles(version);
  const chart = join(installed, "deploy/chart");
  await mkdir(chart, { recursive: true });
  await run("tar", ["-xzf", join(folder, files.chart), "-C", chart], { signal });
  await symlink(join(app, "node_modules/.bin"), join(installed, "bin"));
  await symlink(join(folder, files.image(ownArchitecture)), join(installed, "krane.tar"));
  const args = ["--import", "tsx", "test/support/run-node-tests.ts", "test/node/install.test.ts"];
  const env = { ...process.env, KRANE_TEST_INSTALLED: installed };
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: "inherit" });
  // It cleans up what it has started.
  const stop = () => void child.kill("SIGTERM");
  signal.addEventListener("abort", stop, { once: true });
  const [code] = await once(child, "close");
  signal.throwIfAborted();
  if (code !== 0) throw new Error("the release does not work on a real node: see above");
}

function expectEqual(what: string, found: string, expected: string): void {
  if (found !== expected) throw new Error(`${what}: expected ${expected}, found ${shortened(found)}`);
}

function expectPart(what: string, found: string, part: string): void {
  if (!found.includes(part)) throw new Error(`${what}: expected ${part} in ${shortened(found)}`);
}

function shortened(text: string): string {
  return JSON.stringify(text.slice(0, 400));
}
