// `${NAME}` in strings of the configuration file. It happens after TOML is parsed, so a
// quote, newline or dollar inside a variable's value cannot change the file's meaning,
// and comments and keys are left alone. Values are not expanded a second time.

import { bad, ok, type Parsed } from "./parsed.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

const reference = /\$(?:\$|\{([^}]*)(\}?))/g;
// A long value that is referred to often enough would not fit into memory.
const expandedLengthMax = 65_536;
const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function expand(text: string, env: Environment): Parsed<string> {
  const undefinedNames = new Set<string>();
  let malformed: Parsed<never> | undefined;
  let expandedLength = 0;

  const expanded = text.replace(reference, (whole, name: string | undefined, close: string) => {
    if (name === undefined) return "$";
    if (close === "") {
      malformed ??= bad('has "${" that is never closed', 'close it, or write "$$" for a dollar sign');
      return whole;
    }
    if (!variableName.test(name)) {
      // What stands between the braces is not quoted: it may be part of a password.
      malformed ??= bad(
        'has "${" before something that is not a variable name',
        'use letters, digits and "_", or write "$$" for a dollar sign',
      );
      return whole;
    }
    const value = lookUp(env, name);
    if (value === undefined) undefinedNames.add(name);
    expandedLength += value?.length ?? 0;
    return expandedLength > expandedLengthMax ? "" : (value ?? "");
  });

  if (malformed !== undefined) return malformed;
  if (undefinedNames.size > 0) {
    const names = [...undefinedNames].join(", ");
    return bad(
      `uses ${undefinedNames.size === 1 ? "the environment variable" : "the environment variables"} ${names}, which ${undefinedNames.size === 1 ? "is" : "are"} not set`,
      `set ${names}, or write "$$" for a dollar sign`,
    );
  }
  if (expandedLength > expandedLengthMax) {
    return bad(`grows by more than ${expandedLengthMax} characters`, "check which variables it uses");
  }
  return ok(expanded);
}

// "${constructor}" must not find what every object inherits.
function lookUp(env: Environment, name: string): string | undefined {
  return Object.hasOwn(env, name) ? env[name] : undefined;
}

/** Expands a string or the strings of an array; every other value passes as it is. */
export function expandValue(value: unknown, env: Environment): Parsed<unknown> {
  if (typeof value === "string") return expand(value, env);
  if (!Array.isArray(value)) return ok(value);
  const items: unknown[] = [];
  for (const item of value) {
    const expanded = typeof item === "string" ? expand(item, env) : ok(item);
    if (expanded.kind === "bad") return expanded;
    items.push(expanded.value);
  }
  return ok(items);
}
