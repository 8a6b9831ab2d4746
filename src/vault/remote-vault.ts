// The client of a remote vault (VaultService). It uses HTTP/1.1, which every vault supports, including the original.
//
// - Every call has a deadline, and goes through a circuit breaker.
// - The token is read for every call, and reloaded after it was rejected.
// - Error messages of the vault do not leave this file: they may quote the request, which is secret (K7). Callers get the
//   code.
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { compressionGzip, createConnectTransport } from "@connectrpc/connect-node";
import { DeadlineError, linkSignals, withTimeout } from "../concurrency/abort.ts";
import { CircuitBreaker, CircuitOpenError } from "../concurrency/circuit-breaker.ts";
import type { Clock } from "../concurrency/clock.ts";
import { pemOf, type TrustedCa } from "../config/ca-file.ts";
import { ConfigError } from "../config/error.ts";
import type { SecretSource } from "../config/secret-source.ts";
import { VaultService } from "../gen/vault/v1/service_pb.ts";
import { systemCodeOf } from "../telemetry/error-description.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { checkContext, checkKeyring } from "./identifiers.ts";
import type { OpenVault } from "./vault.ts";
import { VaultError, type VaultErrorCode } from "./vault-error.ts";

export interface RemoteVaultOptions {
  /** http:// or https://, without a trailing slash. */
  readonly url: string;
  readonly token?: SecretSource;
  /** PEM certificates to trust instead of the system's. */
  readonly ca?: TrustedCa | undefined;
  /** The deadline of every call. Default 10 s. */
  readonly timeoutMs?: number;
}

export interface RemoteVaultDeps {
  readonly clock: Clock;
  readonly metrics?: Pick<Metrics, "circuitBreakerRequests" | "circuitBreakerErrors">;
  /** They run before krane's own. */
  readonly interceptors?: readonly Interceptor[] | undefined;
  /** Instead of a connection to `url`, for tests. */
  createTransport?(interceptors: Interceptor[]): Transport;
}

const timeoutMsDefault = 10_000;
const socketsMax = 32;
const staleCodes: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);
// A bulk response of krane's own vault is smaller than this.
const messageBytesMax = 16 * 1024 * 1024;

export function createRemoteVault(options: RemoteVaultOptions, deps: RemoteVaultDeps): OpenVault {
  const link = createLink(options, deps);
  const client = createClient(VaultService, link.transport);
  const call = createCall(options, deps, link.closing.signal);
  return {
    async encrypt(request, signal) {
      checkRequest(request);
      const { encrypted, keyId } = await call("Encrypt", signal, (o) => client.encrypt(init(request), o));
      return { encrypted, keyId };
    },
    async decrypt(request, signal) {
      checkRequest(request);
      return (await call("Decrypt", signal, (o) => client.decrypt(init(request), o))).plaintext;
    },
    async encryptBulk({ keyring, items, bindItemNames = false }, signal) {
      checkRequest({ keyring });
      if (bindItemNames) for (const name of items.keys()) checkContext(name);
      const request = { keyring, items: Object.fromEntries(items), bindItemNames };
      const answer = await call("EncryptBulk", signal, (o) => client.encryptBulk(request, o));
      return complete("EncryptBulk", items, answer.items, ({ encrypted, keyId }) => ({ encrypted, keyId }));
    },
    async decryptBulk({ keyring, items }, signal) {
      checkRequest({ keyring });
      const request = { keyring, items: Object.fromEntries(items) };
      const answer = await call("DecryptBulk", signal, (o) => client.decryptBulk(request, o));
      return complete("DecryptBulk", items, answer.items, (plaintext) => plaintext);
    },
    async reEncrypt(request, signal) {
      checkRequest(request);
      const { encrypted, keyId } = await call("ReEncrypt", signal, (o) => client.reEncrypt(init(request), o));
      return { encrypted, keyId };
    },
    close: () => link.close(),
  };
}

interface CallLimits {
  readonly signal: AbortSignal;
  readonly headers: Readonly<Record<string, string>>;
}

type Call = <T>(
  operation: string,
  signal: AbortSignal,
  send: (limits: CallLimits) => Promise<T>,
) => Promise<T>;

function createCall(options: RemoteVaultOptions, deps: RemoteVaultDeps, closing: AbortSignal): Call {
  const { clock } = deps;
  const { timeoutMs = timeoutMsDefault, token } = options;
  const breaker = createBreaker(deps);
  // Tells the vault the deadline, which is enforced here.
  const headers = { "Connect-Timeout-Ms": String(timeoutMs) };
  return async (operation, signal, send) => {
    const linked = linkSignals(signal, closing);
    try {
      return await breaker.execute(async () => {
        try {
          return await withTimeout(clock, timeoutMs, linked.signal, async (limited) => {
            try {
              return await send({ signal: limited, headers });
            } catch (error) {
              // The vault closed an idle connection. Sending the request twice is harmless.
              if (!staleCodes.has(systemCodeOf(error) ?? "")) throw error;
              return send({ signal: limited, headers });
            }
          });
        } catch (error) {
          linked.signal.throwIfAborted();
          throw vaultError(operation, error);
        }
      });
    } catch (error) {
      signal.throwIfAborted();
      if (closing.aborted) throw closing.reason;
      if (error instanceof VaultError && error.code === "unauthenticated") token?.refresh();
      throw error instanceof CircuitOpenError ? vaultError(operation, error) : error;
    } finally {
      linked.release();
    }
  };
}

