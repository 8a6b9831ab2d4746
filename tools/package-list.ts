// The npm packages that krane is built from, as a CycloneDX document that npm makes from the lock file.
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

export interface PackageList {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly Dependency[];
}

interface Component {
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
}

interface Dependency {
  readonly ref: string;
  readonly dependsOn: readonly string[];
}

interface LockFile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface LockedPackage {
  readonly version?: string;
  readonly name?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
  readonly link?: boolean;
}

/** What only builds krane: its packages are no development dependencies, so that `make dev` can install them alone. */
const buildTool = "@krane/build@";

/**
 * Without what is only for development or for the build. `npm sbom --omit dev` also leaves out packages that krane needs
 * itself and that a package for development needs too, so the lock file decides here.
 */
export async function loadPackageList(
  root: string,
  { withOptional }: { readonly withOptional: boolean },
  signal: AbortSignal,
): Promise<PackageList> {
  const args = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only"];
  const { stdout } = await promisify(execFile)("npm", args, { cwd: root, signal, maxBuffer: 2 ** 24 });
  const list = JSON.parse(stdout) as PackageList;
  const lock = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8")) as LockFile;
  const kept = reachable(list, new Set(runtimePackages(lock, withOptional)));
  const isKept = (ref: string) => kept.has(ref);
  return {
    ...list,
    metadata: { ...list.metadata, component: named(list.metadata.component) },
    components: list.components.filter((one) => isKept(one["bom-ref"])).map(named),
    dependencies: list.dependencies
      .filter(({ ref }) => isKept(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(isKept) })),
  };
}

/** The program itself, and those of `among` that it needs. */
function reachable({ metadata, dependencies }: PackageList, among: ReadonlySet<string>): ReadonlySet<string> {
  const neededBy = new Map(dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
  const found = new Set([metadata.component["bom-ref"]]);
  // A loop over a set also visits what is added meanwhile.
  for (const ref of found)
    for (const needed of neededBy.get(ref) ?? [])
      if (among.has(needed) && !needed.startsWith(buildTool)) found.add(needed);
  return found;
}

/** As `name@version`. */
function runtimePackages({ packages }: LockFile, withOptional: boolean): readonly string[] {
  return Object.entries(packages)
    .filter(([path, one]) => path !== "" && one.link !== true && one.dev !== true)
    .filter(([, one]) => withOptional || (one.optional !== true && one.devOptional !== true))
    .map(([path, { name, version }]) => `${name ?? path.replace(/^.*node_modules\//, "")}@${version}`);
}

/** npm names packages of the repository after their folders. */
function named(component: Component): Component {
  const ref = component["bom-ref"];
  return { ...component, name: ref.slice(0, ref.lastIndexOf("@")) };
}
