// krane get: lists objects or shows one, as a table, JSON, YAML, names or documents.
import { create, type JsonObject } from "@bufbuild/protobuf";
import { documentOf } from "../../documents/document-of.ts";
import {
  type AppView,
  AppViewSchema,
  ObjectView_Desired as Desired,
  type Environment,
  EnvironmentSchema,
  ListEnvironmentsResponseSchema,
  ListObjectsResponseSchema,
  type ObjectView,
  ObjectViewSchema,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { type AnyContent, contentOfView, loadDocumentKinds } from "../../kinds/documents.ts";
import { type KindName, kinds } from "../../kinds/kinds.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { type AgentHeard, loadAgentHeard } from "../admin/agent-silence.ts";
import { appTable } from "../apps/app-rows.ts";
import { findApp, idOf, listApps } from "../apps/app-search.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { isForPrograms, jsonOf, renderValue } from "../terminal/output.ts";
import { type Cell, renderTable } from "../terminal/table.ts";
import { contentOfEnvironment } from "./document-changes.ts";
import { findEnvironment, listEnvironments } from "./environment-search.ts";
import { objectKindOf, parseObjectName } from "./object-names.ts";
import { environmentTable, objectTable, type Table } from "./object-rows.ts";
import { findObject, listObjects, titleOf } from "./object-search.ts";

export interface GetOptions {
  readonly environment?: string;
  readonly deleted?: true;
  readonly sortBy?: string;
}

/** One object of the result, as `-o name` and `-o document` show it. */
interface Shown {
  readonly title: string;
  /** Undefined if it cannot be applied: it is being deleted, a release of an app, or from a newer control plane. */
  readonly content: AnyContent | undefined;
}

function shownObject(object: ObjectView): Shown {
  const isOwn = object.desired !== Desired.STOPPED && object.appId === "";
  return { title: titleOf(object.ref), content: isOwn ? contentOfView(object) : undefined };
}

function shownApp(view: AppView): Shown {
  const { spec } = view.app ?? {};
  return { title: `app/${printable(idOf(view))}`, content: spec && { kind: "app", spec } };
}

function shownEnvironment(environment: Environment): Shown {
  const title = `environment/${printable(environment.id)}`;
  return { title, content: contentOfEnvironment(environment) };
}

export async function getObjects(
  admin: Admin,
  io: Io,
  what: { readonly kind: string; readonly name: string | undefined },
  options: GetOptions,
): Promise<number> {
  if (what.kind === "all" && what.name === undefined) return listAll(admin, io, "all", options);
  const { kind, name } = parseObjectName(what.kind, what.name);
  if (kind === "environment") return getEnvironments(admin, io, name, options);
  if (kind === "app") return getApps(admin, io, name, options);
  if (name === undefined) return listAll(admin, io, kind, options);
  const { object } = await findObject(admin, name, objectKindOf(kind));
  const heard = await loadAgentHeard(admin);
  await print(admin, io, options, {
    json: withHeard(jsonOf(ObjectViewSchema, object), heard),
    shown: [shownObject(object)],
    table: () => objectTable(kind, [object], { ...tableOptions(admin), ...heard }),
  });
  return exitCodes.ok;
}

async function listAll(admin: Admin, io: Io, kind: KindName | "all", options: GetOptions): Promise<number> {
  const { environment = "", deleted = undefined } = options;
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
  await print(admin, io, options, {
    json: { ...json, objects: dated },
    shown: objects.map(shownObject),
    table: () => objectTable(kind, objects, { ...tableOptions(admin), ...heard }),
  });
  return exitCodes.ok;
}

async function getEnvironments(
  admin: Admin,
  io: Io,
  id: string | undefined,
  options: GetOptions,
): Promise<number> {
  const { region } = admin;
  if (id === undefined) {
    const environments = await listEnvironments(admin, region);
    if (environments.length === 0) io.stderr.write(`no environments in region ${region}\n`);
    const message = create(ListEnvironmentsResponseSchema, { environments: [...environments] });
    await print(admin, io, options, {
      json: jsonOf(ListEnvironmentsResponseSchema, message),
      shown: environments.map(shownEnvironment),
      table: () => environmentTable(environments, tableOptions(admin)),
    });
    return exitCodes.ok;
  }
  const environment = await findEnvironment(admin, id);
  await print(admin, io, options, {
    json: jsonOf(EnvironmentSchema, environment),
    shown: [shownEnvironment(environment)],
    table: () => environmentTable([environment], tableOptions(admin)),
  });
  return exitCodes.ok;
}

async function getApps(admin: Admin, io: Io, name: string | undefined, options: GetOptions): Promise<number> {
  const { region } = admin;
  const heard = await loadAgentHeard(admin);
  const shape = { ...tableOptions(admin), ...heard };
  if (name !== undefined) {
    const { view } = await findApp(admin, name);
    const json = withHeard(jsonOf(AppViewSchema, view), heard);
    await print(admin, io, options, { json, shown: [shownApp(view)], table: () => appTable([view], shape) });
    return exitCodes.ok;
  }
  const apps = await listApps(admin, region);
  if (apps.length === 0) io.stderr.write(`no apps in region ${region}\n`);
  const dated = apps.map((view) => withHeard(jsonOf(AppViewSchema, view), heard));
  await print(admin, io, options, {
    json: { apps: dated },
    shown: apps.map(shownApp),
    table: () => appTable(apps, shape),
  });
  return exitCodes.ok;
}

function tableOptions({ output, now }: Admin): { readonly wide: boolean; readonly nowMs: number } {
  return { wide: output === "wide", nowMs: now() };
}

/** Programs have to know it too: the phases are those of the agent's last report. */
function withHeard(json: ReturnType<typeof jsonOf>, { heardAtMs, isSilent }: AgentHeard) {
  return { ...(json as JsonObject), agentHeardAtMs: String(heardAtMs), agentSilent: isSilent };
}

interface Printed {
  readonly json: Parameters<typeof renderValue>[0];
  readonly shown: readonly Shown[];
  table(): Table;
}

async function print(
  { output, paint }: Admin,
  io: Io,
  { sortBy }: GetOptions,
  { json, shown, table }: Printed,
): Promise<void> {
  if (isForPrograms(output)) {
    io.stdout.write(await renderValue(json, output));
    return;
  }
  if (output === "name") {
    io.stdout.write(shown.map(({ title }) => `${title}\n`).join(""));
    return;
  }
  if (output === "document") {
    io.stdout.write(await renderDocuments(shown));
    return;
  }
  const { titles, rows } = table();
  // An empty list was already reported on standard error; a header alone would be noise.
  if (rows.length > 0) io.stdout.write(renderTable(titles, sorted(titles, rows, sortBy), paint));
}

/** As `krane apply -f -` accepts them. A list leaves out what cannot be applied. */
async function renderDocuments(shown: readonly Shown[]): Promise<string> {
  const { yamlText } = await import("../../documents/yaml-text.ts");
  const kinds = await loadDocumentKinds();
  const contents = shown.flatMap(({ content }) => content ?? []);
  const [only] = shown;
  if (only !== undefined && shown.length === 1 && contents.length === 0)
    throw new CommandError(
      "failed",
      `${only.title} cannot be applied: it is deleted, or a release of an app`,
    );
  return contents.map((content) => yamlText(documentOf(content, kinds))).join("---\n");
}

/** By the column with the title; numbers in its text by their value. */
function sorted(titles: readonly string[], rows: Table["rows"], column: string | undefined): Table["rows"] {
  if (column === undefined) return rows;
  const index = titles.indexOf(column.toUpperCase());
  if (index < 0)
    throw new CommandError("usage", `no column "${printable(column)}"; there are ${titles.join(", ")}`);
  const textOf = (row: readonly Cell[]) => {
    const cell = row[index] ?? "";
    return typeof cell === "string" ? cell : cell.text;
  };
  const { compare } = new Intl.Collator("en", { numeric: true });
  return rows.toSorted((a, b) => compare(textOf(a), textOf(b)));
}
