// Resolves the effective value of every setting and its origin. Flags override variables, variables override the file,
// and the file overrides defaults. Only the effective value is parsed, so a variable can override a value in the file
// that is invalid here.
//
// A secret and its `*_file` are one choice: the one from the higher layer wins, and both in the same layer are a problem.

import { expandValue, type ProcessEnv } from "./expand.ts";
import { bad, type ConfigProblem, type Origin, type Parsed, problemAt } from "./problem.ts";
import type { SecretRef } from "./secret.ts";
import { type DefaultFacts, type SecretSetting, type Setting, variableNames } from "./setting.ts";
import { isSecretSetting, settingChoices } from "./settings.ts";
import type { TomlDocument } from "./toml-document.ts";

export interface Layers {
  readonly flags: Readonly<Record<string, string>>;
  readonly env: ProcessEnv;
  readonly document: TomlDocument | undefined;
}

/** A value that was set; `value` is undefined when it was invalid. */
interface Written {
  readonly origin: Origin;
  readonly value: unknown;
}

export class Resolution {
  private readonly layers: Layers;
  private readonly facts: DefaultFacts;
  private readonly choices: readonly Setting<unknown>[];
  private readonly written = new Map<string, Written>();
  private readonly defaults = new Map<string, unknown>();

  /** Uses the agent's settings by default. */
  constructor(layers: Layers, facts: DefaultFacts, choices: readonly Setting<unknown>[] = settingChoices) {
    this.layers = layers;
    this.facts = facts;
    this.choices = choices;
  }

  /** Reads all layers once, and returns the problems of single values. */
  resolve(): ConfigProblem[] {
    return this.choices.flatMap((setting) =>
      isSecretSetting(setting) ? this.resolveSecret(setting) : this.settle(setting, this.find(setting)),
    );
  }

  /** Whether a value was set, valid or not. */
  isSet(setting: Setting<unknown>): boolean {
    return this.written.has(setting.path) || (isSecretSetting(setting) && this.isSet(setting.file));
  }

  /** The effective value; undefined when it is not set or invalid. */
  value<T>(setting: Setting<T>): T | undefined {
    const written = this.written.get(setting.path);
    if (written !== undefined) return written.value as T | undefined;
    if (setting.fallback === undefined) return undefined;
    // Computed once, because a default may be random.
    if (!this.defaults.has(setting.path)) {
      this.defaults.set(setting.path, setting.fallback.value(this.facts));
    }
    return this.defaults.get(setting.path) as T;
  }

  secret(setting: SecretSetting): SecretRef | undefined {
    const secret = this.value(setting);
    if (secret !== undefined) return { kind: "inline", secret };
    const path = this.value(setting.file);
    return path === undefined ? undefined : { kind: "file", path, setting: setting.path };
  }

  originOf(setting: Setting<unknown>): Origin | undefined {
    const origin = this.written.get(setting.path)?.origin;
    return origin ?? (isSecretSetting(setting) ? this.originOf(setting.file) : undefined);
  }

  /** The origin of a section in the file, if present. */
  sectionOrigin(section: string): Origin | undefined {
    const document = this.layers.document;
    return document?.hasSection(section) ? document.originOf(section.split(".")) : undefined;
  }

  /** The file itself, for a setting that is not in it. */
  get fileOrigin(): Origin | undefined {
    const document = this.layers.document;
    return document === undefined ? undefined : { kind: "file", path: document.path };
  }

  private resolveSecret(setting: SecretSetting): ConfigProblem[] {
    const inline = this.find(setting);
    const file = this.find(setting.file);
    if (inline === undefined || file === undefined || inline.rank !== file.rank) {
      const inlineWins = (inline?.rank ?? 0) > (file?.rank ?? 0);
      return inlineWins ? this.settle(setting, inline) : this.settle(setting.file, file);
    }
    if (isEmpty(setting, inline)) return this.settle(setting.file, file);
    this.written.set(setting.path, { origin: inline.origin, value: undefined });
    return [
      problemAt(
        setting.path,
        inline.origin,
        `is set, and so is ${setting.file.path}`,
        `remove one of them; only ${setting.file.path} can rotate`,
      ),
    ];
  }

  private settle(setting: Setting<unknown>, found: Found | undefined): ConfigProblem[] {
    if (found === undefined || isEmpty(setting, found)) return [];
    const parsed = found.read(setting);
    if (parsed.kind === "ok") {
      this.written.set(setting.path, { origin: found.origin, value: parsed.value });
      return [];
    }
    this.written.set(setting.path, { origin: found.origin, value: undefined });
    return [problemAt(setting.path, found.origin, parsed.message, parsed.remedy)];
  }

  private find(setting: Setting<unknown>): Found | undefined {
    const { flags, env, document } = this.layers;
    const flag = Object.hasOwn(flags, setting.flag) ? flags[setting.flag] : undefined;
    if (flag !== undefined) return foundText(3, { kind: "flag", name: setting.flag }, flag);
    const variable = findVariable(setting, env);
    if (variable !== undefined) return variable;
    const parts = setting.path.split(".");
    const raw = document?.lookUp(parts);
    if (document === undefined || raw === undefined) return undefined;
    const expanded = expandValue(raw, env);
    return {
      rank: 1,
      origin: document.originOf(parts),
      empty: expanded.kind === "ok" && expanded.value === "",
      read: ({ kind }) => (expanded.kind === "ok" ? kind.fromToml(expanded.value) : expanded),
    };
  }
}

interface Found {
  readonly rank: number;
  readonly origin: Origin;
  readonly empty: boolean;
  readonly read: (setting: Setting<unknown>) => Parsed<unknown>;
}

/** Templates often leave variables empty to mean "not set", so an empty variable does not override the file. */
function findVariable(setting: Setting<unknown>, env: ProcessEnv): Found | undefined {
  const given = variableNames(setting).flatMap((name) => {
    const text = Object.hasOwn(env, name) ? env[name] : undefined;
    return text ? [{ name, text }] : [];
  });
  const [first, second] = given;
  if (first === undefined) return undefined;
  const found = foundText(2, { kind: "env", name: first.name }, first.text);
  if (second === undefined || second.text === first.text) return found;
  const message = `is set, and so is ${second.name}, to another value`;
  return { ...found, read: () => bad(message, "remove one of them") };
}

function foundText(rank: number, origin: Origin, text: string): Found {
  return { rank, origin, empty: text === "", read: ({ kind }) => kind.fromText(text) };
}

function isEmpty(setting: Setting<unknown>, found: Found): boolean {
  return found.empty && setting.emptyIsUnset;
}
