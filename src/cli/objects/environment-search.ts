// Environments by their id, and all of a region as one list, however many pages they come in.
import type { Environment } from "../../gen/krane/admin/v1/admin_pb.ts";
import { printable } from "../../telemetry/printable.ts";
import type { Admin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";

const pageSize = 500;
// Half a million: more than one region can have, and an end for a server that never stops.
const pagesMax = 1_000;
const suggestedMax = 5;

/** In order of id. A control plane that knows no pages answers with all of them. */
export async function listEnvironments(
  { client, signal }: Pick<Admin, "client" | "signal">,
  region: string,
): Promise<readonly Environment[]> {
  const environments: Environment[] = [];
  let pageToken = "";
  for (let page = 0; page < pagesMax; page++) {
    const answer = await client.listEnvironments({ region, pageSize, pageToken }, { signal });
    environments.push(...answer.environments);
    pageToken = answer.nextPageToken;
    if (pageToken === "") return environments;
  }
  throw new CommandError("failed", `the control plane lists more than ${pagesMax} pages of environments`);
}

export type EnvironmentLists = (region: string) => Promise<readonly Environment[]>;

/** Lists that are asked for once: for a thousand environments a thousand lists of a thousand would come. */
export function createEnvironmentLists(admin: Admin): EnvironmentLists {
  const lists = new Map<string, Promise<readonly Environment[]>>();
  return (region) => {
    const list = lists.get(region) ?? listEnvironments(admin, region);
    lists.set(region, list);
    return list;
  };
}

/** Throws `not_found` where there is none, and names those that there are. */
export async function findEnvironment(admin: Admin, id: string): Promise<Environment> {
  const { region } = admin;
  const environments = await listEnvironments(admin, region);
  const found = environments.find((each) => each.id === id);
  if (found !== undefined) return found;
  const some = environments.slice(0, suggestedMax).map((each) => printable(each.id));
  const more = environments.length > some.length ? ` and ${environments.length - some.length} more` : "";
  const there = some.length === 0 ? "there is none at all" : `there are ${some.join(", ")}${more}`;
  throw new CommandError(
    "not_found",
    `no environment ${printable(id)} in region ${region}; ${there}; a document of kind Environment makes one`,
  );
}
