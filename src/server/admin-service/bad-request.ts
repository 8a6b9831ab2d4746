// Collects what is wrong with a request, field by field: as text for people, and as error
// details for programs.
import { Code, ConnectError } from "@connectrpc/connect";
import { FieldProblemSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import {
  collectProblems,
  describeProblems,
  type FieldProblem,
  type Refuse,
} from "../../model/field-problem.ts";

export function badRequest(problems: readonly FieldProblem[]): ConnectError {
  const details = problems.map(({ path, message }) => ({
    desc: FieldProblemSchema,
    value: { path, problem: message },
  }));
  return new ConnectError(describeProblems(problems), Code.InvalidArgument, undefined, details);
}

/** Returns the result of the parser; throws if it rejected anything. */
export function checked<T>(parse: (refuse: Refuse) => T): T {
  const outcome = collectProblems(parse);
  if (outcome.kind === "invalid") throw badRequest(outcome.problems);
  return outcome.spec;
}

/** What `badRequest` said; empty for any other error. */
export function problemsOfRequest(error: unknown): readonly FieldProblem[] {
  if (!(error instanceof ConnectError)) return [];
  // Within a process, details are kept as they were given.
  return error.details
    .flatMap((detail) =>
      "desc" in detail && detail.desc === FieldProblemSchema
        ? [detail.value as { readonly path: string; readonly problem: string }]
        : [],
    )
    .map(({ path, problem }) => ({ path, message: problem }));
}
