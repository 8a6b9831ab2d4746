// `make release version=X.Y.Z`: makes everything that a release consists of from the commit that is checked out, into
// release/, and verifies it by installing from these files only. See docs/release.md.
//
// The version is written into a copy of the tree, so the working tree stays as it is.
import { execFile } from "node:child_process";
import {
  access,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { revisionVariable } from "./bundle.ts";
import { helm, resolveGoTool } from "./go-tool.ts";
import { packageChart } from "./helm-chart.ts";
import { loadPackageList } from "./package-list.ts";
import { verifyRelease } from "./release-check.ts";
import { writeChecksums } from "./release-checksums.ts";
import { releaseArchitectures, releaseFiles } from "./release-files.ts";
import { releaseNotes } from "./release-notes.ts";
import { parseVersion, stampVersion } from "./release-version.ts";
import { exportTree } from "./source-tree.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const releaseDir = join(root, "release");
const run = promisify(execFile);
const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopping.abort());
const report = (line: string) => console.error(`release: ${line}`);

interface Build {
  readonly version: string;
  readonly commit: string;
  /** The copy of the tree. */
  readonly tree: string;
  /** Where the files of the release go. */
  readonly out: string;
  readonly helmPath: string;
}

try {
  const version = parseVersion(process.argv[2] ?? "");
  await makeRelease(version, stopping.signal);
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error);
  report(stopping.signal.aborted ? "interrupted" : reason);
  process.exitCode = 1;
}

async function makeRelease(version: string, signal: AbortSignal): Promise<void> {
  const commit = await cleanCommit();
  const helmBinary = await resolveGoTool(helm, process.env, { report }, signal);
  if (helmBinary.kind === "missing") throw new Error(`helm: ${helmBinary.what}`);
  const helmPath = helmBinary.path;
  const work = await mkdtemp(join(tmpdir(), "krane-release-"));
  try {
    const build = { version, commit, tree: join(work, "tree"), out: join(work, "out"), helmPath };
    await mkdir(build.out);
    await prepareTree(build, signal);
    await buildPackages(build, signal);
    await buildManifests(build, signal);
    await buildImages(build, signal);
    await writeDocuments(build, signal);
    await writeChecksums(build.out);
    // Only a complete set of files appears under its name.
    await rm(releaseDir, { recursive: true, force: true });
    await copyOut(build.out);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  report(`${version} of commit ${commit} is in ${releaseDir}; installing from its files`);
  await verifyRelease({ folder: releaseDir, version, commit, root, helmPath, report }, signal);
}

/** What is released is what is committed. */
async function cleanCommit(): Promise<string> {
  const git = async (...args: string[]) => (await run("git", args, { cwd: root })).stdout.trim();
  const changed = await git("status", "--porcelain");
  if (changed !== "") throw new Error(`files differ from the commit; commit or stash them:\n${changed}`);
  return git("rev-parse", "--short=12", "HEAD");
}

async function prepareTree({ version, commit, tree }: Build, signal: AbortSignal): Promise<void> {
  report(`preparing commit ${commit} as ${version}`);
  await exportTree(root, commit, tree, signal);
  // Images are made with it.
  const node24 = "tools/node24/node_modules";
  const isInstalled = await access(join(root, node24)).then(
    () => true,
    () => false,
  );
  if (isInstalled) await symlink(join(root, node24), join(tree, node24));
  await stampVersion(tree, version, new Date().toISOString().slice(0, 10));
}

/** Runs a tool of the copy. */
async function runTool(build: Build, args: readonly string[], signal: AbortSignal): Promise<void> {
  const env = { ...process.env, [revisionVariable]: build.commit };
  const options = { cwd: build.tree, env, signal, maxBuffer: 2 ** 24 };
  await run(process.execPath, ["--import", "tsx", ...args], options);
}

async function buildPackages(build: Build, signal: AbortSignal): Promise<void> {
  const { tree, out } = build;
  report("building the npm packages");
  // The chart and the manifests are part of the package.
  await runTool(build, ["tools/render-deploy.ts"], signal);
  await runTool(build, ["tools/bundle.ts", "program"], signal);
  await runTool(build, ["tools/agent-parts.ts"], signal);
  await runTool(build, ["tools/bundle.ts", "library"], signal);
  for (const folder of [tree, join(tree, "packages/kube-apiserver/dist")])
    await run("npm", ["pack", "--silent", "--pack-destination", out], { cwd: folder, signal });
}

async function buildManifests({ version, tree, out, helmPath }: Build, signal: AbortSignal): Promise<void> {
  report("packing the chart and the manifests");
  const files = releaseFiles(version);
  const packaged = await packageChart(helmPath, join(tree, "deploy/chart/krane"), tree, signal);
  await rename(packaged, join(out, files.chart));
  const owner = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner"];
  const name = ["--transform", `s,^manifests,krane-manifests-${version},`];
  const args = [...owner, ...name, "-czf", join(out, files.manifests), "manifests"];
  await run("tar", args, { cwd: join(tree, "deploy"), signal });
}

async function buildImages(build: Build, signal: AbortSignal): Promise<void> {
  for (const architecture of releaseArchitectures) {
    report(`building the image for ${architecture}`);
    // In the copy, because the list of packages is written beside it.
    const archive = join(build.tree, ".cache/image", releaseFiles(build.version).image(architecture));
    await runTool(build, ["tools/build-image.ts", architecture, archive], signal);
    await rename(archive, join(build.out, releaseFiles(build.version).image(architecture)));
  }
}

async function writeDocuments({ version, tree, out }: Build, signal: AbortSignal): Promise<void> {
  const files = releaseFiles(version);
  const list = await loadPackageList(tree, { withOptional: true }, signal);
  await writeFile(join(out, files.packageList), `${JSON.stringify(list, null, 2)}\n`);
  const { homepage } = JSON.parse(await readFile(join(tree, "package.json"), "utf8")) as {
    readonly homepage: string;
  };
  const changelog = await readFile(join(tree, "CHANGELOG.md"), "utf8");
  const address = `${homepage.replace(/#.*/, "")}/blob/v${version}`;
  await writeFile(join(out, files.notes), releaseNotes(changelog, version, address));
}

async function copyOut(out: string): Promise<void> {
  const unfinished = `${releaseDir}.unfinished`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished);
  for (const name of await readdir(out)) await copyFile(join(out, name), join(unfinished, name));
  await rename(unfinished, releaseDir);
}
