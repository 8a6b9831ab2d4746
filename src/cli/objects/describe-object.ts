// krane describe: shows everything about one object, for people.
import { stringify } from "yaml";
import { documentOf } from "../../documents/document-of.ts";
import { ReportDeploymentStatusRequest_Update_Instance_Status as InstanceStatus } from "../../gen/ctrl/v1/deployment_pb.ts";
import {
  ObjectView_Desired as Desired,
  type Environment,
  type Event,
  type ObjectView,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { type AnyContent, contentOfView, loadDocumentKinds } from "../../kinds/documents.ts";
import { viewOf } from "../../kinds/object-view.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { loadAgentHeard } from "../admin/agent-silence.ts";
import { renderApp, renderReleases } from "../apps/app-rows.ts";
import { findApp } from "../apps/app-search.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { ageOf } from "../terminal/age.ts";
import type { Tone } from "../terminal/colours.ts";
import { type Cell, indented, renderFields, renderTable } from "../terminal/table.ts";
import { findEnvironment } from "./environment-search.ts";
import { type NamedKind, objectKindOf, parseObjectName } from "./object-names.ts";
import { nameInCluster, phaseCell, readyText, reasonOf } from "./object-rows.ts";
import { findObject, titleOf } from "./object-search.ts";

const eventsMax = 10;

export async function describeObject(
  admin: Admin,
  io: Io,
  what: { readonly kind: string; readonly name: string | undefined },
): Promise<number> {
  const { kind, name } = parseObjectName(what.kind, what.name);
  if (name === undefined) throw new CommandError("usage", `which ${kind}? krane describe ${kind} ID`);
  if (kind === "environment") {
    const environment = await findEnvironment(admin, name);
    io.stdout.write(joined(renderEnvironment(environment, admin), await eventsOf(admin, kind, name)));
    return exitCodes.ok;
  }
  if (kind === "app") {
    const { view, id } = await findApp(admin, name);
    const { silence } = await loadAgentHeard(admin);
    const spec = view.app?.spec;
    const content = spec && ({ kind: "app", spec } as const);
    io.stdout.write(
      joined(
        renderApp(view, admin, silence),
        renderReleases(view, admin),
        await renderDocument(content),
        await eventsOf(admin, kind, id),
      ),
    );
    return exitCodes.ok;
  }
  const { object } = await findObject(admin, name, objectKindOf(kind));
  const events = await eventsOf(admin, kind, object.ref?.id ?? name);
  const { silence } = await loadAgentHeard(admin);
  io.stdout.write(
    joined(
      renderState(object, admin, silence),
      await renderWanted(object),
      renderPods(object, admin),
      events,
    ),
  );
  return exitCodes.ok;
}

function joined(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("\n");
}

async function eventsOf(admin: Admin, kind: NamedKind, id: string): Promise<string> {
  const { client, region, signal } = admin;
  const query = { region, kind: objectKindOf(kind), id, limit: eventsMax };
  const { events } = await client.listEvents(query, { signal });
  // Newest last, as in `krane events`.
  return renderEvents(events.toReversed(), admin);
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

const statuses: Readonly<Record<InstanceStatus, readonly [word: string, tone: Tone | undefined]>> = {
  [InstanceStatus.UNSPECIFIED]: ["Unknown", "busy"],
  [InstanceStatus.PENDING]: ["Pending", "busy"],
  [InstanceStatus.RUNNING]: ["Running", "good"],
  [InstanceStatus.FAILED]: ["Failed", "bad"],
};

function renderPods(object: ObjectView, { paint }: Admin): string {
  const pods = viewOf(object).listedPods(object);
  if (pods.length === 0) return "";
  const rows = pods.map(({ k8sName, status, address, outdated }): Cell[] => {
    const [text, tone] = statuses[status] ?? statuses[InstanceStatus.UNSPECIFIED];
    return [k8sName, { text: outdated ? `${text}, outdated` : text, tone }, address];
  });
  return `Pods:\n${indented(renderTable(["NAME", "STATUS", "ADDRESS"], rows, paint))}`;
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
