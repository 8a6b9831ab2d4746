// krane deletions: lists the deletions that an agent is holding back, and releases them.
import { AgentViewSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { unknownRegion } from "../admin/known-regions.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { ageOf } from "../terminal/age.ts";
import { isForPrograms, jsonOf, renderValue } from "../terminal/output.ts";
import { renderTable } from "../terminal/table.ts";
import { heldBackCount } from "./agent-status.ts";

const titles = ["CONTROLLER", "KEY", "ID", "PASSES", "SINCE", "REASON"] as const;

export async function listDeletions(admin: Admin, io: Io): Promise<number> {
  const { client, region, signal, output, paint } = admin;
  const { agents, nowMs } = await client.listAgents({ region }, { signal });
  if (agents.length === 0) {
    const flaw = await unknownRegion(admin, region);
    if (flaw !== undefined) throw flaw;
  }
  const deletions = agents.flatMap((agent) => agent.blockedDeletions);
  if (isForPrograms(output)) {
    const views = agents.map((agent) => jsonOf(AgentViewSchema, agent) as { blockedDeletions: [] });
    const value = { blockedDeletions: views.flatMap(({ blockedDeletions }) => blockedDeletions) };
    io.stdout.write(await renderValue(value, output));
    return exitCodes.ok;
  }
  if (deletions.length === 0) {
    io.stderr.write(`no held-back deletions in region ${region}\n`);
    return exitCodes.ok;
  }
  const rows = deletions.map(({ controller, key, id, suspectedPasses, firstSuspectedMs, reason }) => [
    controller,
    key,
    id,
    `${suspectedPasses}`,
    ageOf(firstSuspectedMs, Number(nowMs)),
    reason,
  ]);
  io.stdout.write(renderTable(titles, rows, paint));
  const count = agents.reduce((sum, agent) => sum + heldBackCount(agent), 0);
  if (count > rows.length)
    io.stderr.write(
      `${rows.length} of ${count} are shown; the agent reports others once these are released\n`,
    );
  return exitCodes.ok;
}

export async function releaseDeletion(
  { client, region, signal }: Admin,
  io: Io,
  { controller, key }: { readonly controller: string; readonly key: string },
): Promise<number> {
  await client.releaseDeletion({ region, controller, key }, { signal });
  io.stdout.write(`the deletion of ${printable(controller)} ${printable(key)} is released\n`);
  io.stderr.write(
    "the agent gets it within half a minute, and deletes the object if it is still krane's and still unwanted\n",
  );
  return exitCodes.ok;
}
