// `make node`: builds the binaries of a real Kubernetes node, and Helm, which installs krane there. It prints the folder of the
// node's binaries.

import { helm, resolveGoTool } from "./go-tool.ts";
import { resolveNodeBinaries } from "./node-binaries.ts";

const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => stopping.abort());
}
try {
  const report = (line: string) => console.error(line);
  const binaries = await resolveNodeBinaries(process.env, { report }, stopping.signal);
  const helmBinary = await resolveGoTool(helm, process.env, { report }, stopping.signal);
  if (helmBinary.kind === "missing") console.error(`helm: ${helmBinary.what}`);
  if (binaries.kind === "ready") {
    console.log(binaries.dir);
  } else {
    console.error(`node: ${binaries.what}`);
    process.exitCode = 1;
  }
} catch (error) {
  console.error(stopping.signal.aborted ? "node: interrupted" : error);
  process.exitCode = 1;
}
