// krane hostnames: grants hostnames to workspaces, takes them back and lists them. They hold in all regions.
import { type HostnameGrant, HostnameGrantSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { ageOf } from "../terminal/age.ts";
import { isForPrograms, jsonOf, renderValue } from "../terminal/output.ts";
import { renderTable } from "../terminal/table.ts";

export async function grantHostname(
  { client, signal }: Admin,
  io: Io,
  { name, workspace }: { readonly name: string; readonly workspace: string },
): Promise<number> {
  await client.grantHostname({ name, workspaceId: workspace }, { signal });
  io.stdout.write(`${printable(name)} is granted to workspace ${printable(workspace)}\n`);
  return exitCodes.ok;
}

export async function revokeHostname({ client, signal }: Admin, io: Io, name: string): Promise<number> {
  await client.revokeHostname({ name }, { signal });
  io.stdout.write(`${printable(name)} is granted to nobody any more\n`);
  return exitCodes.ok;
}

export async function listHostnames(admin: Admin, io: Io, workspaceId = ""): Promise<number> {
  const { client, signal, output, paint, now } = admin;
  const grants: HostnameGrant[] = [];
  for (let pageToken = ""; ; ) {
    const page = await client.listHostnames({ workspaceId, pageToken }, { signal });
    grants.push(...page.grants);
    pageToken = page.nextPageToken;
    if (pageToken === "") break;
  }
  if (isForPrograms(output)) {
    const value = { grants: grants.map((grant) => jsonOf(HostnameGrantSchema, grant)) };
    io.stdout.write(await renderValue(value, output));
    return exitCodes.ok;
  }
  if (grants.length === 0) {
    io.stderr.write("no hostname is granted\n");
    return exitCodes.ok;
  }
  const rows = grants.map((grant) => [
    grant.name,
    grant.workspaceId,
    ageOf(grant.grantedAtMs, now()),
    grant.grantedBy,
  ]);
  io.stdout.write(renderTable(["NAME", "WORKSPACE", "AGE", "BY"], rows, paint));
  return exitCodes.ok;
}
