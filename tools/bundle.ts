// Bundles the program into one file without dependencies, bin/krane, the simulation into another, and the libraries into
// their dist/ folders, which leave their dependencies to npm. Names and lines are kept, so that stack traces are readable; the program's
// white space is removed, because Node keeps its text in memory as long as it runs.
import { execFile } from "node:child_process";
import { chmod, readFile, rm } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type BuildOptions, build, type Metafile, type Plugin } from "esbuild";
import type { PackedFiles } from "../src/dashboard/page-files.ts";
import { bundleDashboard } from "./bundle-dashboard.ts";
import { lean } from "./lean/plugin.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

const shared = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  target: "node20",
  format: "esm",
  legalComments: "none",
  logLevel: "warning",
} satisfies BuildOptions;

/** How the program is bundled. Benchmarks bundle in the same way. */
export const programOptions = {
  ...shared,
  minifyWhitespace: true,
  lineLimit: 160,
  // Prefer ES modules if a package has both: unused parts of them are left out.
  mainFields: ["module", "main"],
  plugins: [lean],
} satisfies BuildOptions;

/**
 * CommonJS packages load Node's modules with require(), which an ES module
 * does not have.
 */
export const requireBanner = `import { createRequire as createRequireForBundle } from "node:module";
const require = createRequireForBundle(import.meta.url);`;

/**
 * These cannot be changed once Node runs.
 * - Space for new objects, 4 MB. Node starts with 1 MB, which fills up after every few requests of a resync, and grows
 *   to 16, which is more memory than needed.
 * - WebAssembly is compiled once, quickly. Otherwise, V8 compiles undici's HTTP parser again after a few requests, for 30 ms of CPU or
 *   more and 7 MB that it keeps. 20,000 requests do not get faster by that.
 */
export const nodeFlags = ["--min-semi-space-size=4", "--max-semi-space-size=4", "--liftoff-only"] as const;

/**
 * Fixed limits for the C library's malloc. Without them it raises its limits after the first large block that is freed,
 * such as the text of the program, and from then on keeps freed memory: 17 MB in an idle agent on Node 24.
 */
export const nodeEnvironment = {
  MALLOC_ARENA_MAX: "2",
  MALLOC_MMAP_THRESHOLD_: "131072",
  MALLOC_TRIM_THRESHOLD_: "131072",
} as const;

/** As a shell or a Dockerfile sets them. */
export const nodeAssignments = Object.entries(nodeEnvironment)
  .map(([name, value]) => `${name}=${value}`)
  .join(" ");

/**
 * To a shell, the second line is a command that does nothing and some that start Node; to Node it is a string. The program
 * that `krane exec` runs inherits the environment, and gets nothing of krane's.
 */
const launcher = [
  "#!/bin/sh",
  `":" //; [ "$1" = exec ] || export ${nodeAssignments}; exec node ${nodeFlags.join(" ")} "$0" "$@"`,
].join("\n");

export interface BundleOptions {
  /** Relative to the repository, or absolute. */
  readonly outfile: string;
}

/** Returns the files in the bundle and their imports. */
export async function bundle({ outfile }: BundleOptions): Promise<Metafile> {
  const { files } = await bundleDashboard();
  const result = await build({
    ...programOptions,
    metafile: true,
    entryPoints: ["src/cli/entry.ts"],
    outfile,
    define: await buildDefinitions(files),
    banner: { js: `${launcher}\n${requireBanner}` },
  });
  if (result.warnings.length > 0) throw new Error("esbuild warned; see above");
  await chmod(resolve(root, outfile), 0o755);
  return result.metafile;
}

/** What the program knows since it was built. */
export async function buildDefinitions(dashboard?: PackedFiles): Promise<Record<string, string>> {
  return {
    ...(await identity()),
    KRANE_DASHBOARD: JSON.stringify(dashboard) ?? "undefined",
    // The S3 library warns at every start which Node its later versions will need. The versions of
    // both are decided here, not by the user.
    "process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED": '"true"',
  };
}

/**
 * The two entries share their common parts. With separate copies, an error thrown by the test cluster would have
 * another class than the one that the controllers check for.
 */
async function bundleLibrary(outdir: string): Promise<void> {
  const resolved = resolve(root, outdir);
  await rm(resolved, { recursive: true, force: true });
  await build({
    ...shared,
    entryPoints: ["src/index.ts", "src/testing.ts"],
    outdir: resolved,
    splitting: true,
    chunkNames: "[name]-[hash]",
    packages: "external",
    define: await identity(),
  });
  // Imported here because it needs the compiler, which `make dev` does not install.
  const { emitTypes } = await import("./emit-types.ts");
  await emitTypes(root, ["src/index.ts", "src/testing.ts"], `${resolved}/types`);
}

/** In one file, so that it loads no module while the clock of a simulation runs. */
export async function bundleSimulation(outfile: string, plugins: Plugin[] = []): Promise<void> {
  await build({ ...shared, entryPoints: ["sim/main.ts"], outfile, plugins, banner: { js: requireBanner } });
}

/** For a tree without git: the commit that it is a copy of. */
export const revisionVariable = "KRANE_REVISION";

async function identity(): Promise<Record<string, string>> {
  const { version } = JSON.parse(await readFile(`${root}/package.json`, "utf8")) as { version: string };
  return { KRANE_VERSION: JSON.stringify(version), KRANE_REVISION: JSON.stringify(await revision()) };
}

/** The commit, marked if files differ from it; "unknown" without git or a repository, unless it is given. */
async function revision(): Promise<string> {
  const given = process.env[revisionVariable];
  if (given !== undefined) return given;
  try {
    const git = async (...args: string[]) =>
      (await promisify(execFile)("git", args, { cwd: root })).stdout.trim();
    const commit = await git("rev-parse", "--short=12", "HEAD");
    return (await git("status", "--porcelain")) === "" ? commit : `${commit}-modified`;
  } catch {
    return "unknown";
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , what = "program", where] = process.argv;
  if (what === "library") {
    const { bundlePackage } = await import("./bundle-package.ts");
    await bundlePackage("kube-apiserver");
    await bundleLibrary(where ?? "dist");
  } else if (what === "sim") await bundleSimulation(where ?? ".cache/sim/main.mjs");
  else await bundle({ outfile: where ?? "bin/krane" });
}
