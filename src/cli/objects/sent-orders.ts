// Sends many changes to a control plane concurrently. After the first failure nothing more is sent, and the error tells
// how many got no response: users would otherwise assume that those were never sent.
import type { Admin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import type { Io } from "../io.ts";
import { callsAtOnce, workInOrder } from "./ordered-work.ts";

export interface Orders<T, R> {
  /** The command to run again. */
  readonly verb: "apply" | "delete";
  /** Each wave is finished before the next one starts. */
  readonly waves: readonly (readonly T[])[];
  /** Rejects with a CommandError for problems that the user can fix. */
  send(item: T): Promise<R>;
  /** Called in the order of the items; returns false if there was nothing to change. */
  tell(item: T, result: R): boolean;
}

const participles = { apply: "applied", delete: "deleted" } as const;

/** Rejects with all problems. After Ctrl-C, it first prints how many were done. */
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

/** Joins errors into one. An unexpected error (a bug) outranks all CommandErrors. */
export function summaryOf(errors: readonly unknown[], remedy: string): unknown {
  const [first] = errors;
  const stranger = errors.find((error) => !(error instanceof CommandError));
  if (stranger !== undefined || !(first instanceof CommandError)) return stranger;
  // An error that is not about a single item is the same for all items in flight.
  const messages = new Set(errors.map((error) => (error as CommandError).message));
  if (remedy !== "") messages.add(remedy);
  return new CommandError(first.code, [...messages].join("\n"));
}

function remedyFor(verb: Orders<never, never>["verb"], errors: readonly unknown[], left: number): string {
  const lost = errors.filter((error) => error instanceof CommandError && error.code === "unreachable").length;
  // For a single item, "unreachable" says enough.
  if (left === 0 && errors.length === 1) return "";
  const fate = fateOf(verb, lost, left);
  return fate === "" ? "" : `${fate}; run ${verb} again once this is fixed`;
}

function fateOf(verb: Orders<never, never>["verb"], unanswered: number, left: number): string {
  return [
    ...(unanswered > 0 ? [`${unanswered} without a response may have been ${participles[verb]}`] : []),
    ...(left > 0 ? [`${left} more were not sent`] : []),
  ].join(", ");
}
