// What the control plane wants of one object, after its message was understood as far as it can be.
import type { FieldProblem, ParsedMessage } from "../model/field-problem.ts";

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

/** The messages of all kinds are built alike: a version, and one of two cases that a newer server may add to. */
interface StateMessage<Apply, Delete> {
  readonly version: bigint;
  readonly state:
    | { readonly case: "apply"; readonly value: Apply }
    | { readonly case: "delete"; readonly value: Delete }
    | { readonly case: undefined; readonly value?: undefined };
  readonly $unknown?: readonly unknown[] | undefined;
}

export interface StateReaders<Apply, Delete, Spec> {
  apply(message: Apply, version: bigint): DesiredMessage<Spec>;
  delete(message: Delete, version: bigint): DesiredMessage<Spec>;
}

export function readState<Apply, Delete, Spec>(
  { version, state, $unknown = [] }: StateMessage<Apply, Delete>,
  readers: StateReaders<Apply, Delete, Spec>,
): ReadState<Spec> {
  switch (state.case) {
    case "apply":
      return { kind: "message", message: readers.apply(state.value, version) };
    case "delete":
      return { kind: "message", message: readers.delete(state.value, version) };
    default:
      return { kind: "bare", version, unreadable: $unknown.length > 0 };
  }
}

/** `id` is empty where the message does not say it. */
export function applyMessage<Spec>(
  { key, id, version }: { readonly key: string; readonly id: string; readonly version: bigint },
  parsed: ParsedMessage<Spec>,
): DesiredMessage<Spec> {
  const about = { id: id === "" ? undefined : id, version };
  if (parsed.kind === "valid") return { key, ...about, want: { kind: "apply", spec: parsed.spec } };
  return invalidMessage(key, about, parsed.problems);
}

export function deleteMessage<Spec>(
  { key, version }: { readonly key: string; readonly version: bigint },
  parsed: ParsedMessage<unknown>,
): DesiredMessage<Spec> {
  const about = { id: undefined, version };
  if (parsed.kind === "valid") return { key, ...about, want: { kind: "delete" } };
  return invalidMessage(key, about, parsed.problems);
}

function invalidMessage<Spec>(
  key: string,
  about: Pick<DesiredMessage<Spec>, "id" | "version">,
  problems: readonly FieldProblem[],
): DesiredMessage<Spec> {
  return { key: messageKey(key, problems), ...about, want: { kind: "invalid", problems } };
}

const namePaths: ReadonlySet<string> = new Set(["k8s_namespace", "k8s_name"]);
const shownLengthMax = 80;

/**
 * The key of a message that may be wrong. A name that may not be one names nothing in the cluster, and
 * its key must not look as if it did.
 */
function messageKey(key: string, problems: readonly FieldProblem[]): string {
  if (!problems.some(({ path }) => namePaths.has(path))) return key;
  return `invalid:${JSON.stringify(key).slice(0, shownLengthMax)}`;
}
