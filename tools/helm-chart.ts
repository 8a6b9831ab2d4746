// Renders the chart as plain manifests with the pinned Helm. Each folder of the chart's templates becomes one file, so
// that a part can be applied without the others; rights that not every agent needs are in a separate folder.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const chartDir = fileURLToPath(new URL("../deploy/chart/krane", import.meta.url));
export const manifestsDir = fileURLToPath(new URL("../deploy/manifests", import.meta.url));

const heading = "# Rendered from deploy/chart/krane by `make deploy`: change the chart, not this file.\n";
const release = ["krane", chartDir, "--namespace", "krane"];
const optionalRights: ReadonlySet<string> = new Set([
  "rights-gateway.yaml",
  "rights-logs.yaml",
  "rights-registry.yaml",
  "rights-scheduler.yaml",
]);
const bytesMax = 16 * 2 ** 20;

/** The chart rendered with these values, as Helm prints it. */
export function renderChart(helm: string, values: readonly string[], signal: AbortSignal): Promise<string> {
  return runHelm(helm, ["template", ...release, ...values], signal);
}

/** Resolves with Helm's output; rejects when it finds a problem. */
export function lintChart(helm: string, values: readonly string[], signal: AbortSignal): Promise<string> {
  return runHelm(helm, ["lint", "--strict", chartDir, ...values], signal);
}

/** Writes a chart as a package into a folder, and returns its path. */
export async function packageChart(
  helm: string,
  chart: string,
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  const printed = await runHelm(helm, ["package", chart, "--destination", folder], signal);
  const path = /: (\S+\.tgz)$/m.exec(printed)?.[1];
  if (path === undefined) throw new Error(`helm package: ${printed}`);
  return path;
}

/** A chart, also a packaged one, rendered with its defaults. */
export function renderAnyChart(helm: string, chart: string, signal: AbortSignal): Promise<string> {
  return runHelm(helm, ["template", "krane", chart, "--namespace", "krane"], signal);
}

/** Every file of deploy/manifests, by its path there. */
export async function renderManifests(
  helm: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const standard = await renderChart(helm, ["--set", "namespaces.own=true"], signal);
  const optional = [
    "agent.registry.url=registry.example",
    "agent.registry.username=krane",
    "agent.logs.enabled=true",
    "agent.gateway.namespace=gateway",
    "agent.gateway.name=public",
    "agent.config.scheduler.token_file=/run/secrets/krane/scheduler-token",
  ];
  const rights = (await renderChart(helm, ["--set", optional.join()], signal)).split(/^---\n/m);
  const files = new Map<string, string>();
  const add = (path: string, document: string) =>
    files.set(path, `${files.get(path) ?? heading}---\n${document.trimEnd()}\n`);
  for (const document of standard.split(/^---\n/m).filter((text) => text.trim() !== ""))
    add(fileOf(document), withoutSource(document));
  for (const document of rights.filter((text) => optionalRights.has(fileOf(text))))
    add(`optional/${fileOf(document)}`, withoutSource(document));
  return files;
}

const source = /^# Source: krane\/templates\/(?:(\w+)\/)?(\w+)\.yaml\n/;

function fileOf(document: string): string {
  const [, folder, name] = source.exec(document) ?? [];
  if (folder === "rights") return `rights-${name}.yaml`;
  return `${folder ?? name}.yaml`;
}

function withoutSource(document: string): string {
  return document.replace(source, "");
}

async function runHelm(helm: string, args: readonly string[], signal: AbortSignal): Promise<string> {
  // The user's own Helm setup (plugins, repositories, a kubeconfig) must not affect the result.
  const env = { PATH: process.env["PATH"], HOME: "/nonexistent", HELM_PLUGINS: "/nonexistent" };
  const { stdout } = await promisify(execFile)(helm, args, { env, maxBuffer: bytesMax, signal });
  return stdout;
}
