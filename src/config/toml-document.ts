// Parses the configuration file into values and lines by path, or into the one problem that makes it unreadable. The
// parser's own message quotes the lines around the error, which may contain a token, so only its first line is used (K7).

import { parse, TomlDate, TomlError, type TomlTable } from "smol-toml";
import { type ConfigProblem, type Origin, problemAt } from "./problem.ts";
import { type KeyLines, keyId, locateKeys } from "./toml-lines.ts";

export interface ConfigFile {
  readonly path: string;
  readonly text: string;
}

export type TomlOutcome =
  | { readonly kind: "document"; readonly document: TomlDocument }
  | { readonly kind: "broken"; readonly problem: ConfigProblem };

const textLengthMax = 262_144;
const nestingMax = 32;

export class TomlDocument {
  readonly path: string;
  readonly root: TomlTable;
  private readonly lines: KeyLines;

  constructor(path: string, root: TomlTable, lines: KeyLines) {
    this.path = path;
    this.root = root;
    this.lines = lines;
  }

  /** The value at a path, or undefined. */
  lookUp(parts: readonly string[]): unknown {
    let value: unknown = this.root;
    for (const part of parts) {
      if (!isTable(value)) return undefined;
      // The parser's tables have no prototype, so nothing inherited can be found here.
      value = value[part];
    }
    return value;
  }

  hasSection(path: string): boolean {
    return isTable(this.lookUp(path.split(".")));
  }

  originOf(parts: readonly string[]): Origin {
    const line = this.lines.get(keyId(parts));
    return { kind: "file", path: this.path, ...(line === undefined ? {} : { line }) };
  }
}

export function isTable(value: unknown): value is TomlTable {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof TomlDate);
}

export function readToml(file: ConfigFile): TomlOutcome {
  if (file.text.length > textLengthMax) {
    const message = `is larger than ${textLengthMax / 1024} KiB`;
    return broken(
      { kind: "file", path: file.path },
      message,
      "check that this is krane's configuration file",
    );
  }
  try {
    const root = parse(file.text, { integersAsBigInt: "asNeeded", maxDepth: nestingMax });
    return { kind: "document", document: new TomlDocument(file.path, root, locateKeys(file.text)) };
  } catch (error) {
    const { line, column, reason } = describe(error);
    const origin: Origin = { kind: "file", path: file.path, ...(line === undefined ? {} : { line }) };
    const at = column === undefined ? "" : ` at column ${column}`;
    return broken(origin, `is not valid TOML${at}: ${reason}`, remedyFor(reason));
  }
}

function broken(origin: Origin, message: string, remedy: string): TomlOutcome {
  return { kind: "broken", problem: problemAt("", origin, message, remedy) };
}

function describe(error: unknown): { line?: number; column?: number; reason: string } {
  const unknownReason = { reason: "the text cannot be parsed" };
  if (!(error instanceof TomlError)) return unknownReason;
  const reason = error.message.split("\n", 1)[0]?.replace("Invalid TOML document: ", "") ?? "";
  return { line: error.line, column: error.column, reason };
}

// Remedies for the most common mistakes, by the parser's message.
function remedyFor(reason: string): string {
  if (reason.includes("redefine")) return "remove one of the two";
  if (reason.includes("control characters")) return "close the string on the same line";
  return 'put strings in quotes, also those with "${"';
}
