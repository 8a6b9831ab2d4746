// Builds the published form of a package in packages/: its dist/ folder, with a separate package.json.
//
// In the work tree the package's `exports` name its TypeScript sources, so that tests and tools need no build. npm
// installs into node_modules, where Node reads no TypeScript, so the published `exports` name JavaScript and types.
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { emitTypes } from "./emit-types.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

interface SourceManifest {
  readonly name: string;
  readonly private?: boolean;
  /** "./testing" -> "./src/testing.ts" */
  readonly exports: Readonly<Record<string, string>>;
}

export async function bundlePackage(
  name: string,
  outdir = join(root, "packages", name, "dist"),
): Promise<void> {
  const folder = join(root, "packages", name);
  const manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as SourceManifest;
  const sources = Object.values(manifest.exports);
  await rm(outdir, { recursive: true, force: true });
  await build({
    absWorkingDir: folder,
    entryPoints: sources,
    outdir,
    bundle: true,
    splitting: true,
    chunkNames: "[name]-[hash]",
    packages: "external",
    platform: "node",
    target: "node20",
    format: "esm",
    legalComments: "none",
    logLevel: "warning",
  });
  await emitTypes(folder, sources, join(outdir, "types"));
  await mkdir(outdir, { recursive: true });
  await writeFile(join(outdir, "package.json"), `${JSON.stringify(published(manifest), undefined, 2)}\n`);
  for (const text of ["README.md", "CHANGELOG.md"]) await copyFile(join(folder, text), join(outdir, text));
  await copyFile(join(root, "LICENSE"), join(outdir, "LICENSE"));
}

function published({ private: _, exports, ...rest }: SourceManifest): object {
  const entries = Object.entries(exports).map(([path, source]) => {
    const entry = basename(source, ".ts");
    return [path, { types: `./types/${entry}.d.ts`, import: `./${entry}.js` }];
  });
  return { ...rest, exports: Object.fromEntries(entries), types: "./types/index.d.ts" };
}
