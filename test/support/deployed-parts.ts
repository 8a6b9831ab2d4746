// The parts of an install as their manifests describe them, and what krane itself says to the configurations in there.
import assert from "node:assert/strict";
import type { Deployment } from "kubernetes-types/apps/v1.js";
import { type ConfigInput, parseConfig, parseVaultConfig } from "../../src/config/parse.ts";
import type { ConfigProblem } from "../../src/config/problem.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { parseServerConfig } from "../../src/server/config/server-config.ts";

export interface ManifestObject extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

export const componentKey = "app.kubernetes.io/component";

/** What `krane config check` and the other commands would find wrong with the configurations among these objects. */
export function configProblems(objects: readonly ManifestObject[]): readonly ConfigProblem[] {
  return objects
    .filter(({ kind }) => kind === "ConfigMap")
    .flatMap(({ metadata, data }) => {
      const text = data?.["krane.toml"] ?? assert.fail(`${metadata?.name} has no configuration`);
      return problemsOf(metadata?.labels?.[componentKey] ?? "", text);
    });
}

export function problemsOf(component: string, text: string): readonly ConfigProblem[] {
  const file = { path: `${component}.toml`, text };
  const input = { file, env: {}, flags: {} };
  const outcome = parseAs(component, input);
  return outcome.kind === "valid" ? [] : outcome.problems;
}

function parseAs(component: string, input: Pick<ConfigInput, "file" | "env" | "flags">) {
  const randomId = () => "abcd1234";
  if (component === "agent") return parseConfig({ ...input, randomId });
  if (component === "vault") return parseVaultConfig({ ...input, randomId }, "serve");
  assert.equal(component, "server");
  return parseServerConfig(input);
}

/** The apps/v1 Deployment of each part. */
export function deploymentsOf(objects: readonly KubeObject[]): ReadonlyMap<string, Deployment> {
  const found = objects.filter(({ kind }) => kind === "Deployment");
  return new Map(
    found.map((object) => [object.metadata?.labels?.[componentKey] ?? "", object as Deployment]),
  );
}
