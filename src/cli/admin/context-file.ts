// Parses the contexts file: the user's control planes, like kubectl's kubeconfig. Pure: takes the text, and returns the
// contexts or all problems. The file may hold tokens, so problems never quote a value (K7).
//
// Paths in it are relative to its folder, so that the file and its token files can be moved together.
import { dirname, join, resolve } from "node:path";
import type { ProcessEnv } from "../../config/expand.ts";
import { isPrivateHost } from "../../config/insecure-url.ts";
import { nearestName } from "../../config/nearest-key.ts";
import { type ConfigProblem, problemAt, sortProblems } from "../../config/problem.ts";
import type { SecretRef } from "../../config/secret.ts";
import { bearerToken } from "../../config/secret-types.ts";
import { path as pathType, patternText, type SettingType } from "../../config/setting-types.ts";
import { isTable, readToml, type TomlDocument } from "../../config/toml-document.ts";
import { shownPath } from "../../config/unknown-keys.ts";
import { url } from "../../config/url-types.ts";

/** A server and its credentials. */
export interface Endpoint {
  readonly url: string | undefined;
  readonly token: SecretRef | undefined;
  readonly caFile: string | undefined;
}

export interface Context {
  readonly name: string;
  readonly server: Endpoint;
  readonly region: string | undefined;
  /** The vault that `krane secrets` encrypts with; undefined if the context has none. */
  readonly vault: Endpoint | undefined;
}

export interface ContextFile {
  readonly path: string;
  /** The name of the default context. */
  readonly current: string | undefined;
  readonly contexts: ReadonlyMap<string, Context>;
}

export type ContextFileOutcome =
  | { readonly kind: "valid"; readonly file: ContextFile }
  | { readonly kind: "invalid"; readonly problems: readonly ConfigProblem[] };

/** Undefined if none of the variables is set. */
export function contextFilePath(env: ProcessEnv): string | undefined {
  if (env["KRANE_CONFIG"]) return env["KRANE_CONFIG"];
  const base = env["XDG_CONFIG_HOME"] || (env["HOME"] && join(env["HOME"], ".config"));
  return base ? join(base, "krane", "config.toml") : undefined;
}

const contextName = patternText("name", /^[A-Za-z0-9_.-]+$/, 'letters, digits, "-", "_" and "."');
export const regionName = patternText("region", /^[A-Za-z0-9_.-]+$/, 'letters, digits, "-", "_" and "."');

export function parseContextFile(file: { readonly path: string; readonly text: string }): ContextFileOutcome {
  const toml = readToml(file);
  if (toml.kind === "broken") return { kind: "invalid", problems: [toml.problem] };
  const reader = new Reader(toml.document);
  const contexts = reader.contexts();
  const current = reader.text(["current"], contextName);
  reader.refuseOthers([], ["current", "contexts"]);
  if (current !== undefined && reader.problems.length === 0 && !contexts.has(current))
    reader.refuse(["current"], "names a context that does not exist", knownContexts(contexts.keys()));
  return reader.problems.length > 0
    ? { kind: "invalid", problems: sortProblems(reader.problems) }
    : { kind: "valid", file: { path: file.path, current, contexts } };
}

export function knownContexts(names: Iterable<string>): string {
  const list = [...names];
  return list.length === 0
    ? "the file has no contexts; add [contexts.NAME]"
    : `the file has ${list.join(", ")}`;
}

/** Why a token must not be sent to this address; undefined if it may. */
export function plainHttpProblem(address: string): { message: string; remedy: string } | undefined {
  if (!address.startsWith("http:") || isPrivateHost(new URL(address).hostname)) return undefined;
  return {
    message: "would send its token over plain HTTP to a host that is not private",
    remedy: "use https://, or reach it through a tunnel to localhost",
  };
}

class Reader {
  readonly problems: ConfigProblem[] = [];
  private readonly document: TomlDocument;

  constructor(document: TomlDocument) {
    this.document = document;
  }

  contexts(): ReadonlyMap<string, Context> {
    const tables = this.document.root["contexts"] ?? {};
    if (!isTable(tables)) {
      this.refuse(["contexts"], "must have one section per context", "write [contexts.NAME]");
      return new Map();
    }
    const contexts = new Map<string, Context>();
    for (const [name, table] of Object.entries(tables)) {
      const at = ["contexts", name];
      const named = contextName.fromText(name);
      if (named.kind === "bad") this.refuse(at, named.message, named.remedy);
      else if (!isTable(table))
        this.refuse(at, "is a section", `write [contexts.${name}] and its keys below it`);
      else contexts.set(name, this.context(name, at));
    }
    return contexts;
  }

  private context(name: string, at: readonly string[]): Context {
    const vaultAt = [...at, "vault"];
    const hasVault = this.document.lookUp(vaultAt) !== undefined;
    this.refuseOthers(at, ["server", "region", "token", "token_file", "ca_file", "vault"]);
    if (hasVault) this.refuseOthers(vaultAt, ["url", "token", "token_file", "ca_file"]);
    return {
      name,
      server: this.endpoint(at, "server"),
      region: this.text([...at, "region"], regionName),
      vault: hasVault ? this.endpoint(vaultAt, "url") : undefined,
    };
  }

  private endpoint(at: readonly string[], urlKey: string): Endpoint {
    const address = this.text([...at, urlKey], url());
    const insecure = address === undefined ? undefined : plainHttpProblem(address);
    if (insecure !== undefined) this.refuse([...at, urlKey], insecure.message, insecure.remedy);
    return { url: address, token: this.token(at), caFile: this.file([...at, "ca_file"]) };
  }

  private token(at: readonly string[]): SecretRef | undefined {
    const path = this.file([...at, "token_file"]);
    const secret = this.text([...at, "token"], bearerToken());
    if (path !== undefined && secret !== undefined)
      this.refuse([...at, "token"], "conflicts with token_file", "keep one of them");
    if (path !== undefined) return { kind: "file", path, setting: shownPath([...at, "token"]) };
    return secret && { kind: "inline", secret };
  }

  private file(parts: readonly string[]): string | undefined {
    const path = this.text(parts, pathType());
    return path === undefined ? undefined : resolve(dirname(this.document.path), path);
  }

  text<T>(parts: readonly string[], kind: SettingType<T>): T | undefined {
    const value = this.document.lookUp(parts);
    if (value === undefined) return undefined;
    const parsed = kind.fromToml(value);
    if (parsed.kind === "ok") return parsed.value;
    this.refuse(parts, parsed.message, parsed.remedy);
    return undefined;
  }

  /** Rejects unknown keys: a mistyped key would otherwise have no effect, silently. */
  refuseOthers(at: readonly string[], known: readonly string[]): void {
    const table = at.length === 0 ? this.document.root : this.document.lookUp(at);
    if (!isTable(table)) {
      this.refuse(at, "is a section", `write [${shownPath(at)}] and its keys below it`);
      return;
    }
    for (const key of Object.keys(table).filter((each) => !known.includes(each))) {
      const near = nearestName(
        key,
        known.map((name) => ({ name })),
      );
      const remedy =
        near === undefined ? `remove it; known are ${known.join(", ")}` : `did you mean ${near}?`;
      this.refuse([...at, key], "is not a known setting", remedy);
    }
  }

  refuse(parts: readonly string[], message: string, remedy: string): void {
    this.problems.push(problemAt(shownPath(parts), this.document.originOf(parts), message, remedy));
  }
}
