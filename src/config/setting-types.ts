// The types of values that settings can have. A type parses the TOML value or the text of a variable or flag, describes
// what it expects, and formats a value as TOML. Messages never quote strings (see problem.ts), only numbers.

import { TomlDate } from "smol-toml";
import { formatDuration, parseDuration } from "./duration.ts";
import { bad, ok, type Parsed } from "./problem.ts";

export interface SettingType<T> {
  /** The allowed values, for the reference table. */
  readonly label: string;
  /** Placeholder for the value in a flag's help. */
  readonly placeholder: string;
  fromToml(value: unknown): Parsed<T>;
  fromText(text: string): Parsed<T>;
  show(value: T): string;
}

export interface TextTypeOptions {
  readonly label: string;
  readonly placeholder: string;
  readonly parse: (text: string) => Parsed<string>;
}

export function textType(options: TextTypeOptions): SettingType<string> {
  return {
    label: options.label,
    placeholder: options.placeholder,
    fromToml: (value) =>
      typeof value === "string"
        ? options.parse(value)
        : wrongType("a string", value, "put the value in quotes"),
    fromText: options.parse,
    show: (value) => JSON.stringify(value),
  };
}

/** Text of up to 128 characters that matches the pattern; `allowed` describes the pattern. */
export function patternText(label: string, pattern: RegExp, allowed: string): SettingType<string> {
  return textType({
    label,
    placeholder: "text",
    parse: (text) => {
      if (text === "") return emptyText();
      if (text.length > 128) return bad("is longer than 128 characters", "shorten it");
      return pattern.test(text)
        ? ok(text)
        : bad(`may contain only ${allowed}`, "remove the other characters");
    },
  });
}

export function path(): SettingType<string> {
  return textType({
    label: "path",
    placeholder: "path",
    parse: (text) => {
      if (text === "") return emptyText();
      if (text.length > 4096) return bad("is longer than 4096 characters", "shorten the path");
      return hasControlCharacter(text)
        ? bad("contains a control character", "check it for a stray newline or tab")
        : ok(text);
    },
  });
}

export function oneOf<const T extends string>(choices: readonly T[]): SettingType<T> {
  const list = choices.map((choice) => JSON.stringify(choice)).join(", ");
  const parse = (text: string): Parsed<T> => {
    const found = choices.find((choice) => choice === text);
    return found === undefined ? bad(`must be one of ${list}`, "use one of these values") : ok(found);
  };
  return {
    label: choices.map((choice) => `\`${choice || '""'}\``).join(", "),
    placeholder: choices.map((choice) => choice || '""').join("|"),
    fromToml: (value) =>
      typeof value === "string" ? parse(value) : wrongType("a string", value, `use one of ${list}`),
    fromText: parse,
    show: (value) => JSON.stringify(value),
  };
}

export function integer(min: number, max: number, noun = "integer"): SettingType<number> {
  const expected = `a whole number from ${min} to ${max}`;
  const remedy = "choose a number in that range";
  return {
    label: `${noun} ${min}-${max}`,
    placeholder: noun === "port" ? "port" : "number",
    fromToml: (value) => {
      // A number that is too large to be exact is a bigint, and out of range for every setting.
      if (typeof value === "bigint") return bad(`must be ${expected}, got ${value}`, remedy);
      if (!Number.isInteger(value)) return wrongType(expected, value, "write the number without quotes");
      return inRange(Number(value), min, max, expected, remedy);
    },
    fromText: (text) =>
      /^[+-]?\d{1,15}$/.test(text)
        ? inRange(Number(text), min, max, expected, remedy)
        : bad(`must be ${expected}`, remedy),
    show: String,
  };
}

export function port(min: 0 | 1 = 1): SettingType<number> {
  return integer(min, 65_535, "port");
}

/** A fraction from 0 to 1. */
export function rate(): SettingType<number> {
  const expected = "a number from 0 to 1";
  const remedy = "use 0 for none, 1 for all, or a fraction such as 0.25";
  return {
    label: "number 0-1",
    placeholder: "rate",
    fromToml: (value) => {
      if (typeof value === "bigint") return bad(`must be ${expected}, got ${value}`, remedy);
      if (typeof value !== "number") return wrongType(expected, value, "write the number without quotes");
      return inRange(value, 0, 1, expected, remedy);
    },
    fromText: (text) =>
      /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)
        ? inRange(Number(text), 0, 1, expected, remedy)
        : bad(`must be ${expected}`, remedy),
    show: String,
  };
}

