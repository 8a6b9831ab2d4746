// Parses token lists: one entry per line, whose last word is the token. Lines that begin
// with # are comments.

import { bad, ok, type Parsed } from "../../config/problem.ts";
import { Secret } from "../../config/secret.ts";
import type { SecretType } from "../../config/secret-types.ts";
import { isTextList, splitCommas, wrongList } from "../../config/setting-types.ts";

const charsMax = 1024 * 1024;
const tokenRule = "a token has at least 16 visible characters";

interface LineRules {
  /** The form of a line, in words: "region token". */
  readonly form: string;
  readonly pattern: RegExp;
  readonly example: string;
  /** Checks the lines as a whole. */
  findProblem?(lines: readonly string[]): string | undefined;
}

function tokenLines({ form, pattern, example, findProblem }: LineRules): SecretType {
  const parse = (lines: readonly string[]): Parsed<Secret> => {
    const meant = lines.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"));
    if (meant.length === 0) return bad("contains no token", `write one per line: "${example}"`);
    const wrong = meant.findIndex((line) => !pattern.test(line));
    // Never quoted: a malformed line may still be a token.
    if (wrong >= 0) return bad(`entry ${wrong + 1} is not of the form "${form}"`, tokenRule);
    const problem = findProblem?.(meant);
    if (problem !== undefined) return bad(problem, `write one per line: "${example}"`);
    const joined = meant.join("\n");
    return joined.length > charsMax ? bad("is longer than 1 MiB", "check the file") : ok(new Secret(joined));
  };
  return {
    label: `list of "${form}"`,
    placeholder: `${form},...`,
    fromToml: (value) => (isTextList(value) ? parse(value) : wrongList(value)),
    fromText: (text) => parse(splitCommas(text)),
    fromFile: (text) => parse(text.split("\n")),
    show: (secret) => JSON.stringify([String(secret)]),
  };
}

export interface AgentToken {
  readonly region: string;
  readonly token: Secret;
}

const agentLine = /^([A-Za-z0-9][A-Za-z0-9._-]{0,127})[ \t]+([!-~]{16,4096})$/;

export function agentTokens(): SecretType {
  return tokenLines({ form: "region token", pattern: agentLine, example: "us-east-1.aws TOKEN" });
}

/** The entries of a secret of the type above. */
export function readAgentTokens(secret: Secret): readonly AgentToken[] {
  return linesOf(secret, agentLine, ([region = "", token = ""]) => ({ region, token: new Secret(token) }));
}

/** `logs` may also read the logs of pods, which `read-write` alone may not: they can hold what a tenant's users typed. */
export type AdminRole = "read-only" | "read-write" | "logs" | "read-write+logs";

const roles: Readonly<Record<AdminRole, true>> = {
  "read-only": true,
  "read-write": true,
  logs: true,
  "read-write+logs": true,
};

/** As part of a regular expression. */
export const rolePattern = Object.keys(roles)
  .map((role) => role.replace("+", "\\+"))
  .join("|");

/** For a word that matches the pattern. */
export function parseRole(word: string | undefined): AdminRole {
  return word !== undefined && Object.hasOwn(roles, word) ? (word as AdminRole) : "read-only";
}

export function mayWrite(role: AdminRole): boolean {
  return role === "read-write" || role === "read-write+logs";
}

export function mayReadLogs(role: AdminRole): boolean {
  return role === "logs" || role === "read-write+logs";
}

export interface AdminToken {
  /** The author of changes made with it. */
  readonly name: string;
  readonly role: AdminRole;
  readonly token: Secret;
}

const adminLine = new RegExp(
  `^([A-Za-z0-9][A-Za-z0-9._@-]{0,62})[ \\t]+(${rolePattern})[ \\t]+([!-~]{16,4096})$`,
);

export function adminTokens(): SecretType {
  return tokenLines({
    form: "name role token",
    pattern: adminLine,
    example: "ann read-write TOKEN",
    // With this name, history could not tell a person's changes from the agent's reports.
    findProblem: (lines) =>
      lines.some((line) => line.startsWith("agent ") || line.startsWith("agent\t"))
        ? 'uses the name "agent", which is reserved for agents'
        : undefined,
  });
}

export function readAdminTokens(secret: Secret): readonly AdminToken[] {
  return linesOf(secret, adminLine, ([name = "", role, token = ""]) => ({
    name,
    role: parseRole(role),
    token: new Secret(token),
  }));
}

function linesOf<T>(secret: Secret, pattern: RegExp, read: (words: readonly string[]) => T): readonly T[] {
  return secret
    .reveal()
    .split("\n")
    .flatMap((line) => {
      const match = pattern.exec(line);
      return match === null ? [] : [read(match.slice(1))];
    });
}
