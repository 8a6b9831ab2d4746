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
