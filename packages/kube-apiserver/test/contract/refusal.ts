// How a refusal is compared: by what clients branch on. Status and reason always; of the causes
// their reason and field; of the message only the part that tells which refusal it is.
import assert from "node:assert/strict";
import type { Refusal } from "./api.ts";

export interface ExpectedRefusal {
  readonly status: number;
  /** Empty where the server gives none. */
  readonly reason: string;
  readonly message?: RegExp;
  /**
   * `FieldValueInvalid spec.replicas`, in the server's order. Repetitions do not count: for some
   * kinds the real server checks metadata twice and says everything twice.
   */
  readonly causes?: readonly string[];
}

export async function refused(attempt: Promise<unknown>, expected: ExpectedRefusal): Promise<Refusal> {
  const error = await attempt.then(
    () => assert.fail(`this was accepted, instead of ${expected.status} ${expected.reason}`),
    (reason: unknown) => reason,
  );
  if (!isRefusal(error)) throw error;
  assert.equal(
    `${error.status} ${error.reason ?? ""}`,
    `${expected.status} ${expected.reason}`,
    error.message,
  );
  if (expected.message !== undefined) assert.match(error.message, expected.message);
  if (expected.causes !== undefined) {
    const causes = new Set(error.causes.map((cause) => `${cause.reason} ${cause.field}`));
    assert.deepEqual([...causes], expected.causes, error.message);
  }
  return error;
}

/** By its form, because each client has an error class of its own. */
export function isRefusal(error: unknown): error is Refusal {
  return error instanceof Error && "status" in error && "causes" in error;
}

/** A 422 with exactly these causes. */
export function invalid(
  attempt: Promise<unknown>,
  causes: readonly string[],
  message?: RegExp,
): Promise<Refusal> {
  return refused(attempt, {
    status: 422,
    reason: "Invalid",
    causes,
    ...(message === undefined ? {} : { message }),
  });
}
