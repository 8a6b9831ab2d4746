// Turns a failed call into a message for the user: what happened, and what to do. The token, which some servers quote,
// is redacted (K7), and control characters are removed.
import { Code, type ConnectError } from "@connectrpc/connect";
import { FieldProblemSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { systemCodeOf } from "../../telemetry/error-description.ts";
import { printable, scrub } from "../../telemetry/scrub.ts";
import { CommandError } from "../command-error.ts";
import type { AdminTarget } from "./admin-target.ts";

const reasonCharsMax = 1_000;

export function commandErrorOf(
  error: ConnectError,
  target: Pick<AdminTarget, "url" | "context" | "tokenFrom">,
  token: string,
): CommandError {
  const reason = printable(scrub(error.rawMessage.replaceAll(token, "[redacted]"), reasonCharsMax));
  // Name the context only if the URL comes from it and not from a flag or variable.
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
      return new CommandError("denied", `${at} rejected the token; check ${target.tokenFrom}`);
    case Code.PermissionDenied:
      return new CommandError(
        "denied",
        reason === "" ? "the token lacks the permission for this; use another one" : reason,
      );
    case Code.Aborted:
      return new CommandError("failed", `${reason}, and pass its version with --if-version`);
    case Code.Unimplemented:
      return new CommandError(
        "unreachable",
        `${at} does not serve the admin API; check the URL, and that the server has admin tokens (server.admin_tokens)`,
      );
    case Code.Unavailable:
    case Code.DeadlineExceeded:
      return new CommandError("unreachable", `${at} is unavailable: ${reason}; try again`);
    default:
      return new CommandError(
        "failed",
        reason === "" ? "the control plane rejected the request without a reason" : reason,
      );
  }
}

/** Errors from the server have headers; those from the RPC library itself have none. */
function isAnswer(error: ConnectError): boolean {
  return error.metadata.keys().next().done !== true;
}

function withoutAnswer(error: ConnectError, at: string): CommandError {
  const code = systemCodeOf(error);
  if (code !== undefined && /CERT|ISSUER|SIGNATURE|TLS|SSL/.test(code))
    return new CommandError(
      "unreachable",
      `${at} has an untrusted certificate (${code}); set its CA with ca_file in the context`,
    );
  const why =
    error.code === Code.DeadlineExceeded
      ? "no response within 10 s"
      : (reasons[code ?? ""] ?? code ?? "the response is not from a krane control plane");
  return new CommandError(
    "unreachable",
    `cannot reach ${at}: ${why}; check the URL, and that the server is running`,
  );
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset",
  ENOTFOUND: "host not found",
  EAI_AGAIN: "DNS lookup failed",
  ETIMEDOUT: "connection timed out",
  EPROTO: "the server does not speak TLS",
};

function refusedFields(error: ConnectError): string | undefined {
  const problems = error.findDetails(FieldProblemSchema);
  if (problems.length === 0) return undefined;
  return problems.map(({ path, problem }) => printable(`${path} ${problem}`)).join("\n");
}
