// krane exec: runs a command with the secrets of its deployment as environment variables. It is the entry point of a
// workload's image, and needs only the variables that krane sets in the pod.
import process from "node:process";
import { type Command, InvalidArgumentError, Option } from "commander";
import { createSystemClock } from "../../concurrency/clock.ts";
import { createSystemRandom } from "../../concurrency/random.ts";
import { parseDuration } from "../../config/duration.ts";
import type { ProcessEnv } from "../../config/expand.ts";
import { exitCodeOfSignal } from "../exit-codes.ts";
import type { Io, StopSignal } from "../io.ts";
import { runChild } from "./exec-child.ts";
import { childEnvironment, parseSecretsQuestion } from "./exec-environment.ts";

const examples = `
Examples:
  krane exec -- node server.js
  krane exec --timeout 5m -- ./start.sh --port 8080
  ENTRYPOINT ["krane", "exec", "--"]          in a Dockerfile, before CMD

It reads UNKEY_ENCRYPTED_ENV, UNKEY_PROVIDER_ENDPOINT, UNKEY_TOKEN_PATH, UNKEY_DEPLOYMENT_ID and
UNKEY_ENVIRONMENT_ID, which krane sets in the pods of its deployments. Without UNKEY_ENCRYPTED_ENV the command
runs without secrets. The command does not see UNKEY_* and KUBERNETES_*, except UNKEY_DEPLOYMENT_ID,
UNKEY_ENVIRONMENT_ID, UNKEY_REGION and UNKEY_INSTANCE_ID.

Exit codes:
  that of the command, or 128 plus the number of the signal that ended it
  126 the command cannot be run   127 command not found
  1 no secrets   64 wrong usage   78 a variable that krane sets in the pod is missing or wrong
`;

export function addExecOptions(command: Command): Command {
  return command
    .argument("<command...>", "what to run, after --")
    .addOption(
      new Option("--timeout <duration>", "how long to retry while krane is unavailable")
        .argParser(parseTimeout)
        .default(60_000, "1m"),
    )
    .addHelpText("after", examples);
}

export async function runExec(command: Command, env: ProcessEnv, io: Io): Promise<number> {
  const [file = "", ...args] = command.args;
  const { timeout: timeoutMs } = command.opts<{ timeout: number }>();
  const secrets = await loadSecrets(env, { timeoutMs }, io);
  if (secrets.kind === "stopped") return exitCodeOfSignal(secrets.signal);
  return runChild({ file, args, env: childEnvironment(env, secrets.variables) }, process);
}

type Loaded =
  | { readonly kind: "loaded"; readonly variables: ReadonlyMap<string, string> }
  | { readonly kind: "stopped"; readonly signal: StopSignal };

async function loadSecrets(
  env: ProcessEnv,
  options: { readonly timeoutMs: number },
  io: Io,
): Promise<Loaded> {
  const question = parseSecretsQuestion(env);
  if (question === undefined) return { kind: "loaded", variables: new Map() };
  const stop = new AbortController();
  let stoppedBy: StopSignal | undefined;
  const release = io.onStopSignal((signal) => {
    stoppedBy = signal;
    stop.abort();
  });
  const deps = {
    clock: createSystemClock(),
    random: createSystemRandom(),
    readTextFile: io.readTextFile,
  };
  try {
    const { fetchSecrets } = await import("./exec-secrets.ts");
    return { kind: "loaded", variables: await fetchSecrets(question, options, deps, stop.signal) };
  } catch (error) {
    if (stoppedBy === undefined) throw error;
    return { kind: "stopped", signal: stoppedBy };
  } finally {
    release();
  }
}

function parseTimeout(text: string): number {
  const timeoutMs = parseDuration(text);
  if (timeoutMs === undefined || timeoutMs < 0) throw new InvalidArgumentError('Use a duration like "90s".');
  return timeoutMs;
}
