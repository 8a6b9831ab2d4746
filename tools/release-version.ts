// Writes a version into every file of a source tree that states it, so that a release gets it from one argument and no
// tracked file is edited by hand.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const workspacePackage = "@krane/kube-apiserver";

/** Semantic versioning without build metadata, which neither image tags nor npm keep. */
const semantic = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$/;

export function parseVersion(text: string): string {
  if (semantic.test(text)) return text;
  throw new Error(`version "${text}" is not X.Y.Z: make release version=1.2.3`);
}

interface Manifest {
  version: string;
  dependencies?: Record<string, string>;
}

interface LockFile extends Manifest {
  packages: Record<string, Manifest>;
}

/** `date`: of the release, as in 2026-11-16. */
export async function stampVersion(tree: string, version: string, date: string): Promise<void> {
  const edit = async (file: string, change: (text: string) => string) => {
    const path = join(tree, file);
    try {
      await writeFile(path, change(await readFile(path, "utf8")));
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`${file}: ${reason}`, { cause });
    }
  };
  await edit("package.json", (text) => stampJson<Manifest>(text, (manifest) => stamp(manifest, version)));
  for (const name of await readdir(join(tree, "packages")))
    await edit(`packages/${name}/package.json`, (text) =>
      stampJson<Manifest>(text, (manifest) => stamp(manifest, version)),
    );
  await edit("package-lock.json", (text) => stampJson<LockFile>(text, (lock) => stampLock(lock, version)));
  await edit("deploy/chart/krane/Chart.yaml", (text) => stampChart(text, version));
  for (const file of ["deploy/image/Dockerfile", ...(await pages(tree))])
    await edit(file, (text) => stampTags(text, version));
  await edit("CHANGELOG.md", (text) => stampChangelog(text, version, date));
}

async function pages(tree: string): Promise<readonly string[]> {
  const names = await readdir(join(tree, "docs/operations"));
  return names.filter((name) => name.endsWith(".md")).map((name) => `docs/operations/${name}`);
}

function stampJson<T>(text: string, change: (value: T) => void): string {
  const value = JSON.parse(text) as T;
  change(value);
  return `${JSON.stringify(value, null, 2)}\n`;
}

function stamp(manifest: Manifest, version: string): void {
  manifest.version = version;
  if (manifest.dependencies?.[workspacePackage] !== undefined)
    manifest.dependencies[workspacePackage] = version;
}

function stampLock(lock: LockFile, version: string): void {
  stamp(lock, version);
  const own = Object.entries(lock.packages).filter(([path]) => path === "" || path.startsWith("packages/"));
  if (own.length < 2) throw new Error("it does not list the packages of this repository");
  for (const [, manifest] of own) stamp(manifest, version);
}

function stampChart(text: string, version: string): string {
  const stamped = text.replace(
    /^version: .*\nappVersion: .*$/m,
    `version: ${version}\nappVersion: ${version}`,
  );
  if (!stamped.includes(`\nappVersion: ${version}\n`)) throw new Error("no version and appVersion found");
  return stamped;
}

/** Of krane's image, in commands and examples. */
function stampTags(text: string, version: string): string {
  return text.replaceAll(/(\/krane:|image\.tag=)\d+\.\d+\.\d+\S*/g, `$1${version}`);
}

/** The changes so far become those of the version. */
export function stampChangelog(text: string, version: string, date: string): string {
  if (text.includes(`\n## ${version}`)) return text;
  const stamped = text.replace(/^## Unreleased$/m, `## ${version} (${date})`);
  if (stamped === text) throw new Error("no section for this version, and none named Unreleased");
  return stamped;
}