function inRange(value: number, min: number, max: number, expected: string, remedy: string): Parsed<number> {
  // NaN must fail too, so the comparison is not negated. Adding zero turns -0 into 0, which would be shown as "-0".
  return value >= min && value <= max ? ok(value + 0) : bad(`must be ${expected}, got ${value}`, remedy);
}

/** Milliseconds, written as "500ms" or "1h30m". */
export function duration(minMs: number, maxMs: number): SettingType<number> {
  const range = `${formatDuration(minMs)} to ${formatDuration(maxMs)}`;
  const parse = (text: string): Parsed<number> => {
    const value = parseDuration(text);
    if (value === undefined)
      return bad("is not a duration", "write a number and a unit, such as 500ms, 5s or 1h30m");
    return value >= minMs && value <= maxMs
      ? ok(value)
      : bad(`must be a duration from ${range}`, "choose a duration in that range");
  };
  return {
    label: `duration ${range}`,
    placeholder: "duration",
    fromToml: (value) =>
      typeof value === "string"
        ? parse(value)
        : wrongType("a duration in quotes", value, 'write it with its unit, such as "5s"'),
    fromText: parse,
    show: (value) => JSON.stringify(formatDuration(value)),
  };
}

const booleanWords: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["t", true],
  ["1", true],
  ["false", false],
  ["f", false],
  ["0", false],
]);

export function bool(): SettingType<boolean> {
  return {
    label: "boolean",
    placeholder: "true|false",
    fromToml: (value) =>
      typeof value === "boolean"
        ? ok(value)
        : wrongType("true or false", value, "write the word without quotes"),
    fromText: (text) => {
      const value = booleanWords.get(text.toLowerCase());
      return value === undefined ? bad("must be true or false", "use true or false") : ok(value);
    },
    show: String,
  };
}

/** A list in TOML, or comma-separated text. */
export function listOf(item: SettingType<string>): SettingType<readonly string[]> {
  const parse = (texts: readonly string[]): Parsed<readonly string[]> => {
    const values: string[] = [];
    for (const [index, text] of texts.entries()) {
      const parsed = item.fromText(text);
      if (parsed.kind === "bad") return bad(`entry ${index + 1} ${parsed.message}`, parsed.remedy);
      values.push(parsed.value);
    }
    return ok(values);
  };
  return {
    label: `list of ${item.label}`,
    placeholder: "a,b,...",
    fromToml: (value) => (isTextList(value) ? parse(value) : wrongList(value)),
    fromText: (text) => parse(splitCommas(text)),
    show: (values) => `[${values.map((value) => JSON.stringify(value)).join(", ")}]`,
  };
}

export function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

export function wrongList(value: unknown): Parsed<never> {
  return Array.isArray(value)
    ? bad("must be a list of strings, got a list with other values", "put every entry in quotes")
    : wrongType("a list of strings", value, 'write it as ["a", "b"]');
}

export function splitCommas(text: string): string[] {
  return text.trim() === "" ? [] : text.split(",").map((part) => part.trim());
}

export function emptyText(): Parsed<never> {
  return bad("must not be empty", "set a value; optional settings can be left out");
}

export function hasControlCharacter(text: string): boolean {
  return /\p{Cc}/u.test(text);
}

export function wrongType(expected: string, value: unknown, remedy: string): Parsed<never> {
  return bad(`must be ${expected}, got ${typeName(value)}`, remedy);
}

/** TOML's name for the type of a parsed value, with its article. */
export function typeName(value: unknown): string {
  if (typeof value === "string") return "a string";
  if (typeof value === "boolean") return "a boolean";
  if (typeof value === "bigint" || Number.isInteger(value)) return "an integer";
  if (typeof value === "number") return "a float";
  if (Array.isArray(value)) return "a list";
  return value instanceof TomlDate ? "a date" : "a table";
}
