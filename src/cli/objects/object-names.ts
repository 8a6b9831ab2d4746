// Parses how users name objects: `deployment d_web`, `deployments/d_web`, or by a unique name in the cluster.

import { nearestName } from "../../config/nearest-key.ts";
import { ObjectKind } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Kind } from "../../kinds/kind.ts";
import { allKinds, type KindName } from "../../kinds/kinds.ts";
import { printable } from "../../telemetry/scrub.ts";
import { CommandError } from "../command-error.ts";

/** The kinds that commands accept: those of cluster objects, apps and environments. */
export type NamedKind = KindName | "app" | "environment";

const named: readonly Pick<Kind<NamedKind>, "name" | "plural" | "aliases" | "objectKind">[] = [
  // Object kinds only in events.
  { name: "app", plural: "apps", aliases: [], objectKind: ObjectKind.APP },
  ...allKinds,
  { name: "environment", plural: "environments", aliases: ["env"], objectKind: ObjectKind.ENVIRONMENT },
];

const namedKinds = named.map(({ name }) => name);

/** The kinds with pods. */
export const scaledKinds: readonly NamedKind[] = [
  "app",
  ...allKinds.filter(({ makesPods }) => makesPods).map(({ name }) => name),
];

/** The singular and plural names of these kinds, for shell completion. */
export function wordsOfKinds(kinds: readonly NamedKind[] = namedKinds): readonly string[] {
  return named.flatMap(({ name, plural }) => (kinds.includes(name) ? [name, plural] : []));
}

/** Whether it is a kind: singular, plural or short form. */
export function isKind(word: string): boolean {
  return kindCalled(word) !== undefined;
}

function kindCalled(word: string): NamedKind | undefined {
  const text = word.toLowerCase();
  return named.find(({ name, plural, aliases }) => text === name || text === plural || aliases.includes(text))
    ?.name;
}

/** Parses a kind. Throws if it is unknown or not allowed. */
export function parseKind(word: string, allowed: readonly NamedKind[] = namedKinds): NamedKind {
  const found = kindCalled(word);
  if (found !== undefined && allowed.includes(found)) return found;
  throw new CommandError("usage", `unknown kind "${printable(word)}"; ${kindsText(word, allowed)}`);
}

/** Which kinds there are, and which one may be meant. */
export function kindsText(word: string, allowed: readonly NamedKind[] = namedKinds): string {
  const possible = named.filter(({ name }) => allowed.includes(name));
  const near = nearestName(
    word.toLowerCase(),
    possible.map(({ name, plural }) => ({ name, aliases: [plural] })),
  );
  const list = possible.map(({ plural }) => plural).join(", ");
  return `kinds are ${list}${near === undefined ? "" : `; did you mean ${near}?`}`;
}

/** Parses `KIND NAME` or `KIND/NAME`; the name is undefined if only a kind was given. */
export function parseObjectName(
  first: string,
  second: string | undefined,
  allowed: readonly NamedKind[] = namedKinds,
): { readonly kind: NamedKind; readonly name: string | undefined } {
  const { kind, name } = splitName(first, second);
  return { kind: parseKind(kind, allowed), name };
}

/** `KIND NAME` or `KIND/NAME`. */
export function splitName(
  first: string,
  second: string | undefined,
): { readonly kind: string; readonly name: string | undefined } {
  // An unset variable in a script gives an empty id; ignoring it would select all objects of the kind.
  if (second === "") throw new CommandError("usage", "the id is empty");
  const slash = first.indexOf("/");
  if (slash < 0) return { kind: first, name: second };
  const name = first.slice(slash + 1);
  if (name === "") throw new CommandError("usage", `${printable(first)}: no id after the slash`);
  if (second !== undefined)
    throw new CommandError(
      "usage",
      `${printable(first)} already names an object; unexpected argument ${printable(second)}`,
    );
  return { kind: first.slice(0, slash), name };
}

/** The kind's value in the protocol. */
export function objectKindOf(kind: NamedKind): ObjectKind {
  return named.find(({ name }) => name === kind)?.objectKind ?? ObjectKind.UNSPECIFIED;
}

/** Undefined for a kind that this krane does not know. */
export function namedKindOf(kind: ObjectKind): NamedKind | undefined {
  return named.find(({ objectKind }) => objectKind === kind)?.name;
}

export function nameOfKind(kind: ObjectKind): string {
  return namedKindOf(kind) ?? "object";
}
