// Finds unknown keys and sections in the file. They are errors: if a mistyped key were ignored, its default would apply
// unnoticed.

import { nearestName } from "./nearest-key.ts";
import { type ConfigProblem, problemAt } from "./problem.ts";
import type { Setting } from "./setting.ts";
import { typeName } from "./setting-types.ts";
import { allSections, allSettings } from "./settings.ts";
import { isTable, type TomlDocument } from "./toml-document.ts";

// A file that is not krane's would otherwise give a problem for each of its lines.
const reportedMax = 20;

/** The keys and sections that a file may contain. */
export interface KnownKeys {
  readonly settings: readonly Setting<unknown>[];
  readonly sections: readonly string[];
}

const agentKeys: KnownKeys = { settings: allSettings, sections: allSections };

export function findUnknownKeys(document: TomlDocument, known: KnownKeys = agentKeys): ConfigProblem[] {
  const unknown = [...walk(document.root, [], known)];
  const problems = unknown
    .slice(0, reportedMax)
    .map(({ parts, value }) => describe(document, parts, value, known));
  const rest = unknown.length - problems.length;
  if (rest > 0) {
    const origin = { kind: "file", path: document.path } as const;
    const message = `has ${rest} more unknown keys`;
    problems.push(problemAt("", origin, message, "check that this is krane's configuration file"));
  }
  return problems;
}

interface UnknownKey {
  readonly parts: readonly string[];
  readonly value: unknown;
}

// An unknown section is one problem, whatever it contains. The value of a known setting is checked by its kind.
function* walk(
  table: Record<string, unknown>,
  prefix: readonly string[],
  known: KnownKeys,
): Generator<UnknownKey> {
  const { settings, sections } = known;
  for (const [key, value] of Object.entries(table)) {
    const parts = [...prefix, key];
    const path = dotted(parts);
    if (path !== undefined && settings.some((setting) => setting.path === path)) continue;
    if (path !== undefined && sections.includes(path) && isTable(value)) yield* walk(value, parts, known);
    else yield { parts, value };
  }
}

/** The path in the form of settings; undefined when a part contains a dot, which no setting has. */
function dotted(parts: readonly string[]): string | undefined {
  return parts.some((part) => part.includes(".")) ? undefined : parts.join(".");
}

function describe(
  document: TomlDocument,
  parts: readonly string[],
  value: unknown,
  known: KnownKeys,
): ConfigProblem {
  const origin = document.originOf(parts);
  const path = shownPath(parts);
  const section = dotted(parts);
  if (section !== undefined && known.sections.includes(section)) {
    const message = `must be a section, got ${typeName(value)}`;
    return problemAt(path, origin, message, `write [${section}] and put its settings below it`);
  }
  const isSection = isTable(value);
  // Every server's file has this section, so the file is wrong rather than the key.
  if (known === agentKeys && isSection && section === "server") {
    const remedy = "a server has its own file; check it with krane config check server";
    return problemAt(path, origin, "is a section for krane server", remedy);
  }
  const choices = isSection
    ? known.sections.map((name) => ({ name }))
    : known.settings.map(({ path: name, flag }) => ({ name, aliases: [flag] }));
  const near = nearestName(parts.join("."), choices);
  const meant = isSection ? `[${near}]` : near;
  return problemAt(
    path,
    origin,
    isSection ? "is not a known section" : "is not a known setting",
    near === undefined
      ? `remove it; ${contentsOf(parts.slice(0, -1), isSection, known)}`
      : `did you mean ${meant}?`,
  );
}

/** Lists what is allowed in a section, or at the top level, in place of the unknown key. */
function contentsOf(section: readonly string[], isSection: boolean, known: KnownKeys): string {
  const prefix = section.map((part) => `${part}.`).join("");
  const direct = (path: string) => path.startsWith(prefix) && !path.slice(prefix.length).includes(".");
  const sections = known.sections.filter(direct).map((path) => `[${path}]`);
  const keys = known.settings.map(({ path }) => path).filter(direct);
  const alike = isSection ? sections : keys;
  const place = prefix === "" ? "at the top level" : `in [${section.join(".")}]`;
  return `allowed ${place}: ${(alike.length > 0 ? alike : [...keys, ...sections]).join(", ")}`;
}

/** The path as written in TOML, with very long keys truncated. */
export function shownPath(parts: readonly string[]): string {
  return parts
    .map((part) => (part.length > 60 ? `${part.slice(0, 60)}...` : part))
    .map((part) => (/^[A-Za-z0-9_-]+$/.test(part) ? part : JSON.stringify(part)))
    .join(".");
}
