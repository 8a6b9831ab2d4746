// `make kube`: builds the control plane's binaries and the S3 server, and prints the folder
// of the control plane's binaries.

import { resolveGoTool, s3Server } from "./go-tool.ts";
import { resolveKubeBinaries } from "./kube-binaries.ts";

const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => stopping.abort());
}
try {
  const report = (line: string) => console.error(line);
  const binaries = await resolveKubeBinaries(process.env, { report }, stopping.signal);
  const s3 = await resolveGoTool(s3Server, process.env, { report }, stopping.signal);
  if (s3.kind === "missing") console.error(`s3: ${s3.what}`);
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
