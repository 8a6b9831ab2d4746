// How people name objects: `deployment d_web`, `deployments/d_web`, or by the name in the cluster where only one
// object has it.

import { nearestName } from "../../config/nearest-key.ts";
import { ObjectKind } from "../../gen/krane/admin/v1/admin_pb.ts";
import { printable } from "../../telemetry/printable.ts";
import { CommandError } from "../command-error.ts";

/** What can be named: the objects of a cluster, and the environments of the control plane. */
export type KindName = "deployment" | "sentinel" | "policy" | "environment";

interface KindWords {
  readonly plural: string;
  readonly aliases: readonly string[];
  readonly kind: ObjectKind;
}

const words: Readonly<Record<KindName, KindWords>> = {
  deployment: { plural: "deployments", aliases: ["deploy"], kind: ObjectKind.DEPLOYMENT },
  sentinel: { plural: "sentinels", aliases: [], kind: ObjectKind.SENTINEL },
  policy: { plural: "policies", aliases: [], kind: ObjectKind.POLICY },
  environment: { plural: "environments", aliases: ["env"], kind: ObjectKind.ENVIRONMENT },
};

export const kindNames = Object.keys(words) as readonly KindName[];

/** What an agent brings to a cluster and has a reason for. */
export const clusterKinds = ["deployment", "sentinel", "policy"] as const satisfies readonly KindName[];
/** What has a number of pods. */
export const scaledKinds = ["deployment", "sentinel"] as const satisfies readonly KindName[];

/** What a person may write for these kinds and would read aloud, for completion. */
export function wordsOfKinds(kinds: readonly KindName[] = kindNames): readonly string[] {
  return kinds.flatMap((name) => [name, words[name].plural]);
}

/**
 * The kind that a word stands for, in singular, plural or short. Throws where it is none of those allowed; a word alone
 * may have been meant for the name of an object.
 */
export function parseKind(word: string, allowed: readonly KindName[] = kindNames, isAlone = false): KindName {
  const text = word.toLowerCase();
  const found = kindNames.find(
    (name) => text === name || text === words[name].plural || words[name].aliases.includes(text),
  );
  if (found !== undefined && allowed.includes(found)) return found;
  const list = allowed.map((name) => words[name].plural).join(", ");
  const near = nearestName(
    text,
    allowed.map((name) => ({ name, aliases: [words[name].plural] })),
  );
  const asName = isAlone && found === undefined ? `; for an object: ${allowed[0]} ${printable(word)}` : "";
  const hint = near === undefined ? asName : `; did you mean ${near}?`;
  throw new CommandError("usage", `${printable(word)} is no kind that this command knows: ${list}${hint}`);
}

export interface NamedObject {
  readonly kind: KindName;
  readonly name: string;
}

/** From `KIND NAME` or `KIND/NAME`; the name is undefined where only a kind was given. */
export function parseObjectName(
  first: string,
  second: string | undefined,
  allowed: readonly KindName[] = kindNames,
): { readonly kind: KindName; readonly name: string | undefined } {
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

export function pluralOf(kind: KindName): string {
  return words[kind].plural;
}

/** As the protocol says it. An environment is one in events alone. */
export function objectKindOf(kind: KindName): ObjectKind {
  return words[kind].kind;
}

export function nameOfKind(kind: ObjectKind): string {
  return kindNames.find((name) => words[name].kind === kind) ?? "object";
}
