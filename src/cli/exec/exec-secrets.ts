// Fetches the secrets of this pod from krane. Outages are retried, with the token read again each time because the
// kubelet rotates it. A rejection is final and ends the container: Kubernetes then restarts it with back-off, which is
// right for a pod that krane does not know yet.
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { type BackoffOptions, createBackoff } from "../../concurrency/backoff.ts";
import { type Clock, sleep } from "../../concurrency/clock.ts";
import type { Random } from "../../concurrency/random.ts";
import { type ControlPlaneCode, controlPlaneError } from "../../control-plane/error.ts";
import { SecretsService } from "../../gen/krane/v1/secrets_pb.ts";
import { variables } from "../../kinds/deployment/secrets-blob.ts";
import { checkAnswer, type SecretsQuestion } from "./exec-environment.ts";
import { ExecError } from "./exec-error.ts";

export interface SecretsFetchDeps {
  readonly clock: Clock;
  readonly random: Random;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
}

// About ten attempts in the first two seconds. When one agent of several ends, every other connection may reach it until
// Kubernetes has noticed, and a program that starts should not wait for that.
const backoff: BackoffOptions = { initialMs: 100, maxMs: 5_000, factor: 1.25, jitter: "equal" };
const attemptTimeoutMs = 15_000;
// Each variable has less than 128 KiB, and all encrypted ones came in a single variable.
const answerBytesMax = 4 * 1024 * 1024;
const passing: ReadonlySet<ControlPlaneCode> = new Set([
  "unavailable",
  "resource_exhausted",
  "deadline_exceeded",
]);

/** Retries for `timeoutMs`; the last attempt may run beyond that. */
export async function fetchSecrets(
  question: SecretsQuestion,
  { timeoutMs }: { readonly timeoutMs: number },
  deps: SecretsFetchDeps,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const { clock, random } = deps;
  const waits = createBackoff(backoff, random);
  const untilMs = clock.nowMs() + timeoutMs;
  for (;;) {
    const outcome = await ask(question, deps, signal);
    if (outcome.kind === "answer") return checkAnswer(question, outcome.variables);
    const waitMs = waits.nextMs();
    if (clock.nowMs() + waitMs > untilMs)
      throw new ExecError(
        "unavailable",
        `no secrets from krane at ${question.endpoint} within ${timeoutMs / 1_000} s (${outcome.reason}); ` +
          "check that krane is running and reaches the Kubernetes API and its vault",
      );
    await sleep(clock, waitMs, signal);
  }
}

type Attempt =
  | { readonly kind: "answer"; readonly variables: Readonly<Record<string, string>> }
  | { readonly kind: "outage"; readonly reason: string };

async function ask(question: SecretsQuestion, deps: SecretsFetchDeps, signal: AbortSignal): Promise<Attempt> {
  const { endpoint, blob, deploymentId, environmentId } = question;
  const token = await readToken(question, deps, signal);
  const transport = createConnectTransport({
    baseUrl: endpoint,
    httpVersion: "1.1",
    readMaxBytes: answerBytesMax,
  });
  const request = { encryptedBlob: new Uint8Array(blob), deploymentId, environmentId, token };
  try {
    const options = { signal, timeoutMs: attemptTimeoutMs };
    const { envVars } = await createClient(SecretsService, transport).decryptSecretsBlob(request, options);
    return { kind: "answer", variables: envVars };
  } catch (error) {
    signal.throwIfAborted();
    const { code, message } = controlPlaneError(
      SecretsService.method.decryptSecretsBlob.name,
      error,
      (text) => text.replaceAll(token, "[redacted]"),
    );
    if (passing.has(code)) return { kind: "outage", reason: message };
    throw new ExecError(
      "refused",
      `krane at ${endpoint} refused the secrets: ${message}; ${remedyFor(code)}`,
    );
  }
}

async function readToken(
  { tokenPath }: SecretsQuestion,
  { readTextFile }: SecretsFetchDeps,
  signal: AbortSignal,
): Promise<string> {
  let text: string;
  try {
    text = await readTextFile(tokenPath, signal);
  } catch (cause) {
    signal.throwIfAborted();
    const reason = cause instanceof Error ? cause.message : String(cause);
    const advice = `${variables.tokenPath} must name the file that krane mounts`;
    throw new ExecError("setup_wrong", `cannot read the token ${tokenPath}: ${reason}; ${advice}`, { cause });
  }
  const token = text.trim();
  if (token === "") throw new ExecError("setup_wrong", `the token ${tokenPath} is empty; restart the pod`);
  return token;
}

function remedyFor(code: ControlPlaneCode): string {
  switch (code) {
    case "unauthenticated":
    case "permission_denied":
      return 'see krane\'s log, component "secrets"';
    case "unimplemented":
    case "not_found":
      return "no secrets service there; configure a vault for krane, or fix its `secrets.endpoint`";
    default:
      return "see krane's log";
  }
}
