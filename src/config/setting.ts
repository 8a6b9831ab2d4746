// The definition of one setting: its name in the file, its variable and flag, its type and its description. Parsing,
// origins, help and the reference table are all derived from it.

import type { Secret } from "./secret.ts";
import type { SecretType } from "./secret-types.ts";
import type { SettingType } from "./setting-types.ts";
import { path as pathType } from "./setting-types.ts";

/** What a default may depend on. */
export interface DefaultFacts {
  hasSection(path: string): boolean;
  randomId(): string;
}

export interface Fallback<T> {
  /** The default as text, for the reference table. */
  readonly text: string;
  value(facts: DefaultFacts): T;
}

const prefix = "UNKEY_";
const otherPrefix = "KRANE_";

/** The names under which a variable is accepted. */
export function variableNames({ env }: Pick<Setting<unknown>, "env">): readonly string[] {
  return [env, `${otherPrefix}${env.slice(prefix.length)}`];
}

/** Whether a variable may be meant for krane. */
export function isVariable(name: string): boolean {
  return name.startsWith(prefix) || name.startsWith(otherPrefix);
}

export interface Setting<T> {
  /** Key in the file, for example "control.url". */
  readonly path: string;
  readonly kind: SettingType<T>;
  /** Begins with UNKEY_; see variableNames(). */
  readonly env: string;
  readonly flag: string;
  readonly about: string;
  readonly fallback?: Fallback<T>;
  readonly required: boolean;
  /** An empty string means "not set" instead of being an error. */
  readonly emptyIsUnset: boolean;
}

export interface SecretSetting extends Setting<Secret> {
  readonly kind: SecretType;
  /** The `*_file` setting that may replace this one. */
  readonly file: Setting<string>;
}

export interface SettingExtras {
  /** The variable's name, if it does not follow from the path. */
  readonly env?: string;
  readonly required?: boolean;
  readonly emptyIsUnset?: boolean;
}

export function setting<T>(
  path: string,
  kind: SettingType<T>,
  about: string,
  extras: SettingExtras & { readonly fallback?: Fallback<T> } = {},
): Setting<T> {
  const env = extras.env ?? `${prefix}${path.replaceAll(".", "_").toUpperCase()}`;
  return {
    path,
    kind,
    env,
    flag: env.slice(prefix.length).toLowerCase().replaceAll("_", "-"),
    about,
    ...(extras.fallback === undefined ? {} : { fallback: extras.fallback }),
    required: extras.required ?? false,
    emptyIsUnset: extras.emptyIsUnset ?? false,
  };
}

export function settingWithDefault<T>(
  path: string,
  kind: SettingType<T>,
  value: T,
  about: string,
  extras: SettingExtras = {},
): Setting<T> {
  return setting(path, kind, about, {
    ...extras,
    fallback: { text: `\`${kind.show(value)}\``, value: () => value },
  });
}

export function secretSetting(
  path: string,
  kind: SecretType,
  about: string,
  extras: SettingExtras = {},
): SecretSetting {
  const inline = setting(path, kind, about, extras);
  const file = setting(
    `${path}_file`,
    pathType(),
    `File that contains \`${path}\`; reloaded when it changes.`,
    { env: `${inline.env}_FILE` },
  );
  return { ...inline, kind, file };
}
