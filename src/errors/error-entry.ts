// The catalogue's entries for an error class and for one of its codes.

/** The exit codes of errors, by their names in src/cli. */

export type ErrorExit =
  | "failure"
  | "notFound"
  | "usage"
  | "unreachable"
  | "denied"
  | "config"
  | "commandUnusable"
  | "commandMissing";

/** The texts are Markdown for docs/errors.md: one plain sentence, one remedy. */
export interface ErrorEntry {
  /** Absent if no command exits with it. */
  readonly exit?: ErrorExit;
  /** The RPC code that callers get; absent if no caller gets this error. */
  readonly rpc?: RpcCode;
  /** The RPC code that callers of SecretsService get, if it is not `rpc`. */
  readonly rpcOfSecrets?: RpcCode;
  readonly means: string;
  readonly remedy: string;
}

export interface ErrorClassEntry {
  /** The heading on the page: where the errors come from. */
  readonly title: string;
  /** Where the errors appear. */
  readonly about: string;
  readonly codes: Readonly<Record<string, ErrorEntry>>;
}

export type ErrorClasses = Readonly<Record<string, ErrorClassEntry>>;

// The RPC codes that krane's own services return, with their meaning and remedy. The message of an error has the details.

export interface RpcCodeEntry {
  readonly means: string;
  readonly remedy: string;
}

type RpcCode = keyof typeof rpcCodes;

export const rpcCodes = {
  canceled: {
    means: "The caller disconnected before the response.",
    remedy: "Nothing. If that was not intended, check its timeout and any proxy in between.",
  },
  invalid_argument: {
    means: "The request is wrong. The message names the field.",
    remedy: "Correct the field. The same request will be rejected again.",
  },
  deadline_exceeded: {
    means: "The call timed out: an order is not applied yet, or a stream reached its maximum duration.",
    remedy:
      "Open the stream again. After a minute, an order stays in force and is still applied: watch its state. After a shorter deadline of yours, repeat it.",
  },
  not_found: {
    means: "The object, environment, secret, held-back deletion or service does not exist.",
    remedy: "Check the id, the region and the spelling.",
  },
  already_exists: {
    means: "Another object has the name.",
    remedy: "Choose another name, or delete the other object first.",
  },
  permission_denied: {
    means: "The token is valid, but not for this region, role or deployment.",
    remedy:
      "Use a token of this region (`server.agent_tokens`) or one with the role `read-write` (`server.admin_tokens`). For secrets, read the agent's log: a line with the component `secrets` says why.",
  },
  resource_exhausted: {
    means: "Too many calls or streams at a time, or too much data.",
    remedy: "Wait, then retry with fewer concurrent calls.",
  },
  failed_precondition: {
    means: "The state of the object, or of krane, does not allow the call.",
    remedy: "Fix what the message names first. Retrying alone does not help.",
  },
  aborted: {
    means: "The object changed since the caller read it.",
    remedy: "Read the object again, and repeat the change with its new version.",
  },
  out_of_range: {
    means: "A stream asked for a version above the newest one, for example after a database was restored.",
    remedy: "Open the stream again from version 0. Agents do so automatically.",
  },
  unimplemented: {
    means: "The port does not serve this call.",
    remedy:
      "Check the URL. Services are off until they have a token: `scheduler.token`, `agent.token`, `server.admin_tokens`; secrets need a vault.",
  },
  internal: {
    means: "krane failed. Callers are not told why.",
    remedy:
      "Read krane's log of that time: the error is there with its code and its stack. If nothing that krane needs is down, report it as a bug.",
  },
  unavailable: {
    means: "krane is starting or stopping, or something that it needs does not respond.",
    remedy:
      "Retry with back-off, or after the time in `Retry-After`. If it lasts, check krane's log for what does not respond.",
  },
  unauthenticated: {
    means: "The call has no token, or one that krane does not accept.",
    remedy:
      "Send a valid token as `Authorization: Bearer`. After a rotation, check that the caller has the new one.",
  },
} as const satisfies Readonly<Record<string, RpcCodeEntry>>;