function createBreaker({ clock, metrics }: RemoteVaultDeps): CircuitBreaker {
  const service = "vault";
  return new CircuitBreaker(
    { name: service },
    {
      clock,
      // Not `internal`: the original vault answers it for a single bad ciphertext in a bulk, so one tenant's damaged blob
      // would cut off all others.
      countsAsFailure: (error) => error instanceof VaultError && error.code === "unavailable",
      observer: {
        onRequest: (action) => metrics?.circuitBreakerRequests.inc({ service, action }),
        onFailure: (action) => metrics?.circuitBreakerErrors.inc({ service, action }),
      },
    },
  );
}

function createLink({ url, ca, token }: RemoteVaultOptions, deps: RemoteVaultDeps) {
  const closing = new AbortController();
  const authorize: Interceptor = (next) => async (request) => {
    if (token !== undefined)
      request.header.set("Authorization", `Bearer ${(await token.current(request.signal)).reveal()}`);
    return next(request);
  };
  const interceptors = [...(deps.interceptors ?? []), authorize];
  const agentOptions = { keepAlive: true, maxSockets: socketsMax };
  const agent = url.startsWith("https:") ? new HttpsAgent(agentOptions) : new HttpAgent(agentOptions);
  // The RPC library copies the options for each request, and so gets the current CA.
  const nodeOptions = {
    agent,
    get ca() {
      return ca && pemOf(ca);
    },
  };
  const transport =
    deps.createTransport?.(interceptors) ??
    createConnectTransport({
      httpVersion: "1.1",
      baseUrl: url,
      nodeOptions,
      interceptors,
      acceptCompression: [compressionGzip],
      readMaxBytes: messageBytesMax,
      writeMaxBytes: messageBytesMax,
    });
  return {
    transport,
    closing,
    async close() {
      closing.abort(new VaultError("unavailable", "the vault was closed"));
      agent.destroy();
    },
  };
}

/** Rejects names that no vault accepts, before they are sent. */
function checkRequest({
  keyring,
  context,
}: {
  readonly keyring: string;
  readonly context?: string | undefined;
}): void {
  checkKeyring(keyring);
  checkContext(context);
}

function init<T extends { readonly context?: string | undefined }>({ context, ...request }: T) {
  return context === undefined ? request : { ...request, context };
}

/** Requires one result per item, because a missing variable must not go unnoticed. */
function complete<A, B>(
  operation: string,
  items: ReadonlyMap<string, string>,
  answers: Readonly<Record<string, A>>,
  convert: (answer: A) => B,
): ReadonlyMap<string, B> {
  const names = Object.keys(answers);
  if (names.length !== items.size || names.some((name) => !items.has(name)))
    throw new VaultError("internal", `vault: ${operation}: the response does not have the requested items`);
  return new Map(Object.entries(answers).map(([name, answer]) => [name, convert(answer)]));
}

function vaultError(operation: string, error: unknown): VaultError {
  const { code, reason } = verdictOn(operation, error);
  return new VaultError(code, `vault: ${operation}: ${reason}`);
}

function verdictOn(operation: string, error: unknown): { code: VaultErrorCode; reason: string } {
  if (error instanceof CircuitOpenError) return { code: "unavailable", reason: error.message };
  const cause = error instanceof ConnectError ? error.cause : error;
  if (cause instanceof ConfigError) return { code: "unauthenticated", reason: cause.message };
  if (error instanceof DeadlineError) return { code: "unavailable", reason: error.message };
  if (!(error instanceof ConnectError)) return { code: "internal", reason: "internal error in krane" };
  switch (error.code) {
    case Code.InvalidArgument:
      // The library also uses this code for an unreadable response.
      if (!isAnswer(error)) return { code: "internal", reason: "the response is unreadable" };
      return operation.startsWith("Encrypt")
        ? { code: "invalid", reason: "the vault rejected the request" }
        : { code: "undecryptable", reason: "the value cannot be decrypted with this keyring" };
    case Code.Unauthenticated:
    case Code.PermissionDenied:
      return { code: "unauthenticated", reason: "the vault rejected the token; check vault.token" };
    case Code.NotFound:
    case Code.Unimplemented:
      return { code: "internal", reason: "no vault at this address; check vault.url" };
    case Code.Unavailable:
    case Code.Aborted:
    case Code.Canceled:
    case Code.DeadlineExceeded:
    case Code.ResourceExhausted:
      return { code: "unavailable", reason: systemReason(error) };
    default:
      if (isAnswer(error)) return { code: "internal", reason: "the vault failed; see its log" };
      // A system error as its cause means that the connection failed, not that the response was invalid.
      return systemCodeOf(error) === undefined
        ? { code: "internal", reason: "the response is unreadable" }
        : { code: "unavailable", reason: systemReason(error) };
  }
}

/** A response always has headers, and an error that the RPC library creates has none. */
function isAnswer(error: ConnectError): boolean {
  return error.metadata.keys().next().done !== true;
}

function systemReason(error: ConnectError): string {
  const code = systemCodeOf(error);
  return code === undefined ? "the vault is unreachable or too slow" : `the vault is unreachable (${code})`;
}
