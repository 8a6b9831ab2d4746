// krane describe: shows everything about one object.
import type { JsonObject } from "@bufbuild/protobuf";
import { stringify } from "yaml";
import { documentOf } from "../../documents/document-of.ts";
import {
  AppViewSchema,
  ObjectView_Desired as Desired,
  type Environment,
  EnvironmentSchema,
  type Event,
  EventSchema,
  type ObjectView,
  ObjectViewSchema,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { type AnyContent, contentOfView, loadDocumentKinds } from "../../kinds/documents.ts";
import { viewOf } from "../../kinds/object-view.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { loadAgentHeard, withHeard } from "../admin/agent-silence.ts";
import { renderApp, renderReleases } from "../apps/app-rows.ts";
import { findApp } from "../apps/app-search.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { ageOf } from "../terminal/age.ts";
import { isForPrograms, jsonOf, renderValue } from "../terminal/output.ts";
import { type Cell, indented, renderFields, renderTable } from "../terminal/table.ts";
import { findEnvironment } from "./environment-search.ts";
import { resolveName } from "./named-object.ts";
import { type NamedKind, objectKindOf } from "./object-names.ts";
import { nameInCluster, phaseCell, readyText, reasonOf } from "./object-rows.ts";
import { findObject, titleOf } from "./object-search.ts";
import { podStatusCell, restartsText } from "./pod-list.ts";

const eventsMax = 10;

export async function describeObject(
  admin: Admin,
  io: Io,
  what: { readonly kind: string; readonly name: string | undefined },
): Promise<number> {
  const { kind, name } = await resolveName(admin, { first: what.kind, second: what.name });
  if (name === undefined) throw new CommandError("usage", `which ${kind}? krane describe ${kind} ID`);
  const found = await descriptionOf(admin, kind, name);
  const { events } = await admin.client.listEvents(
    { region: admin.region, kind: objectKindOf(kind), id: found.id, limit: eventsMax },
    { signal: admin.signal },
  );
  // Newest last, as in `krane events`.
  const history = events.toReversed();
  if (isForPrograms(admin.output)) {
    const listed = history.map((event) => jsonOf(EventSchema, event));
    io.stdout.write(await renderValue({ ...found.json, events: listed }, admin.output));
  } else {
    io.stdout.write(joined(...(await found.parts()), renderEvents(history, admin)));
  }
  return exitCodes.ok;
}

interface Description {
  readonly id: string;
  /** The message under its kind, as `krane get` prints it. */
  readonly json: JsonObject;
  parts(): Promise<readonly string[]>;
}

async function descriptionOf(admin: Admin, kind: NamedKind, name: string): Promise<Description> {
  if (kind === "environment") {
    const environment = await findEnvironment(admin, name);
    const json = { environment: jsonOf(EnvironmentSchema, environment) };
    return { id: name, json, parts: async () => [renderEnvironment(environment, admin)] };
  }
  if (kind === "app") {
    const { view, id } = await findApp(admin, name);
    const heard = await loadAgentHeard(admin);
    const spec = view.app?.spec;
    const content = spec && ({ kind: "app", spec } as const);
    return {
      id,
      json: { app: withHeard(jsonOf(AppViewSchema, view), heard) },
      parts: async () => [
        renderApp(view, admin, heard.silence),
        renderReleases(view, admin),
        await renderDocument(content),
      ],
    };
  }
  const { object } = await findObject(admin, name, objectKindOf(kind));
  const heard = await loadAgentHeard(admin);
  return {
    id: object.ref?.id ?? name,
    json: { object: withHeard(jsonOf(ObjectViewSchema, object), heard) },
    parts: async () => [
      renderState(object, admin, heard.silence),
      await renderWanted(object),
      renderPods(object, admin, heard.silence),
    ],
  };
}

function joined(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("\n");
}

function renderEnvironment(
  { id, workspaceId, projectId, secretNames, version }: Environment,
  { paint, region }: Admin,
): string {
  return renderFields(
    [
      ["Object", `environment/${id}`],
      ["Region", region],
      ["Workspace", workspaceId],
      ["Project", projectId],
      ["Secrets", secretNames.join(", ") || "none"],
      ["Version", String(version)],
    ],
    paint,
  );
}

function renderState(object: ObjectView, { paint, now, region }: Admin, silence: string | undefined): string {
  const { text, tone } = phaseCell(object, silence);
  const ready = readyText(object);
  const reported = ageOf(viewOf(object).reportedAtMs(object) ?? 0n, now());
  return renderFields(
    [
      ["Object", titleOf(object.ref)],
      ["Name", nameInCluster(object)],
      ["Region", region],
      ["Phase", { text, tone }],
      ["Reason", { text: reasonOf(object), tone: "bad" }],
      ["Ready", ready === "" ? "" : `${ready} pods`],
      [
        "Version",
        `${object.version}, ${object.settled ? "processed by the agent" : "not yet processed by the agent"}`,
      ],
      ["Deployment", object.deploymentId],
      ["App", object.appId],
      ["Secrets", object.secretNames.join(", ")],
      ["Reported", reported === "" ? "" : `${reported} ago`],
    ],
    paint,
  );
}

/** As a document that `krane apply` accepts. */
async function renderWanted(object: ObjectView): Promise<string> {
  if (object.desired === Desired.STOPPED) return "Wanted: nothing; it was deleted\n";
  return renderDocument(contentOfView(object));
}

async function renderDocument(content: AnyContent | undefined): Promise<string> {
  if (content === undefined) return "Wanted: written by a newer control plane; this krane cannot read it\n";
  const text = stringify(documentOf(content, await loadDocumentKinds()), {
    lineWidth: 0,
    aliasDuplicateObjects: false,
  });
  const lines = text.trimEnd().split("\n");
  return `Wanted:\n${lines.map((line) => `  ${printableLine(line)}\n`).join("")}`;
}

function printableLine(line: string): string {
  const indent = /^ */.exec(line)?.[0] ?? "";
  return `${indent}${printable(line)}`;
}

function renderPods(object: ObjectView, { paint, now }: Admin, silence: string | undefined): string {
  const pods = viewOf(object).listedPods(object);
  if (pods.length === 0) return "";
  const rows = pods.map((pod): Cell[] => [
    pod.k8sName,
    podStatusCell(pod, silence),
    restartsText(pod),
    ageOf(pod.createdAtMs, now()),
    pod.address,
  ]);
  const titles = ["NAME", "STATUS", "RESTARTS", "AGE", "ADDRESS"];
  return `Pods:\n${indented(renderTable(titles, rows, paint))}`;
}

function renderEvents(events: readonly Event[], { paint, now }: Admin): string {
  if (events.length === 0) return "";
  const rows = events.map(({ atMs, event, version, by, outcome }) => [
    ageOf(atMs, now()),
    event,
    String(version),
    by,
    outcome,
  ]);
  return `Events:\n${indented(renderTable(["AGE", "EVENT", "VERSION", "BY", "OUTCOME"], rows, paint))}`;
}
