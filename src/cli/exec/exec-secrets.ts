// Fetches the secrets of this pod from krane. An outage is waited for, with the token read anew each time
// because the kubelet replaces it; a refusal is final, and the container ends with it: Kubernetes starts
// it again with a growing delay, which is what a pod that krane does not know yet needs.
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

const backoff: BackoffOptions = { initialMs: 250, maxMs: 5_000, jitter: "equal" };
const attemptTimeoutMs = 15_000;
// Variables are below 128 KiB each, and all of them came in one.
const answerBytesMax = 4 * 1024 * 1024;
const passing: ReadonlySet<ControlPlaneCode> = new Set([
  "unavailable",
  "resource_exhausted",
  "deadline_exceeded",
]);

/** Tries for as long as `timeoutMs`; the last attempt may go on for its own time beyond that. */
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
          "does it run, and does it reach the Kubernetes API and its vault?",
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
    throw new ExecError("refused", `krane at ${endpoint} gives no secrets: ${message}; ${remedyFor(code)}`);
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
    const advice = `${variables.tokenPath} has to name the file that krane mounts`;
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
      return 'krane\'s log says why, in a line with component "secrets"';
    case "unimplemented":
    case "not_found":
      return "give krane a vault, or correct its `secrets.endpoint`: nothing there serves secrets";
    default:
      return "krane's log says more";
  }
}
