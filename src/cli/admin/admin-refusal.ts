// What a failed call means to the person who made it: what happened in plain words, and what to do. Text of the
// server is shown without the token, which servers like to quote (K7), and without anything that drives a terminal.
import { Code, type ConnectError } from "@connectrpc/connect";
import { FieldProblemSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { systemCodeOf } from "../../telemetry/error-description.ts";
import { printable } from "../../telemetry/printable.ts";
import { scrub } from "../../telemetry/scrub.ts";
import { CommandError } from "../command-error.ts";
import type { AdminTarget } from "./admin-target.ts";

const reasonCharsMax = 1_000;

export function commandErrorOf(
  error: ConnectError,
  target: Pick<AdminTarget, "url" | "context" | "tokenFrom">,
  token: string,
): CommandError {
  const reason = printable(scrub(error.rawMessage.replaceAll(token, "[redacted]"), reasonCharsMax));
  // A flag or a variable may name another control plane than the context does, whose fault it is not then.
  const isOfContext = target.context?.server.url === target.url;
  const from = isOfContext ? ` (context ${target.context?.name})` : "";
  const at = `${target.url}${from}`;
  if (!isAnswer(error)) return withoutAnswer(error, at);
  switch (error.code) {
    case Code.NotFound:
      return new CommandError("not_found", reason);
    case Code.InvalidArgument:
      return new CommandError("failed", refusedFields(error) ?? reason);
    case Code.Unauthenticated:
      return new CommandError("denied", `${at} does not know the token; check ${target.tokenFrom}`);
    case Code.PermissionDenied:
      return new CommandError("denied", reason === "" ? "the token may not do this; use another" : reason);
    case Code.Aborted:
      return new CommandError("failed", `${reason}, and give its version with --if-version`);
    case Code.Unimplemented:
      return new CommandError(
        "unreachable",
        `${at} does not serve the admin API: check the URL, and that the server has admin tokens (server.admin_tokens)`,
      );
    case Code.Unavailable:
    case Code.DeadlineExceeded:
      return new CommandError("unreachable", `${at} cannot answer now: ${reason}; try again`);
    default:
      return new CommandError(
        "failed",
        reason === "" ? "the control plane refused without a reason" : reason,
      );
  }
}

/** An answer always has headers, and an error that the RPC library makes by itself has none. */
function isAnswer(error: ConnectError): boolean {
  return error.metadata.keys().next().done !== true;
}

function withoutAnswer(error: ConnectError, at: string): CommandError {
  const code = systemCodeOf(error);
  if (code !== undefined && /CERT|ISSUER|SIGNATURE|TLS|SSL/.test(code))
    return new CommandError(
      "unreachable",
      `${at} has a certificate that is not trusted (${code}); name its CA with ca_file in the context`,
    );
  const why =
    error.code === Code.DeadlineExceeded
      ? "no answer within 10 s"
      : (reasons[code ?? ""] ?? code ?? "the answer is not one of a krane control plane");
  return new CommandError("unreachable", `cannot reach ${at}: ${why}; check that it runs, and the URL`);
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nobody listens there",
  ECONNRESET: "the connection was cut",
  ENOTFOUND: "there is no such host",
  EAI_AGAIN: "the host cannot be looked up",
  ETIMEDOUT: "no connection in time",
  EPROTO: "it does not speak TLS",
};

function refusedFields(error: ConnectError): string | undefined {
  const problems = error.findDetails(FieldProblemSchema);
  if (problems.length === 0) return undefined;
  return problems.map(({ path, problem }) => printable(`${path} ${problem}`)).join("\n");
}
