// `make image`: builds krane's image into .cache/image/krane.tar, an OCI archive, and prints its path. Beside it,
// krane.cdx.json lists the npm packages that the program is built from (CycloneDX, from the lock file).
//
//   node --import tsx tools/build-image.ts [amd64 | arm64] [archive]

import { stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Architecture, ownArchitecture } from "./debian-tool.ts";
import { buildKraneImage, describeKraneImage, withBaseImage } from "./krane-image.ts";
import { loadPackageList } from "./package-list.ts";

const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => stopping.abort());
}
const report = (line: string) => console.error(line);
const root = fileURLToPath(new URL("..", import.meta.url));
try {
  const [wanted = ownArchitecture, archive = join(root, ".cache/image/krane.tar")] = process.argv.slice(2);
  const architecture = parseArchitecture(wanted);
  const { tag } = await describeKraneImage();
  const build = async (store: Parameters<typeof buildKraneImage>[0]) => {
    await buildKraneImage(store, architecture);
    await store.save(tag, archive);
  };
  await withBaseImage({ env: process.env, report, architecture }, build, stopping.signal);
  // Optional packages are programs for other machines than a container.
  const list = await loadPackageList(root, { withOptional: false }, stopping.signal);
  await writeFile(join(dirname(archive), "krane.cdx.json"), `${JSON.stringify(list, null, 2)}\n`);
  const megabytes = Math.round((await stat(archive)).size / 1e6);
  report(`image: ${tag}, ${architecture}, ${megabytes} MB compressed, on a base made from Debian packages`);
  console.log(archive);
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error);
  console.error(`image: ${stopping.signal.aborted ? "interrupted" : reason}`);
  process.exitCode = 1;
}

function parseArchitecture(text: string): Architecture {
  if (text === "amd64" || text === "arm64") return text;
  throw new Error(`unknown architecture "${text}": amd64 or arm64`);
}
