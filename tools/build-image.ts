// `make image`: builds krane's image into .cache/image/krane.tar, an OCI archive, and prints its path. Beside it,
// krane.cdx.json lists the npm packages that the program is built from (CycloneDX, from the lock file).

import { stat, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { buildKraneImage, describeKraneImage, withBaseImage } from "./krane-image.ts";
import { loadPackageList } from "./package-list.ts";

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
  // Optional packages are programs for other machines than a container.
  const list = await loadPackageList(root, { withOptional: false }, stopping.signal);
  await writeFile(packageList, `${JSON.stringify(list, null, 2)}\n`);
  const megabytes = Math.round((await stat(archive)).size / 1e6);
  report(`image: ${tag}, ${megabytes} MB compressed, on a base made from Debian packages`);
  console.log(archive);
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error);
  console.error(`image: ${stopping.signal.aborted ? "interrupted" : reason}`);
  process.exitCode = 1;
}
