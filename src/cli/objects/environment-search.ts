// Finds an environment by id, and lists all environments of a region across pages.
import type { Environment } from "../../gen/krane/admin/v1/admin_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";

const pageSize = 500;
// Half a million: more than a region can have; stops at a server that never ends its list.
const pagesMax = 1_000;
const suggestedMax = 5;

/** Sorted by id. A control plane without paging returns all at once. */
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

/** Caches the list of each region: otherwise a thousand environments would mean a thousand lists of a thousand. */
export function createEnvironmentLists(admin: Admin): EnvironmentLists {
  const lists = new Map<string, Promise<readonly Environment[]>>();
  return (region) => {
    const list = lists.get(region) ?? listEnvironments(admin, region);
    lists.set(region, list);
    return list;
  };
}

/** Throws `not_found`, with some existing ids, if it does not exist. */
export async function findEnvironment(admin: Admin, id: string): Promise<Environment> {
  const { region } = admin;
  const environments = await listEnvironments(admin, region);
  const found = environments.find((each) => each.id === id);
  if (found !== undefined) return found;
  const some = environments.slice(0, suggestedMax).map((each) => printable(each.id));
  const more = environments.length > some.length ? ` and ${environments.length - some.length} more` : "";
  const there = some.length === 0 ? "the region has no environments" : `there are ${some.join(", ")}${more}`;
  throw new CommandError(
    "not_found",
    `no environment ${printable(id)} in region ${region}; ${there}; create one with a document of kind Environment`,
  );
}
