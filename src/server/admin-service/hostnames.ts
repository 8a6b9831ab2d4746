// The calls for the hostnames that workspaces may use.
import { Code, ConnectError } from "@connectrpc/connect";
import type {
  GrantHostnameRequest,
  ListHostnamesRequest,
  RevokeHostnameRequest,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { quote, type Refuse } from "../../model/field-problem.ts";
import { findGrantFlaw } from "../../model/hostnames.ts";
import { parseId } from "../../model/message-fields.ts";
import { parsePage, tokenOf } from "../../services/page-token.ts";
import { HostnameRefusal } from "../hostname-rules.ts";
import type { HostnameGrant } from "../hostnames.ts";
import type { Author, Store } from "../store.ts";
import { badRequest, checked } from "./bad-request.ts";

export async function grantHostname({ hostnames }: Store, request: GrantHostnameRequest, author: Author) {
  const wanted = checked((refuse) => ({
    name: parseGrantName(request.name, refuse),
    workspaceId: parseId("workspace_id", request.workspaceId, refuse),
  }));
  return { grant: viewOf(await hostnames.grant({ ...wanted, ...author })) };
}

export async function revokeHostname({ hostnames }: Store, request: RevokeHostnameRequest) {
  const name = checked((refuse) => parseGrantName(request.name, refuse));
  if (await hostnames.revoke(name)) return {};
  throw new ConnectError(`hostname ${quote(name)} is granted to nobody`, Code.NotFound);
}

export async function listHostnames({ hostnames }: Store, request: ListHostnamesRequest) {
  const { after, size } = parsePage(request);
  const workspaceId = request.workspaceId === "" ? undefined : request.workspaceId;
  const found = await hostnames.list(after?.key ?? "", size + 1, workspaceId);
  const grants = found.slice(0, size);
  const last = found.length > size ? grants.at(-1) : undefined;
  return {
    grants: grants.map(viewOf),
    nextPageToken: last === undefined ? "" : tokenOf({ controller: "", key: last.name }),
  };
}

function parseGrantName(name: string, refuse: Refuse): string {
  const flaw = findGrantFlaw(name);
  if (flaw !== undefined) refuse("name", flaw);
  return name;
}

function viewOf({ name, workspaceId, by, atMs }: HostnameGrant) {
  return { name, workspaceId, grantedBy: by, grantedAtMs: BigInt(Math.trunc(atMs)) };
}

/** Waits for a change, and names the field of a hostname that it was refused for. */
export async function withHostnames<T>(
  change: Promise<T>,
  path: string,
  hostnames: readonly string[],
): Promise<T> {
  try {
    return await change;
  } catch (error) {
    if (!(error instanceof HostnameRefusal)) throw error;
    const field = `${path}[${hostnames.indexOf(error.hostname)}]`;
    throw badRequest([{ path: field, message: `${quote(error.hostname)} ${error.problem}` }]);
  }
}
