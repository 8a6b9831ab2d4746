// Bundles the program into one file without dependencies: bin/krane. Names and lines are
// kept, so that a stack trace can be read; white space goes, because Node holds the text
// of the program in memory for as long as it runs.
import { execFile } from "node:child_process";
import { chmod, readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build, type Metafile } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));

export interface BundleOptions {
  /** Relative to the repository, or absolute. */
  readonly outfile: string;
}

/** Returns what went into the bundle, and by which imports. */
export async function bundle({ outfile }: BundleOptions): Promise<Metafile> {
  const { version } = JSON.parse(await readFile(`${root}/package.json`, "utf8")) as { version: string };
  const result = await build({
    absWorkingDir: root,
    entryPoints: ["src/cli/entry.ts"],
    outfile,
    bundle: true,
    metafile: true,
    platform: "node",
    target: "node20",
    format: "esm",
    legalComments: "none",
    minifyWhitespace: true,
    lineLimit: 160,
    logLevel: "warning",
    define: {
      KRANE_VERSION: JSON.stringify(version),
      KRANE_REVISION: JSON.stringify(await revision()),
      // The S3 library says at every start which Node its later versions will need. Which version
      // of it krane has, and which Node that takes, is decided here and not by who runs it.
      "process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED": '"true"',
    },
    banner: {
      // Packages written for CommonJS ask for Node's own modules with require(), which
      // an ES module does not have.
      js: `#!/usr/bin/env node
import { createRequire as createRequireForBundle } from "node:module";
const require = createRequireForBundle(import.meta.url);`,
    },
  });
  if (result.warnings.length > 0) throw new Error("esbuild warned; see above");
  await chmod(resolve(root, outfile), 0o755);
  return result.metafile;
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

if (process.argv[1] === fileURLToPath(import.meta.url))
  await bundle({ outfile: process.argv[2] ?? "bin/krane" });
