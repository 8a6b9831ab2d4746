// Explains an unknown region. The control plane only responds with failed_precondition, so that an agent does not take
// it for "all objects are gone"; users get the list of known regions.

import { printable } from "../../telemetry/scrub.ts";
import { CommandError } from "../command-error.ts";
import type { AdminClient } from "./admin-client.ts";

const namedMax = 10;

/** The error for an unknown region; undefined if the control plane knows it. */
export async function unknownRegion(
  { client, signal }: { readonly client: AdminClient; readonly signal: AbortSignal },
  region: string,
): Promise<CommandError | undefined> {
  const { agents } = await client.listAgents({ region: "" }, { signal });
  const known = agents.map((agent) => agent.region);
  if (known.includes(region)) return undefined;
  const more = known.length > namedMax ? ` and ${known.length - namedMax} more` : "";
  const names =
    known.length === 0
      ? "there are no regions yet; add one with a token in server.agent_tokens"
      : `there are ${known.slice(0, namedMax).map(printable).join(", ")}${more}`;
  return new CommandError("not_found", `unknown region ${printable(region)}; ${names}`);
}
