// `make image`: builds krane's image into .cache/image/krane.tar, an OCI archive, and prints its path.

import { stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { buildKraneImage, describeKraneImage, withBaseImage } from "./krane-image.ts";

const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => stopping.abort());
}
const report = (line: string) => console.error(line);
const archive = fileURLToPath(new URL("../.cache/image/krane.tar", import.meta.url));
try {
  const { tag } = await describeKraneImage();
  const build = async (store: Parameters<typeof buildKraneImage>[0]) => {
    await buildKraneImage(store);
    await store.save(tag, archive);
  };
  await withBaseImage({ env: process.env, report }, build, stopping.signal);
  const megabytes = Math.round((await stat(archive)).size / 1e6);
  report(`image: ${tag}, ${megabytes} MB compressed, on a base made from Debian packages`);
  console.log(archive);
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error);
  console.error(`image: ${stopping.signal.aborted ? "interrupted" : reason}`);
  process.exitCode = 1;
}
