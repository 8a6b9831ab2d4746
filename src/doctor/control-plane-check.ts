// Checks that the control plane is reachable, accepts the token and knows the region. It requests a deployment that
// cannot exist, which changes nothing; `not found` is the expected result.
import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { linkSignals } from "../concurrency/abort.ts";
import type { Clock } from "../concurrency/clock.ts";
import type { Config } from "../config/config.ts";
import { createSecretSource } from "../config/secret-source.ts";
import { type ControlPlane, createControlPlane } from "../control-plane/connection.ts";
import { type ControlPlaneCode, ControlPlaneError } from "../control-plane/error.ts";
import { kinds } from "../kinds/kinds.ts";
import { type Check, retryWhileUnreachable } from "./checks.ts";
import { judgeClock } from "./clock-skew.ts";
import { type Finding, ok, problem } from "./finding.ts";

export interface ControlPlaneCheckDeps {
  readonly clock: Clock;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
}

const name = "control plane";
// No control plane issues such an id.
const impossibleId = "krane-doctor";

export function controlPlaneCheck({ control, region }: Config, deps: ControlPlaneCheckDeps): Check {
  const { clock, readTextFile } = deps;
  return {
    name,
    async run(signal) {
      const ca = control.caFile === undefined ? undefined : await readTextFile(control.caFile, signal);
      const token = createSecretSource(control.token, { readTextFile, nowMs: () => clock.nowMs() });
      let date: string | undefined;
      const noteDate: Interceptor = (next) => async (request) => {
        try {
          const response = await next(request);
          date = response.header.get("date") ?? undefined;
          return response;
        } catch (error) {
          if (error instanceof ConnectError) date = error.metadata.get("date") ?? undefined;
          throw error;
        }
      };
      const options = { controller: "agent", baseUrl: control.url, region, token, ca } as const;
      const plane = createControlPlane(options, { clock, interceptors: [noteDate] });
      let sentAtMs = clock.wallMs();
      const askOnce = () => {
        sentAtMs = clock.wallMs();
        return plane.get(kinds.deployment, { id: impossibleId }, signal);
      };
      try {
        const asked = await ask(
          () => retryWhileUnreachable(askOnce, isUnreachable, clock, signal),
          control.url,
          region.label,
        );
        const hasStreams = asked.state !== "ok" || (await offersStreams(plane, clock, signal));
        const verdict = hasStreams
          ? asked
          : problem(name, `${control.url}: ${otherVersion}`, otherVersionRemedy);
        const times = { date, sentAtMs, receivedAtMs: clock.wallMs() };
        // Without a response there is no clock to compare with.
        return date === undefined
          ? [verdict]
          : [verdict, judgeClock("control plane clock", "the control plane", times)];
      } finally {
        await plane.close();
      }
    },
  };
}

const otherVersion = "it has no streams of desired state, so it speaks another version of the protocol";
const otherVersionRemedy =
  "use a control plane of the version in docs/protocol.md; until then the agent applies and deletes nothing";

// A server that has the stream is silent after a cursor above every version, or rejects it with another code.
const highestVersion = 2n ** 63n - 1n;
const streamWaitMs = 1_000;

/** Later versions of the original answer the question above as well, but have other streams. */
async function offersStreams(plane: ControlPlane, clock: Clock, signal: AbortSignal): Promise<boolean> {
  const ending = linkSignals(signal);
  const timer = clock.setTimer(streamWaitMs, () => ending.abort());
  try {
    for await (const _ of plane.watch(kinds.deployment, highestVersion, ending.signal)) return true;
    return true;
  } catch (error) {
    return !(error instanceof ControlPlaneError && error.code === "unimplemented");
  } finally {
    timer.cancel();
    ending.abort();
  }
}

function isUnreachable(error: unknown): boolean {
  return error instanceof ControlPlaneError && error.code === "unavailable";
}

async function ask(call: () => Promise<unknown>, url: string, region: string): Promise<Finding> {
  try {
    await call();
    return ok(name, `${url} accepts the token and knows the region ${region}`);
  } catch (error) {
    if (!(error instanceof ControlPlaneError)) throw error;
    return problem(
      name,
      `${url}: ${error.message}`,
      remedies[error.code]?.(region) ?? "check the log of the control plane",
    );
  }
}

const remedies: Partial<Record<ControlPlaneCode, (region: string) => string>> = {
  unauthenticated: (region) =>
    `put a token that the control plane accepts for region ${region} into control.token or control.token_file`,
  permission_denied: (region) =>
    `the token is for other regions: use the token of ${region}, or correct region`,
  failed_precondition: (region) => `register the region ${region} at the control plane, or correct region`,
  invalid_argument: () => "correct region and platform",
  unavailable: () =>
    "check that the control plane runs, that control.url is right, and that control.ca_file has its CA",
  deadline_exceeded: () => "check whether the control plane is overloaded, or a firewall drops the packets",
  unimplemented: () => "this address is not a control plane: correct control.url",
  resource_exhausted: () => "the control plane is overloaded; try again later",
};
