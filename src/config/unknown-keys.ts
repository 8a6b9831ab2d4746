// Keys and sections of the file that no setting has. They are errors: a mistyped key
// that is skipped leaves the default in force, and nobody notices until it matters.

import { nearestName } from "./nearest-key.ts";
import { type ConfigProblem, problemAt } from "./problem.ts";
import type { Setting } from "./setting.ts";
import { typeName } from "./setting-types.ts";
import { allSections, allSettings } from "./settings.ts";
import { isTable, type TomlDocument } from "./toml-document.ts";

// A file that is not krane's at all would give a problem for each of its lines.
const reportedMax = 20;

/** What a file may hold. */
export interface KnownKeys {
  readonly settings: readonly Setting<unknown>[];
  readonly sections: readonly string[];
}

const agentKeys: KnownKeys = { settings: allSettings, sections: allSections };

export function findUnknownKeys(document: TomlDocument, known: KnownKeys = agentKeys): ConfigProblem[] {
  const strangers = [...walk(document.root, [], known)];
  const problems = strangers
    .slice(0, reportedMax)
    .map(({ parts, value }) => describe(document, parts, value, known));
  const rest = strangers.length - problems.length;
  if (rest > 0) {
    const origin = { kind: "file", path: document.path } as const;
    const message = `has ${rest} more unknown keys`;
    problems.push(problemAt("", origin, message, "check that this is krane's configuration file"));
  }
  return problems;
}

interface Stranger {
  readonly parts: readonly string[];
  readonly value: unknown;
}

// An unknown section is one problem, whatever it holds. What a known setting holds is
// for its kind to judge.
function* walk(
  table: Record<string, unknown>,
  prefix: readonly string[],
  known: KnownKeys,
): Generator<Stranger> {
  const { settings, sections } = known;
  for (const [key, value] of Object.entries(table)) {
    const parts = [...prefix, key];
    const path = dotted(parts);
    if (path !== undefined && settings.some((setting) => setting.path === path)) continue;
    if (path !== undefined && sections.includes(path) && isTable(value)) yield* walk(value, parts, known);
    else yield { parts, value };
  }
}

/** The path as settings spell it; undefined when a part has a dot of its own, which no setting has. */
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
    const message = `is a section, got ${typeName(value)}`;
    return problemAt(path, origin, message, `write [${section}] and its keys below it`);
  }
  const isSection = isTable(value);
  // The one that is in every file of a server: whoever takes it for the agent's has mistaken the file, and not the key.
  if (known === agentKeys && isSection && section === "server") {
    const remedy = "a server has a file of its own, which krane config check server looks at";
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

/** Says what may stand in a section, or at the top of the file, in the place of the stranger. */
function contentsOf(section: readonly string[], isSection: boolean, known: KnownKeys): string {
  const prefix = section.map((part) => `${part}.`).join("");
  const direct = (path: string) => path.startsWith(prefix) && !path.slice(prefix.length).includes(".");
  const sections = known.sections.filter(direct).map((path) => `[${path}]`);
  const keys = known.settings.map(({ path }) => path).filter(direct);
  const alike = isSection ? sections : keys;
  const place = prefix === "" ? "the top of the file" : `[${section.join(".")}]`;
  return `${place} holds ${(alike.length > 0 ? alike : [...keys, ...sections]).join(", ")}`;
}

/** The path as it would be written in TOML, cut where a key is absurdly long. */
export function shownPath(parts: readonly string[]): string {
  return parts
    .map((part) => (part.length > 60 ? `${part.slice(0, 60)}...` : part))
    .map((part) => (/^[A-Za-z0-9_-]+$/.test(part) ? part : JSON.stringify(part)))
    .join(".");
}
