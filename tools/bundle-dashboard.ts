// Bundles the dashboard's page for browsers. Asset names contain the hash of their content.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build, type Metafile } from "esbuild";
import type { PackedFile, PackedFiles } from "../src/dashboard/page-files.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = "src/dashboard/page";

export interface BundledDashboard {
  readonly files: PackedFiles;
  readonly inputs: Metafile["inputs"];
}

export async function bundleDashboard(): Promise<BundledDashboard> {
  const { outputFiles, metafile, warnings } = await build({
    absWorkingDir: root,
    entryPoints: [`${page}/main.tsx`, `${page}/style.css`],
    outdir: "/",
    entryNames: "[name]-[hash]",
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    // The browsers of the last two years, and what they do not have is not used.
    target: ["chrome120", "firefox121", "safari17.4"],
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    logLevel: "warning",
    metafile: true,
    write: false,
  });
  if (warnings.length > 0) throw new Error("esbuild warned; see above");
  const assets = new Map(
    outputFiles.map(({ path, contents }) => {
      const name = path.slice(1);
      return [name, packed(typeOf(name), Buffer.from(contents))];
    }),
  );
  const icon = await readFile(`${root}/${page}/icon.svg`);
  const iconName = `icon-${createHash("sha256").update(icon).digest("hex").slice(0, 8)}.svg`;
  assets.set(iconName, packed("image/svg+xml", icon));
  const names = [...assets.keys()];
  const nameOf = (pattern: RegExp) => names.find((name) => pattern.test(name)) ?? "";
  const html = (await readFile(`${root}/${page}/index.html`, "utf8"))
    .replace("{script}", nameOf(/\.js$/))
    .replace("{style}", nameOf(/\.css$/))
    .replace("{icon}", iconName);
  const index = packed("text/html; charset=utf-8", Buffer.from(html));
  return { files: { index, assets: Object.fromEntries(assets) }, inputs: metafile.inputs };
}

function packed(contentType: string, content: Buffer): PackedFile {
  return { contentType, gzip: gzipSync(content, { level: 9 }).toString("base64") };
}

function typeOf(name: string): string {
  return name.endsWith(".css") ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8";
}
