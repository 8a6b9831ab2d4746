// Parses the configuration file, environment variables and flags into a Config, or into a list of all problems. Pure: the
// caller reads the file and process.env. Outcomes are deeply frozen, so that no code can change a setting later.

import { buildConfig, buildVaultProgramConfig, listOrigins } from "./build.ts";
import type { Config, VaultProgramConfig } from "./config.ts";
import type { ProcessEnv } from "./expand.ts";
import { editDistance } from "./nearest-key.ts";
import { type ConfigProblem, problemAt, type SettingOrigin, sortProblems } from "./problem.ts";
import { Resolution } from "./resolve.ts";
import { checkRules, checkServerRules, type Verdict } from "./rules.ts";
import { isVariable, variableNames } from "./setting.ts";
import { allSettings } from "./settings.ts";
import { type ConfigFile, readToml } from "./toml-document.ts";
import { findUnknownKeys } from "./unknown-keys.ts";
import { checkVault, checkVaultUse, type VaultUse } from "./vault-rules.ts";

export interface ConfigInput {
  readonly file?: ConfigFile;
  readonly env: ProcessEnv;
  /** The given flags by name, without dashes, for example "rpc-port". */
  readonly flags: Readonly<Record<string, string>>;
  /** 8 random characters of [a-zA-Z0-9], for an instance without an id. */
  readonly randomId: () => string;
}

export interface ValidConfig<C = Config> {
  readonly kind: "valid";
  readonly config: C;
  readonly origins: readonly SettingOrigin[];
  readonly warnings: readonly ConfigProblem[];
}

export interface InvalidConfig {
  readonly kind: "invalid";
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
}

export type ConfigOutcome<C = Config> = ValidConfig<C> | InvalidConfig;

export function parseConfig(input: ConfigInput): ConfigOutcome {
  const rules = (resolution: Resolution) => [checkRules(resolution), checkVault(resolution)];
  return deepFreeze(judge(input, rules, buildConfig));
}

/** Parses the same file and variables for a vault, which requires neither a region nor a control plane. */
export function parseVaultConfig(input: ConfigInput, use: VaultUse): ConfigOutcome<VaultProgramConfig> {
  const rules = (resolution: Resolution) => [checkServerRules(resolution), checkVaultUse(resolution, use)];
  return deepFreeze(judge(input, rules, buildVaultProgramConfig));
}

function judge<C>(
  input: ConfigInput,
  rules: (resolution: Resolution) => readonly Verdict[],
  build: (resolution: Resolution) => C,
): ConfigOutcome<C> {
  const toml = input.file && readToml(input.file);
  const document = toml?.kind === "document" ? toml.document : undefined;
  const resolution = new Resolution(
    { flags: input.flags, env: input.env, document },
    { hasSection: (path) => document?.hasSection(path) ?? false, randomId: input.randomId },
  );
  const problems = [...resolution.resolve(), ...findUnknownFlags(input.flags)];
  const warnings = inspectVariables(input.env);

  if (toml?.kind === "broken") {
    // The settings in a broken file are unknown, so the rules would report settings as missing that are there.
    problems.push(toml.problem);
  } else {
    for (const verdict of rules(resolution)) {
      problems.push(...verdict.problems);
      warnings.push(...verdict.warnings);
    }
    if (document !== undefined) problems.push(...findUnknownKeys(document));
  }

  if (problems.length > 0) {
    return { kind: "invalid", problems: sortProblems(problems), warnings: sortProblems(warnings) };
  }
  return {
    kind: "valid",
    config: build(resolution),
    origins: listOrigins(resolution),
    warnings: sortProblems(warnings),
  };
}

function findUnknownFlags(flags: Readonly<Record<string, string>>): ConfigProblem[] {
  const known = new Set(allSettings.map(({ flag }) => flag));
  return Object.keys(flags)
    .filter((name) => !known.has(name))
    .map((name) => problemAt("", { kind: "flag", name }, "is not a known flag", "see --help"));
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}

const clusterId = "UNKEY_CLUSTER_ID";
const typosMax = 2;

const known: ReadonlySet<string> = new Set(allSettings.flatMap(variableNames));

/** Warns of variables that look like mistyped settings. Others with these prefixes belong to other programs. */
function inspectVariables(env: ProcessEnv): ConfigProblem[] {
  const warnings: ConfigProblem[] = [];
  for (const name of Object.keys(env).sort()) {
    if (!isVariable(name) || known.has(name) || !env[name]) continue;
    const origin = { kind: "env", name } as const;
    if (name === clusterId) {
      warnings.push(problemAt("", origin, "is ignored: krane does not use a cluster id", "remove it"));
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
  for (const candidate of known) {
    const distance = editDistance(name, candidate);
    if (distance <= typosMax && distance < (nearest?.distance ?? typosMax + 1))
      nearest = { name: candidate, distance };
  }
  return nearest?.name;
}
