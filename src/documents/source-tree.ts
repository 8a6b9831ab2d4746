// The syntax tree of a document, with the line of each node. Nodes that an alias repeats are shared; the tree has no
// cycles.

export type SourceNode = SourceMap | SourceList | SourceScalar;

export interface SourceMap {
  readonly kind: "map";
  readonly line: number;
  /** The number of nodes, counting shared ones each time they occur. */
  readonly size: number;
  readonly entries: ReadonlyMap<string, SourceEntry>;
}

export interface SourceEntry {
  /** The line of the key. */
  readonly line: number;
  readonly node: SourceNode;
}

export interface SourceList {
  readonly kind: "list";
  readonly line: number;
  readonly size: number;
  readonly items: readonly SourceNode[];
}

export interface SourceScalar {
  readonly kind: "scalar";
  readonly line: number;
  readonly size: 1;
  readonly value: string | number | boolean | null;
  /** As written; the value of a number such as 0.10 loses digits. */
  readonly text: string;
}

export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue };

export function jsonOf(node: SourceNode): JsonValue {
  if (node.kind === "scalar") return node.value;
  if (node.kind === "list") return node.items.map(jsonOf);
  return Object.fromEntries([...node.entries].map(([name, entry]) => [name, jsonOf(entry.node)]));
}

/** How messages name the node. */
export function wordOf(node: SourceNode): string {
  if (node.kind === "map") return "a mapping";
  if (node.kind === "list") return "a list";
  if (node.value === null) return "empty";
  return typeof node.value === "string" ? "text" : `the ${typeof node.value} ${node.text}`;
}

/** The line of a path such as `command[2]` or `healthcheck.path`, or of the last part of it that exists. */
export function lineOf(root: SourceNode, path: string): number {
  let node = root;
  let line = root.line;
  for (const [, name, index, quoted] of path.matchAll(
    /([^.[\]"]+)(?![^[]*\])|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/g,
  )) {
    if (node.kind === "list" && index !== undefined) {
      const item = node.items[Number(index)];
      if (item === undefined) return line;
      node = item;
      line = item.line;
      continue;
    }
    const key = quoted === undefined ? (name ?? "") : String(JSON.parse(quoted));
    const entry = node.kind === "map" ? node.entries.get(key) : undefined;
    if (entry === undefined) return line;
    node = entry.node;
    line = entry.line;
  }
  return line;
}
