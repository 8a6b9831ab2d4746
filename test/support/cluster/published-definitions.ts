// Definitions of kinds as their projects publish them, which the test cluster does not have from the start.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadGoToolchain, runGo } from "../../../tools/go-command.ts";

/** Its text, or why it is not at hand, as one line. */
export type PublishedDefinition = { readonly text: string } | { readonly missing: string };

/** Clusterwide policies: krane itself writes those in a namespace only. */
export function loadClusterwideDefinition(): Promise<PublishedDefinition> {
  const file = "pkg/k8s/apis/cilium.io/client/crds/v2/ciliumclusterwidenetworkpolicies.yaml";
  return load("cilium", "github.com/cilium/cilium", file);
}

/** Many clusters have no Gateway API, and a test installs it when it wants. */
export function loadHttpRouteDefinition(): Promise<PublishedDefinition> {
  const file = "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml";
  return load("gateway-api", "sigs.k8s.io/gateway-api", file);
}

async function load(folder: string, module: string, file: string): Promise<PublishedDefinition> {
  const { signal } = new AbortController();
  const go = await loadGoToolchain(process.env, signal);
  if (go.kind === "absent") return { missing: "go is not on the PATH, and the definition is in a Go module" };
  const cwd = fileURLToPath(new URL(`../../../tools/${folder}`, import.meta.url));
  const { Dir } = JSON.parse(
    await runGo(["mod", "download", "-json", module], { cwd, env: process.env }, signal),
  ) as { readonly Dir: string };
  return { text: await readFile(join(Dir, file), "utf8") };
}
