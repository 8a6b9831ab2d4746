// `make deploy`: writes the generated parts of deploy/: the rights from the list of calls, the Grafana dashboard from the
// catalogues of metrics, and the plain manifests from the chart.
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { clusterCalls } from "../src/agent/cluster-calls.ts";
import { helm, resolveGoTool } from "./go-tool.ts";
import { grafanaDashboard } from "./grafana-dashboard.ts";
import { chartDir, manifestsDir, renderManifests } from "./helm-chart.ts";
import { rightsTemplate } from "./rights-template.ts";

const never = new AbortController().signal;
await writeFile(join(chartDir, "templates/_rights.tpl"), rightsTemplate(clusterCalls));
await writeFile(
  join(chartDir, "files/grafana-dashboard.json"),
  `${JSON.stringify(grafanaDashboard(), null, 1)}\n`,
);
const binary = await resolveGoTool(helm, process.env, { report: console.error }, never);
if (binary.kind === "missing") {
  console.error(`deploy/manifests is not rendered: helm: ${binary.what}`);
  process.exit(1);
}
const files = await renderManifests(binary.path, never);
await rm(manifestsDir, { recursive: true, force: true });
for (const [path, text] of files) {
  await mkdir(dirname(join(manifestsDir, path)), { recursive: true });
  await writeFile(join(manifestsDir, path), text);
}
