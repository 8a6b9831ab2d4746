// Parses a message of the control plane into what it wants of one object.
import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import type { FieldProblem } from "../model/field-problem.ts";
import type { MessageRules } from "../model/message-fields.ts";
import type { ApplyOf, DeleteOf, EngineKind, OrderedSpec } from "./engine-kind.ts";

export type Want<Spec> =
  | { readonly kind: "apply"; readonly spec: Spec }
  | { readonly kind: "delete" }
  /** A message with an invalid spec. It still replaces the previous one: the newest wins. */
  | { readonly kind: "invalid"; readonly problems: readonly FieldProblem[] };

export interface DesiredMessage<Spec> {
  /** The object in the cluster, `namespace/name`. */
  readonly key: string;
  /** The object's id at the control plane; a delete does not carry it. */
  readonly id: string | undefined;
  /** 0 if the server sends none. */
  readonly version: bigint;
  readonly want: Want<Spec>;
  /** Absent for a delete, and from a control plane without digests. */
  readonly content?: ContentHash;
}

/** The control plane's hash of what it wants of an object; see model/digest.ts. */
export interface ContentHash {
  readonly id: string;
  /** One character per byte: a string takes less memory than an array. */
  readonly hash: string;
}

/** "bare": a version without an object. */
export type ReadState<Spec> =
  | { readonly kind: "message"; readonly message: DesiredMessage<Spec> }
  | { readonly kind: "bare"; readonly version: bigint; readonly unreadable: boolean };

/** The shape that the messages of all kinds share: a version, and one of two cases. A newer server may know more cases. */
interface StateMessage<Apply, Delete> {
  readonly version: bigint;
  /** Instead of `apply`: the spec that identifies the object, and the size of the whole message. */
  readonly tooLarge?:
    | { readonly spec?: Apply; readonly bytes: bigint; readonly bytesMax: bigint }
    | undefined;
  readonly state:
    | { readonly case: "apply"; readonly value: Apply }
    | { readonly case: "delete"; readonly value: Delete }
    | { readonly case: undefined; readonly value?: undefined };
  readonly content?: { readonly id: string; readonly hash: Uint8Array };
  readonly $unknown?: readonly unknown[] | undefined;
}

export function readState<State extends DescMessage, Spec extends OrderedSpec>(
  kind: EngineKind<State, Spec>,
  message: MessageShape<State>,
  rules: MessageRules,
): ReadState<Spec> {
  // Every `stateSchema` has this shape.
  const {
    version,
    state,
    tooLarge,
    content,
    $unknown = [],
  } = message as unknown as StateMessage<ApplyOf<State>, DeleteOf<State>>;
  if (tooLarge?.spec !== undefined) {
    const { spec, bytes, bytesMax } = tooLarge;
    const problem = { path: "", message: `too large: ${bytes} bytes, limit ${bytesMax}` };
    return withContent(readTooLarge(kind, spec, version, problem, rules), content);
  }
  switch (state.case) {
    case "apply":
      return withContent(readApply(kind, state.value, version, rules), content);
    case "delete":
      return { kind: "message", message: readDelete(kind, state.value, version, rules) };
    default:
      return { kind: "bare", version, unreadable: $unknown.length > 0 || tooLarge !== undefined };
  }
}

const hashBytesMax = 64;

/** A hash that names another object, or that cannot be one, is left out: the object then counts as different. */
function withContent<Spec>(
  message: DesiredMessage<Spec>,
  content: { readonly id: string; readonly hash: Uint8Array } | undefined,
): ReadState<Spec> {
  const size = content?.hash.byteLength ?? 0;
  if (content === undefined || content.id !== message.id || size === 0 || size > hashBytesMax)
    return { kind: "message", message };
  const hash = Buffer.from(content.hash).toString("latin1");
  return { kind: "message", message: { ...message, content: { id: content.id, hash } } };
}

export function readApply<State extends DescMessage, Spec extends OrderedSpec>(
  kind: EngineKind<State, Spec>,
  message: ApplyOf<State>,
  version: bigint,
  rules: MessageRules,
): DesiredMessage<Spec> {
  const key = kind.keyOf(message);
  const id = kind.idOf(message);
  const about = { id: id === "" ? undefined : id, version };
  const later = fieldsOfLaterVersions(kind.stateSchema, message);
  if (later.length > 0) return invalidMessage(key, about, later);
  const parsed = kind.parseApply(message, rules);
  if (parsed.kind === "valid") return { key, ...about, want: { kind: "apply", spec: parsed.spec } };
  return invalidMessage(key, about, parsed.problems);
}

/**
 * The contract reserves the numbers that later versions of the original use. There they change what the rest means: the
 * replicas of a deployment may be missing, because something else scales it.
 */
function fieldsOfLaterVersions(stateSchema: DescMessage, { $unknown }: Message): readonly FieldProblem[] {
  const reserved = stateSchema.field["apply"]?.message?.proto.reservedRange ?? [];
  return ($unknown ?? [])
    .filter(({ no }) => reserved.some(({ start = 0, end = 0 }) => no >= start && no < end))
    .map(({ no }) => ({ path: `field ${no}`, message: "belongs to another version of the protocol" }));
}

export function readDelete<State extends DescMessage, Spec extends OrderedSpec>(
  kind: EngineKind<State, Spec>,
  message: DeleteOf<State>,
  version: bigint,
  rules: MessageRules,
): DesiredMessage<Spec> {
  const key = kind.keyOf(message);
  const about = { id: undefined, version };
  const parsed = kind.parseDelete(message, rules);
  if (parsed.kind === "valid") return { key, ...about, want: { kind: "delete" } };
  return invalidMessage(key, about, parsed.problems);
}

/** An object whose spec is larger than this agent can receive. It is invalid, whatever the spec says. */
function readTooLarge<State extends DescMessage, Spec extends OrderedSpec>(
  kind: EngineKind<State, Spec>,
  spec: ApplyOf<State>,
  version: bigint,
  problem: FieldProblem,
  rules: MessageRules,
): DesiredMessage<Spec> {
  const id = kind.idOf(spec);
  // A spec has the fields of a delete, and those are all that is known of this one.
  const named = kind.parseDelete(spec as unknown as DeleteOf<State>, rules);
  const problems = named.kind === "valid" ? [problem] : [problem, ...named.problems];
  return invalidMessage(kind.keyOf(spec), { id: id === "" ? undefined : id, version }, problems);
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
 * The key of an invalid message. If its name or namespace is invalid, no such object can exist, and the key must not
 * look as if it could.
 */
function messageKey(key: string, problems: readonly FieldProblem[]): string {
  if (!problems.some(({ path }) => namePaths.has(path))) return key;
  return `invalid:${JSON.stringify(key).slice(0, shownLengthMax)}`;
}
