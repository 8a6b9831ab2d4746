// Orders to a control plane that change something, many at a time. After the first that fails nothing more is sent, and
// what became of the others is said: whoever counts what was told would otherwise take those without an answer for not
// sent.
import type { Admin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import type { Io } from "../io.ts";
import { callsAtOnce, workInOrder } from "./ordered-work.ts";

export interface Orders<T, R> {
  /** What a person types to do it again. */
  readonly verb: "apply" | "delete";
  /** Each is answered before the next is begun. */
  readonly waves: readonly (readonly T[])[];
  /** Rejects with a CommandError for what a person can do something about. */
  send(item: T): Promise<R>;
  /** Called in the order of the items; false for what was not changed, because there was nothing to change. */
  tell(item: T, result: R): boolean;
}

const participles = { apply: "applied", delete: "deleted" } as const;

/** Rejects with what is wrong. Where Ctrl-C ends it, how far it came is said first. */
export async function sendOrders<T, R>(
  { signal }: Pick<Admin, "signal">,
  io: Io,
  { verb, waves, send, tell }: Orders<T, R>,
): Promise<void> {
  let done = 0;
  let behind = waves.flat().length;
  for (const wave of waves) {
    behind -= wave.length;
    const { errors, left } = await workInOrder(wave, {
      atOnce: callsAtOnce,
      work: send,
      tell: (item, result) => {
        done += tell(item, result) ? 1 : 0;
      },
      goesOn: () => false,
    });
    if (errors.length === 0) continue;
    const notSent = left + behind;
    if (signal.aborted) {
      const came = done > 0 ? `${done} ${participles[verb]}, ` : "";
      io.stderr.write(`stopped; ${came}${fateOf(verb, errors.length, notSent)}\n`);
    }
    signal.throwIfAborted();
    throw summaryOf(errors, remedyFor(verb, errors, notSent));
  }
}

/** All of them as one. What krane is to blame for goes before anything that a person is. */
export function summaryOf(errors: readonly unknown[], remedy: string): unknown {
  const [first] = errors;
  const stranger = errors.find((error) => !(error instanceof CommandError));
  if (stranger !== undefined || !(first instanceof CommandError)) return stranger;
  // What is not about a single item is the same for all that were on their way.
  const messages = new Set(errors.map((error) => (error as CommandError).message));
  if (remedy !== "") messages.add(remedy);
  return new CommandError(first.code, [...messages].join("\n"));
}

function remedyFor(verb: Orders<never, never>["verb"], errors: readonly unknown[], left: number): string {
  const lost = errors.filter((error) => error instanceof CommandError && error.code === "unreachable").length;
  // One alone needs no more words than that nobody answers.
  if (left === 0 && errors.length === 1) return "";
  const fate = fateOf(verb, lost, left);
  return fate === "" ? "" : `${fate}; ${verb} again once this is mended`;
}

function fateOf(verb: Orders<never, never>["verb"], unanswered: number, left: number): string {
  return [
    ...(unanswered > 0 ? [`${unanswered} without an answer may have been ${participles[verb]}`] : []),
    ...(left > 0 ? [`${left} more were not sent`] : []),
  ].join(", ");
}
