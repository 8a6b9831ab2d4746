// krane get: lists objects or shows one, as a table, JSON or YAML.
import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  AppViewSchema,
  EnvironmentSchema,
  ListEnvironmentsResponseSchema,
  ListObjectsResponseSchema,
  ObjectViewSchema,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { type KindName, kinds } from "../../kinds/kinds.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { type AgentHeard, loadAgentHeard } from "../admin/agent-silence.ts";
import { appTable } from "../apps/app-rows.ts";
import { findApp, listApps } from "../apps/app-search.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { isForPrograms, jsonOf, renderValue } from "../terminal/output.ts";
import { renderTable } from "../terminal/table.ts";
import { findEnvironment, listEnvironments } from "./environment-search.ts";
import { objectKindOf, parseObjectName } from "./object-names.ts";
import { environmentTable, objectTable, type Table } from "./object-rows.ts";
import { findObject, listObjects } from "./object-search.ts";

export interface GetOptions {
  readonly environment?: string;
  readonly deleted?: true;
}

export async function getObjects(
  admin: Admin,
  io: Io,
  what: { readonly kind: string; readonly name: string | undefined },
  options: GetOptions,
): Promise<number> {
  if (what.kind === "all" && what.name === undefined) return listAll(admin, io, "all", options);
  const { kind, name } = parseObjectName(what.kind, what.name);
  if (kind === "environment") return getEnvironments(admin, io, name);
  if (kind === "app") return getApps(admin, io, name);
  if (name === undefined) return listAll(admin, io, kind, options);
  const { object } = await findObject(admin, name, objectKindOf(kind));
  const heard = await loadAgentHeard(admin);
  await print(admin, io, withHeard(jsonOf(ObjectViewSchema, object), heard), () =>
    objectTable(kind, [object], { ...tableOptions(admin), ...heard }),
  );
  return exitCodes.ok;
}

async function listAll(
  admin: Admin,
  io: Io,
  kind: KindName | "all",
  { environment = "", deleted = undefined }: GetOptions,
): Promise<number> {
  const objects = await listObjects(admin, {
    ...(kind !== "all" && { kind: objectKindOf(kind) }),
    environmentId: environment,
    includeDeleted: deleted === true,
  });
  const message = create(ListObjectsResponseSchema, { objects });
  if (objects.length === 0) {
    const of = environment === "" ? "" : ` of environment ${printable(environment)}`;
    io.stderr.write(`no ${kind === "all" ? "objects" : kinds[kind].plural}${of} in region ${admin.region}\n`);
  }
  const heard = await loadAgentHeard(admin);
  const json = jsonOf(ListObjectsResponseSchema, message) as JsonObject;
  const dated = objects.map((object) => withHeard(jsonOf(ObjectViewSchema, object), heard));
  await print(admin, io, { ...json, objects: dated }, () =>
    objectTable(kind, objects, { ...tableOptions(admin), ...heard }),
  );
  return exitCodes.ok;
}

async function getEnvironments(admin: Admin, io: Io, id: string | undefined): Promise<number> {
  const { region } = admin;
  if (id === undefined) {
    const environments = await listEnvironments(admin, region);
    if (environments.length === 0) io.stderr.write(`no environments in region ${region}\n`);
    const message = create(ListEnvironmentsResponseSchema, { environments: [...environments] });
    await print(admin, io, jsonOf(ListEnvironmentsResponseSchema, message), () =>
      environmentTable(environments, tableOptions(admin)),
    );
    return exitCodes.ok;
  }
  const environment = await findEnvironment(admin, id);
  await print(admin, io, jsonOf(EnvironmentSchema, environment), () =>
    environmentTable([environment], tableOptions(admin)),
  );
  return exitCodes.ok;
}

async function getApps(admin: Admin, io: Io, name: string | undefined): Promise<number> {
  const { region } = admin;
  const heard = await loadAgentHeard(admin);
  const options = { ...tableOptions(admin), ...heard };
  if (name !== undefined) {
    const { view } = await findApp(admin, name);
    await print(admin, io, withHeard(jsonOf(AppViewSchema, view), heard), () => appTable([view], options));
    return exitCodes.ok;
  }
  const apps = await listApps(admin, region);
  if (apps.length === 0) io.stderr.write(`no apps in region ${region}\n`);
  const dated = apps.map((view) => withHeard(jsonOf(AppViewSchema, view), heard));
  await print(admin, io, { apps: dated }, () => appTable(apps, options));
  return exitCodes.ok;
}

function tableOptions({ output, now }: Admin): { readonly wide: boolean; readonly nowMs: number } {
  return { wide: output === "wide", nowMs: now() };
}

/** Programs have to know it too: the phases are those of the agent's last report. */
function withHeard(json: ReturnType<typeof jsonOf>, { heardAtMs, isSilent }: AgentHeard) {
  return { ...(json as JsonObject), agentHeardAtMs: String(heardAtMs), agentSilent: isSilent };
}

async function print(
  { output, paint }: Admin,
  io: Io,
  json: Parameters<typeof renderValue>[0],
  table: () => Table,
): Promise<void> {
  if (isForPrograms(output)) {
    io.stdout.write(await renderValue(json, output));
    return;
  }
  const { titles, rows } = table();
  // An empty list was already reported on standard error; a header alone would be noise.
  if (rows.length > 0) io.stdout.write(renderTable(titles, rows, paint));
}
