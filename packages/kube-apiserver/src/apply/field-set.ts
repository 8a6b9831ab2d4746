// A set of field paths, stored as a tree of path elements. A path is in the set only if its last element is a member of
// its node. An element can be a member and also have a subtree. Sets are immutable once shared.
import { isObject, type JsonObject, setField } from "../json.ts";
import { canonicalElement, fieldElement, type PathElement } from "./path-element.ts";

export class FieldSet {
  readonly members: ReadonlySet<PathElement>;
  readonly children: ReadonlyMap<PathElement, FieldSet>;

  constructor(members: ReadonlySet<PathElement>, children: ReadonlyMap<PathElement, FieldSet>) {
    this.members = members;
    this.children = children;
  }

  static readonly empty = new FieldSet(new Set(), new Map());

  /** A set of plain field paths: `FieldSet.of(["metadata", "name"], ["status"])`. */
  static of(...paths: readonly (readonly string[])[]): FieldSet {
    const builder = new FieldSetBuilder();
    for (const path of paths) builder.insert(path.map(fieldElement));
    return builder.build();
  }

  get isEmpty(): boolean {
    return this.members.size === 0 && [...this.children.values()].every((child) => child.isEmpty);
  }

  has(path: readonly PathElement[]): boolean {
    const [first, ...rest] = path;
    if (first === undefined) return false;
    if (rest.length === 0) return this.members.has(first);
    return this.children.get(first)?.has(rest) ?? false;
  }

  /** The subtree below one element. */
  below(element: PathElement): FieldSet {
    return this.children.get(element) ?? FieldSet.empty;
  }

  union(other: FieldSet): FieldSet {
    const children = new Map(this.children);
    for (const [element, child] of other.children) {
      children.set(element, children.get(element)?.union(child) ?? child);
    }
    return new FieldSet(new Set([...this.members, ...other.members]), children);
  }

  intersection(other: FieldSet): FieldSet {
    const members = [...this.members].filter((element) => other.members.has(element));
    return this.combine(members, (element, child) => child.intersection(other.below(element)));
  }

  /** The paths of this set that are not in the other. */
  difference(other: FieldSet): FieldSet {
    const members = [...this.members].filter((element) => !other.members.has(element));
    return this.combine(members, (element, child) => child.difference(other.below(element)));
  }

  /** This set without the other's paths and everything below them. */
  recursiveDifference(other: FieldSet): FieldSet {
    const members = [...this.members].filter((element) => !other.members.has(element));
    return this.combine(members, (element, child) =>
      other.members.has(element) ? FieldSet.empty : child.recursiveDifference(other.below(element)),
    );
  }

  equals(other: FieldSet): boolean {
    return this.difference(other).isEmpty && other.difference(this).isEmpty;
  }

  /** Members first, then subtrees, each sorted by text. */
  *paths(prefix: readonly PathElement[] = []): Generator<readonly PathElement[]> {
    for (const element of [...this.members].sort()) yield [...prefix, element];
    for (const element of [...this.children.keys()].sort()) {
      yield* this.below(element).paths([...prefix, element]);
    }
  }

  private combine(
    members: readonly PathElement[],
    change: (element: PathElement, child: FieldSet) => FieldSet,
  ): FieldSet {
    const children = new Map<PathElement, FieldSet>();
    for (const [element, child] of this.children) {
      const changed = change(element, child);
      if (!changed.isEmpty) children.set(element, changed);
    }
    return new FieldSet(new Set(members), children);
  }
}

/** Builds a set while walking an object. */
export class FieldSetBuilder {
  private readonly members = new Set<PathElement>();
  private readonly children = new Map<PathElement, FieldSetBuilder>();

  insert(path: readonly PathElement[]): void {
    const last = path.at(-1);
    if (last === undefined) return;
    let place: FieldSetBuilder = this;
    for (const element of path.slice(0, -1)) place = place.child(element);
    place.members.add(last);
  }

  build(): FieldSet {
    const children = new Map<PathElement, FieldSet>();
    for (const [element, builder] of this.children) children.set(element, builder.build());
    return new FieldSet(this.members, children);
  }

  private child(element: PathElement): FieldSetBuilder {
    const known = this.children.get(element);
    if (known !== undefined) return known;
    const created = new FieldSetBuilder();
    this.children.set(element, created);
    return created;
  }
}

/** Encodes as FieldsV1: a member is an empty object, or has a "." if it also has a subtree. */
export function encodeFieldSet(set: FieldSet): JsonObject {
  const encoded: JsonObject = {};
  const elements = new Set([...set.members, ...set.children.keys()]);
  for (const element of [...elements].sort()) {
    const below = set.below(element);
    const isMember = set.members.has(element);
    if (!isMember && below.isEmpty) continue;
    const inner = encodeFieldSet(below);
    setField(encoded, element, isMember && !below.isEmpty ? { ".": {}, ...inner } : inner);
  }
  return encoded;
}

export function decodeFieldSet(encoded: unknown): FieldSet {
  const members = new Set<PathElement>();
  const children = new Map<PathElement, FieldSet>();
  if (!isObject(encoded)) return FieldSet.empty;
  for (const [text, inner] of Object.entries(encoded)) {
    if (text === ".") continue;
    const element = canonicalElement(text);
    const keys = isObject(inner) ? Object.keys(inner) : [];
    if (keys.length === 0 || keys.includes(".")) members.add(element);
    const below = decodeFieldSet(inner);
    if (!below.isEmpty) children.set(element, below);
  }
  return new FieldSet(members, children);
}
