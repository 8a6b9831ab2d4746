// The definition of clusterwide policies as Cilium publishes it. The test cluster has that of policies in a namespace
// only, which is all that krane itself writes.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadGoToolchain, runGo } from "../../../tools/go-command.ts";

/** Its text, or why it is not at hand, as one line. */
export async function loadClusterwideDefinition(): Promise<
  { readonly text: string } | { readonly missing: string }
> {
  const { signal } = new AbortController();
  const go = await loadGoToolchain(process.env, signal);
  if (go.kind === "absent") return { missing: "go is not on the PATH, and the definition is in a Go module" };
  const cwd = fileURLToPath(new URL("../../../tools/cilium", import.meta.url));
  const asked = ["mod", "download", "-json", "github.com/cilium/cilium"];
  const { Dir } = JSON.parse(await runGo(asked, { cwd, env: process.env }, signal)) as {
    readonly Dir: string;
  };
  const folder = join(Dir, "pkg/k8s/apis/cilium.io/client/crds/v2");
  return { text: await readFile(join(folder, "ciliumclusterwidenetworkpolicies.yaml"), "utf8") };
}
