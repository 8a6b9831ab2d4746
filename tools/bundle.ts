// Bundles the program into one file without dependencies, bin/krane, and the libraries into their dist/ folders,
// which leave their dependencies to npm. Names and lines are kept, so that a stack trace can be read; white space
// of the program goes, because Node holds its text in memory for as long as it runs.
import { execFile } from "node:child_process";
import { chmod, readFile, rm } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type BuildOptions, build, type Metafile } from "esbuild";
import { bundlePackage } from "./bundle-package.ts";
import { emitTypes } from "./emit-types.ts";

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

/** How the program is made of its parts. What a benchmark measures is made alike. */
export const programOptions = {
  ...shared,
  minifyWhitespace: true,
  lineLimit: 160,
  // Where a package has both, its ES modules: of those, what is not used stays out.
  mainFields: ["module", "main"],
} satisfies BuildOptions;

/**
 * Packages written for CommonJS ask for Node's own modules with require(), which an ES module
 * does not have.
 */
export const requireBanner = `import { createRequire as createRequireForBundle } from "node:module";
const require = createRequireForBundle(import.meta.url);`;

/**
 * Room for new objects, 4 MB. Node begins with 1 MB, which is full after every few questions of a resync, and goes
 * up to 16, which is memory that nobody needs. It cannot be changed once Node runs.
 */
export const nodeFlags = ["--min-semi-space-size=4", "--max-semi-space-size=4"] as const;

/** To a shell its second line is a command that does nothing and one that starts Node; to Node it is a string. */
const launcher = `#!/bin/sh\n":" //; exec node ${nodeFlags.join(" ")} "$0" "$@"`;

export interface BundleOptions {
  /** Relative to the repository, or absolute. */
  readonly outfile: string;
}

/** Returns what went into the bundle, and by which imports. */
export async function bundle({ outfile }: BundleOptions): Promise<Metafile> {
  const result = await build({
    ...programOptions,
    metafile: true,
    entryPoints: ["src/cli/entry.ts"],
    outfile,
    define: {
      ...(await identity()),
      // The S3 library says at every start which Node its later versions will need. Which version
      // of it krane has, and which Node that takes, is decided here and not by who runs it.
      "process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED": '"true"',
    },
    banner: { js: `${launcher}\n${requireBanner}` },
  });
  if (result.warnings.length > 0) throw new Error("esbuild warned; see above");
  await chmod(resolve(root, outfile), 0o755);
  return result.metafile;
}

/**
 * The two entries share their common parts. In a copy of its own each, an error that the test cluster throws
 * would be of another class than the one that the controllers look for.
 */
export async function bundleLibrary(outdir: string): Promise<void> {
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
  await emitTypes(root, ["src/index.ts", "src/testing.ts"], `${resolved}/types`);
}

async function identity(): Promise<Record<string, string>> {
  const { version } = JSON.parse(await readFile(`${root}/package.json`, "utf8")) as { version: string };
  return { KRANE_VERSION: JSON.stringify(version), KRANE_REVISION: JSON.stringify(await revision()) };
}

/** The commit, marked when files differ from it; "unknown" where there is no git or no repository. */
async function revision(): Promise<string> {
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
    await bundlePackage("kube-apiserver");
    await bundleLibrary(where ?? "dist");
  } else await bundle({ outfile: where ?? "bin/krane" });
}
