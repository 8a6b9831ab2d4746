// What stands in the environment beside the settings. Other programs' UNKEY_ variables
// are none of krane's business; one that looks like a mistyped setting is worth a word.

import type { Environment } from "./expand.ts";
import { editDistance } from "./nearest-key.ts";
import { type ConfigProblem, problemAt } from "./problem.ts";
import { allSettings } from "./settings.ts";

const clusterId = "UNKEY_CLUSTER_ID";
const slipMax = 2;

const known: ReadonlyMap<string, string> = new Map(allSettings.map(({ env, path }) => [env, path]));

export function inspectEnvironment(env: Environment): ConfigProblem[] {
  const warnings: ConfigProblem[] = [];
  for (const name of Object.keys(env).sort()) {
    if (!name.startsWith("UNKEY_") || known.has(name) || !env[name]) continue;
    const origin = { kind: "env", name } as const;
    if (name === clusterId) {
      warnings.push(problemAt("", origin, "is ignored: no part of krane uses a cluster id", "remove it"));
      continue;
    }
    const meant = nearMiss(name);
    if (meant !== undefined) {
      warnings.push(problemAt("", origin, "is ignored: it is not a setting", `did you mean ${meant}?`));
    }
  }
  return warnings;
}

function nearMiss(name: string): string | undefined {
  const lengthMax = 64;
  if (name.length > lengthMax) return undefined;
  let nearest: { name: string; distance: number } | undefined;
  for (const candidate of known.keys()) {
    const distance = editDistance(name, candidate);
    if (distance <= slipMax && distance < (nearest?.distance ?? slipMax + 1))
      nearest = { name: candidate, distance };
  }
  return nearest?.name;
}
