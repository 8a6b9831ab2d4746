// Bundles the agent alone, for the image: about a third of the program's text, in parts that are read when they are needed. Node parses
// what it reads and keeps the text, so this saves 100 ms of CPU at the start of an agent, and 6 to 12 MB.
//
//   node --import tsx tools/agent-parts.ts [folder]

import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Metafile, type Plugin } from "esbuild";
import { buildDefinitions, programOptions, requireBanner } from "./bundle.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** A command is imported when it runs, and only the agent runs here. */
const agentOnly: Plugin = {
  name: "agent only",
  setup(build) {
    build.onResolve({ filter: /^\./ }, ({ kind, importer, path }) =>
      kind === "dynamic-import" &&
      importer.startsWith(`${root}src/cli/`) &&
      !path.endsWith("/agent-command.ts")
        ? { path, external: true }
        : undefined,
    );
  },
};

/** Relative to the repository, or absolute. Starts with krane.mjs. */
export async function bundleAgent(outdir: string): Promise<Metafile> {
  await rm(resolve(root, outdir), { recursive: true, force: true });
  const { metafile, warnings } = await build({
    ...programOptions,
    metafile: true,
    entryPoints: [{ in: "src/cli/entry.ts", out: "krane" }],
    outdir,
    splitting: true,
    outExtension: { ".js": ".mjs" },
    chunkNames: "[name]-[hash]",
    plugins: [agentOnly, ...programOptions.plugins],
    define: await buildDefinitions(),
    banner: { js: requireBanner },
  });
  if (warnings.length > 0) throw new Error("esbuild warned; see above");
  refuseUnnamed(metafile);
  return metafile;
}

/** A part that is a CommonJS package exports `default` and none of its names. */
function refuseUnnamed({ outputs }: Metafile): void {
  for (const { entryPoint, exports } of Object.values(outputs))
    if (entryPoint?.includes("node_modules/") && exports.join() === "default")
      throw new Error(`${entryPoint} is CommonJS: import a file of ours that exports the names it needs`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundleAgent(process.argv[2] ?? ".cache/agent");
