// Expands `${NAME}` in strings of the configuration file. This happens after TOML parsing, so a quote, newline or dollar
// in a variable's value cannot change the meaning of the file, and comments and keys are not expanded. Values are
// expanded only once.

import { bad, ok, type Parsed } from "./problem.ts";

export type ProcessEnv = Readonly<Record<string, string | undefined>>;

const reference = /\$(?:\$|\{([^}]*)(\}?))/g;
// A long value that is referenced many times could exhaust the memory.
const expandedLengthMax = 65_536;
const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function expand(text: string, env: ProcessEnv): Parsed<string> {
  const undefinedNames = new Set<string>();
  let malformed: Parsed<never> | undefined;
  let expandedLength = 0;

  const expanded = text.replace(reference, (whole, name: string | undefined, close: string) => {
    if (name === undefined) return "$";
    if (close === "") {
      malformed ??= bad('contains an unclosed "${"', 'close it, or write "$$" for a dollar sign');
      return whole;
    }
    if (!variableName.test(name)) {
      // The text between the braces is not quoted, because it may be part of a password.
      malformed ??= bad(
        'contains "${" without a valid variable name',
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
    return bad(`expands by more than ${expandedLengthMax} characters`, "check which variables it uses");
  }
  return ok(expanded);
}

// "${constructor}" must not find an inherited property.
function lookUp(env: ProcessEnv, name: string): string | undefined {
  return Object.hasOwn(env, name) ? env[name] : undefined;
}

/** Expands a string or the strings of an array. Other values are returned unchanged. */
export function expandValue(value: unknown, env: ProcessEnv): Parsed<unknown> {
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
