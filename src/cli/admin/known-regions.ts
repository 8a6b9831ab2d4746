// Regions that a control plane does not know. It refuses them with a code that says no more than that something is in
// the way, because an agent must not take it for the end of all its objects; a person gets the names to choose from.

import { printable } from "../../telemetry/printable.ts";
import { CommandError } from "../command-error.ts";
import type { AdminClient } from "./admin-client.ts";

const namedMax = 10;

/** What is wrong with the region, or undefined where the control plane knows it. */
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
      ? "none is: a token for it in server.agent_tokens makes it known"
      : `known are ${known.slice(0, namedMax).map(printable).join(", ")}${more}`;
  return new CommandError("not_found", `region ${printable(region)} is not known; ${names}`);
}
