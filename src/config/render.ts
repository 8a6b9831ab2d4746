// Renders a configuration and its problems as text. Control characters are escaped, because keys and paths are untrusted
// and could contain terminal escapes, or newlines that fake a second line.

import type { ValidConfig } from "./parse.ts";
import type { ConfigProblem, Origin } from "./problem.ts";

/** One line per problem: `krane.toml:12: control.url: message; remedy`. */
export function renderProblems(problems: readonly ConfigProblem[]): string {
  return problems.map((problem) => `${escapeControls(renderProblem(problem))}\n`).join("");
}

function renderProblem({ where, line, path, message, remedy }: ConfigProblem): string {
  const place = where === undefined ? "" : `${where}${line === undefined ? "" : `:${line}`}: `;
  return `${place}${path === "" ? "" : `${path}: `}${message}; ${remedy}`;
}

/** One line of TOML for each effective value, with its origin as a comment. Secrets are redacted. */
export function renderConfig(outcome: ValidConfig): string {
  return outcome.origins
    .map(({ path, shown, origin }) => `${escapeControls(`${path} = ${shown}  # ${renderOrigin(origin)}`)}\n`)
    .join("");
}

function renderOrigin(origin: Origin): string {
  switch (origin.kind) {
    case "flag":
      return `flag --${origin.name}`;
    case "env":
      return `env ${origin.name}`;
    case "file":
      return `file ${origin.path}${origin.line === undefined ? "" : `:${origin.line}`}`;
    case "default":
      return "default";
  }
}

function escapeControls(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
  );
}
