// `make kube`: has the control plane's binaries built, and prints where they are.

import { resolveKubeBinaries } from "./kube-binaries.ts";

const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => stopping.abort());
}
try {
  const report = (line: string) => console.error(line);
  const binaries = await resolveKubeBinaries(process.env, { report }, stopping.signal);
  if (binaries.kind === "ready") {
    console.log(binaries.dir);
  } else {
    console.error(`kube: ${binaries.what}`);
    process.exitCode = 1;
  }
} catch (error) {
  console.error(stopping.signal.aborted ? "kube: interrupted" : error);
  process.exitCode = 1;
}
