// `make image`: builds krane's image into .cache/image/krane.tar, an OCI archive, and prints its path. Beside it,
// krane.cdx.json lists the npm packages that the program is built from (CycloneDX, from the lock file).

import { execFile } from "node:child_process";
import { stat, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildKraneImage, describeKraneImage, withBaseImage } from "./krane-image.ts";

const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => stopping.abort());
}
const report = (line: string) => console.error(line);
const root = fileURLToPath(new URL("..", import.meta.url));
const packageList = fileURLToPath(new URL("../.cache/image/krane.cdx.json", import.meta.url));
const archive = fileURLToPath(new URL("../.cache/image/krane.tar", import.meta.url));
try {
  const { tag } = await describeKraneImage();
  const build = async (store: Parameters<typeof buildKraneImage>[0]) => {
    await buildKraneImage(store);
    await store.save(tag, archive);
  };
  await withBaseImage({ env: process.env, report }, build, stopping.signal);
  await writePackageList(stopping.signal);
  const megabytes = Math.round((await stat(archive)).size / 1e6);
  report(`image: ${tag}, ${megabytes} MB compressed, on a base made from Debian packages`);
  console.log(archive);
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error);
  console.error(`image: ${stopping.signal.aborted ? "interrupted" : reason}`);
  process.exitCode = 1;
}

/** Optional packages are programs for other machines than a container. */
async function writePackageList(signal: AbortSignal): Promise<void> {
  const args = [
    "sbom",
    "--sbom-format",
    "cyclonedx",
    "--omit",
    "dev",
    "--omit",
    "optional",
    "--package-lock-only",
  ];
  const { stdout } = await promisify(execFile)("npm", args, { cwd: root, signal, maxBuffer: 2 ** 24 });
  const list = JSON.parse(stdout) as { readonly metadata: { readonly component: { name: string } } };
  // npm takes the name of the folder.
  list.metadata.component.name = "krane";
  await writeFile(packageList, `${JSON.stringify(list, null, 2)}\n`);
}
