// How people name objects: `deployment d_web`, `deployments/d_web`, or by the name in the cluster where only one
// object has it.

import { nearestName } from "../../config/nearest-key.ts";
import { ObjectKind } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Kind } from "../../kinds/kind.ts";
import { allKinds, type KindName } from "../../kinds/kinds.ts";
import { printable } from "../../telemetry/printable.ts";
import { CommandError } from "../command-error.ts";

/** What can be named: the objects of a cluster, and the environments of the control plane. */
export type NamedKind = KindName | "environment";

const named: readonly Pick<Kind<NamedKind>, "name" | "plural" | "aliases" | "objectKind">[] = [
  ...allKinds,
  // An object kind in events alone.
  { name: "environment", plural: "environments", aliases: ["env"], objectKind: ObjectKind.ENVIRONMENT },
];

const namedKinds = named.map(({ name }) => name);

/** What has a number of pods. */
export const scaledKinds = allKinds.filter(({ makesPods }) => makesPods).map(({ name }) => name);

/** What a person may write for these kinds and would read aloud, for completion. */
export function wordsOfKinds(kinds: readonly NamedKind[] = namedKinds): readonly string[] {
  return named.flatMap(({ name, plural }) => (kinds.includes(name) ? [name, plural] : []));
}

/**
 * The kind that a word stands for, in singular, plural or short. Throws where it is none of those allowed; a word alone
 * may have been meant for the name of an object.
 */
export function parseKind(
  word: string,
  allowed: readonly NamedKind[] = namedKinds,
  isAlone = false,
): NamedKind {
  const text = word.toLowerCase();
  const found = named.find(
    ({ name, plural, aliases }) => text === name || text === plural || aliases.includes(text),
  )?.name;
  if (found !== undefined && allowed.includes(found)) return found;
  const possible = named.filter(({ name }) => allowed.includes(name));
  const list = possible.map(({ plural }) => plural).join(", ");
  const near = nearestName(
    text,
    possible.map(({ name, plural }) => ({ name, aliases: [plural] })),
  );
  const asName = isAlone && found === undefined ? `; for an object: ${allowed[0]} ${printable(word)}` : "";
  const hint = near === undefined ? asName : `; did you mean ${near}?`;
  throw new CommandError("usage", `${printable(word)} is no kind that this command knows: ${list}${hint}`);
}

/** From `KIND NAME` or `KIND/NAME`; the name is undefined where only a kind was given. */
export function parseObjectName(
  first: string,
  second: string | undefined,
  allowed: readonly NamedKind[] = namedKinds,
): { readonly kind: NamedKind; readonly name: string | undefined } {
  // As an unset variable leaves it in a script: taken for no name, it would mean all of the kind.
  if (second === "") throw new CommandError("usage", "the id is empty");
  const slash = first.indexOf("/");
  if (slash < 0) return { kind: parseKind(first, allowed, second === undefined), name: second };
  const name = first.slice(slash + 1);
  if (name === "") throw new CommandError("usage", `${printable(first)}: no id behind the slash`);
  if (second !== undefined)
    throw new CommandError(
      "usage",
      `${printable(first)} names an object already; what is ${printable(second)}?`,
    );
  return { kind: parseKind(first.slice(0, slash), allowed), name };
}

/** As the protocol says it. */
export function objectKindOf(kind: NamedKind): ObjectKind {
  return named.find(({ name }) => name === kind)?.objectKind ?? ObjectKind.UNSPECIFIED;
}

export function nameOfKind(kind: ObjectKind): string {
  return named.find(({ objectKind }) => objectKind === kind)?.name ?? "object";
}
