// What the control plane wants of one object, after its message was understood as far as it can be.
import type { FieldProblem } from "../model/field-problem.ts";

export type Want<Spec> =
  | { readonly kind: "apply"; readonly spec: Spec }
  | { readonly kind: "delete" }
  /** A message that cannot be carried out. It takes the place of what was wanted before: newest wins. */
  | { readonly kind: "invalid"; readonly problems: readonly FieldProblem[] };

export interface DesiredMessage<Spec> {
  /** The object in the cluster, `namespace/name`. */
  readonly key: string;
  /** The object at the control plane; deletes do not say it. */
  readonly id: string | undefined;
  /** 0 where the server gives none. */
  readonly version: bigint;
  readonly want: Want<Spec>;
}

/** "bare": a version that says nothing about any object. */
export type ReadState<Spec> =
  | { readonly kind: "message"; readonly message: DesiredMessage<Spec> }
  | { readonly kind: "bare"; readonly version: bigint; readonly unreadable: boolean };

const namePaths: ReadonlySet<string> = new Set(["k8s_namespace", "k8s_name"]);
const shownLengthMax = 80;

/**
 * The key of a message that may be wrong. A name that may not be one names nothing in the cluster, and
 * its key must not look as if it did.
 */
export function messageKey(key: string, problems: readonly FieldProblem[]): string {
  if (!problems.some(({ path }) => namePaths.has(path))) return key;
  return `invalid:${JSON.stringify(key).slice(0, shownLengthMax)}`;
}
