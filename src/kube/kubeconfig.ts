// Parses and merges kubeconfig files like kubectl: the first file that defines something wins, and relative paths are
// relative to their file. An unsupported setting that would change the identity or the connection is an error, because
// ignoring it would use other permissions or another route than the user configured.
import { dirname, isAbsolute, join } from "node:path";
import { credentialError } from "./credentials.ts";

export interface Kubeconfig {
  readonly currentContext?: string;
  readonly contexts: ReadonlyMap<string, Settings>;
  readonly clusters: ReadonlyMap<string, Settings>;
  readonly users: ReadonlyMap<string, Settings>;
}

/** One entry of a kubeconfig, and the file whose folder its paths are relative to. */
export class Settings {
  private readonly values: Readonly<Record<string, unknown>>;
  private readonly file: string;

  constructor(values: unknown, file: string) {
    this.values = isRecord(values) ? values : {};
    this.file = file;
  }

  text(name: string): string | undefined {
    const value = this.values[name];
    if (value === undefined || value === null || value === "") return undefined;
    if (typeof value !== "string") throw credentialError(`${this.file}: "${name}" is not a string`);
    return value;
  }

  flag(name: string): boolean {
    return this.values[name] === true;
  }

  /** As an absolute path. */
  path(name: string): string | undefined {
    const path = this.text(name);
    return path === undefined || isAbsolute(path) ? path : join(dirname(this.file), path);
  }

  /** Base64 in the file, text here. */
  data(name: string): string | undefined {
    const encoded = this.text(name);
    return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8");
  }

  child(name: string): Settings | undefined {
    return isRecord(this.values[name]) ? new Settings(this.values[name], this.file) : undefined;
  }

  children(name: string): readonly Settings[] {
    const list = this.values[name];
    return Array.isArray(list) ? list.map((entry) => new Settings(entry, this.file)) : [];
  }

  texts(name: string): readonly string[] {
    const list = this.values[name];
    return Array.isArray(list) ? list.map(String) : [];
  }

  raw(name: string): unknown {
    return this.values[name];
  }

  refuse(...names: readonly string[]): void {
    const found = names.find((name) => this.values[name] !== undefined && this.values[name] !== "");
    if (found !== undefined) throw credentialError(`${this.file}: "${found}" is not supported`);
  }
}

export async function parseKubeconfig(text: string, file: string): Promise<Kubeconfig> {
  const { parseText } = await import("./kubeconfig-text.ts");
  const root = new Settings(parseText(text, file), file);
  const currentContext = root.text("current-context");
  return {
    ...(currentContext === undefined ? {} : { currentContext }),
    contexts: named(root, "contexts", "context"),
    clusters: named(root, "clusters", "cluster"),
    users: named(root, "users", "user"),
  };
}

export function mergeKubeconfigs(configs: readonly Kubeconfig[]): Kubeconfig {
  const currentContext = configs.find((config) => config.currentContext !== undefined)?.currentContext;
  const first = (of: (config: Kubeconfig) => ReadonlyMap<string, Settings>) =>
    new Map(configs.toReversed().flatMap((config) => [...of(config)]));
  return {
    ...(currentContext === undefined ? {} : { currentContext }),
    contexts: first((config) => config.contexts),
    clusters: first((config) => config.clusters),
    users: first((config) => config.users),
  };
}

function named(root: Settings, list: string, entry: string): ReadonlyMap<string, Settings> {
  const found = new Map<string, Settings>();
  for (const item of root.children(list)) {
    const name = item.text("name");
    const settings = item.child(entry);
    if (name !== undefined && settings !== undefined && !found.has(name)) found.set(name, settings);
  }
  return found;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
