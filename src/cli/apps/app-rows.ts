// How `krane get` and `krane describe` show an app. Pure functions of the control plane's response.
import { type AppView, ObjectView_Phase as ObjectPhase } from "../../gen/krane/admin/v1/admin_pb.ts";
import { Release_Phase as Phase, type Release } from "../../gen/krane/admin/v1/app_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import { releasesOf, trafficOf } from "../../why/app-releases.ts";
import type { Admin } from "../admin/admin-access.ts";
import {
  phaseCell,
  readyText,
  restartsOfPods,
  type Table,
  type TableOptions,
} from "../objects/object-rows.ts";
import { ageOf } from "../terminal/age.ts";
import type { Tone } from "../terminal/colours.ts";
import { type Cell, indented, renderFields, renderTable } from "../terminal/table.ts";
import { idOf, nameOf } from "./app-search.ts";

export function appTitles({ wide }: Pick<TableOptions, "wide">): readonly string[] {
  const more = wide ? ["VERSION", "ENVIRONMENT", "REASON"] : [];
  return ["ID", "NAME", "READY", "PHASE", "RELEASE", "RESTARTS", "AGE", "IMAGE", ...more];
}

/** Age and restarts are those of the current release, or of the one that starts. */
export function appCells(view: AppView, { wide, silence, nowMs }: TableOptions): readonly Cell[] {
  const { current, starting } = releasesOf(view);
  const shown = current ?? starting;
  return [
    idOf(view),
    nameOf(view),
    readyCell(view),
    appPhaseCell(view, silence),
    releaseText(view),
    restartsOfPods(shown?.deployment?.deployment?.instances ?? []),
    ageOf(shown?.release.createdAtMs ?? 0n, nowMs),
    view.app?.spec?.template?.image ?? "",
    ...(wide ? wideCells(view) : []),
  ];
}

function wideCells(view: AppView): Cell[] {
  return [
    String(view.app?.version ?? 0n),
    view.app?.spec?.template?.environmentId ?? "",
    { text: releasesOf(view).failed?.reason ?? "", tone: "bad" },
  ];
}

/** Among objects of all kinds. */
export function mixedAppCells(view: AppView, { wide, silence }: TableOptions): readonly Cell[] {
  return [
    titleOfApp(view),
    nameOf(view),
    readyCell(view),
    appPhaseCell(view, silence),
    ...(wide ? wideCells(view) : []),
  ];
}

export function titleOfApp(view: AppView): string {
  return `app/${printable(idOf(view))}`;
}

/** The ready pods of the current release; before the first, of the one that starts. */
function readyCell(view: AppView): string {
  const { current, starting } = releasesOf(view);
  const shown = (current ?? starting)?.deployment;
  return shown === undefined ? "" : readyText(shown);
}

function appPhaseCell(view: AppView, silence: string | undefined): { text: string; tone: Tone | undefined } {
  const { current, starting, failed } = releasesOf(view);
  const dated = silence === undefined ? "" : `, last heard ${silence} ago`;
  if (starting !== undefined) return { text: `Releasing${dated}`, tone: "busy" };
  if (failed !== undefined) return { text: `Release ${failed.number} failed${dated}`, tone: "bad" };
  const traffic = current?.deployment?.phase === ObjectPhase.READY ? trafficOf(view) : "none";
  if (traffic === "refused") return { text: `Route failed${dated}`, tone: "bad" };
  if (traffic === "moving") return { text: `Moving traffic${dated}`, tone: "busy" };
  if (current?.deployment !== undefined) return phaseCell(current.deployment, silence);
  return { text: "No release", tone: "bad" };
}

/** Which release is current, and which one is about to replace it. */
function releaseText(view: AppView): string {
  const { current, starting } = releasesOf(view);
  const numbers = [current, starting].flatMap((release) => release?.number ?? []).join(" → ");
  const notes = [
    ...(view.app?.paused ? ["paused"] : []),
    ...(current?.release.olderSecrets ? ["older secrets"] : []),
  ];
  return [numbers, ...notes].join(", ");
}

export function renderApp(view: AppView, { paint, region }: Admin, silence: string | undefined): string {
  const { failed } = releasesOf(view);
  return renderFields(
    [
      ["Object", `app/${idOf(view)}`],
      ["Name", nameOf(view)],
      ["Region", region],
      ["Phase", appPhaseCell(view, silence)],
      ["Reason", { text: failed?.reason ?? "", tone: "bad" }],
      ["Ready", readyCell(view) === "" ? "" : `${readyCell(view)} pods`],
      ["Release", releaseText(view)],
      ["Route", routeText(view)],
      ["Version", String(view.app?.version ?? 0n)],
    ],
    paint,
  );
}

/** Where the name of the app leads, by the last report. */
function routeText({ route }: AppView): string {
  if (route === undefined) return "";
  const leads = route.route?.exists === true && route.route.deploymentId !== "";
  const { spec } = route.spec ?? {};
  const hostnames = spec?.case === "route" ? spec.value.hostnames : [];
  const names = [`http://${route.name}.${route.namespace}`, ...hostnames.map((name) => printable(name))];
  return `${names.join(", ")} ${leads ? `leads to ${printable(route.route?.deploymentId ?? "")}` : "leads nowhere yet"}`;
}

const phases: Readonly<Record<Phase, readonly [word: string, tone: Tone | undefined]>> = {
  [Phase.UNSPECIFIED]: ["Unknown", "bad"],
  [Phase.STARTING]: ["Starting", "busy"],
  [Phase.CURRENT]: ["Current", "good"],
  [Phase.DRAINING]: ["Draining", "busy"],
  [Phase.RETIRED]: ["Retired", "faint"],
  [Phase.FAILED]: ["Failed", "bad"],
  [Phase.SUPERSEDED]: ["Superseded", "faint"],
};

/** Newest first. */
export function releaseTable(view: AppView, nowMs: number): Table {
  const releases = (view.app?.releases ?? []).toReversed();
  return {
    titles: ["RELEASE", "PHASE", "AGE", "CAUSE", "BY", "IMAGE", "REASON"],
    rows: releases.map((release) => [
      String(release.number),
      releasePhaseCell(release),
      ageOf(release.createdAtMs, nowMs),
      release.cause,
      release.createdBy,
      release.template?.image ?? "",
      { text: release.reason, tone: "bad" },
    ]),
  };
}

function releasePhaseCell({ phase }: Release): Cell {
  // A newer server may know more phases than this client.
  const [text, tone] = phases[phase] ?? phases[Phase.UNSPECIFIED];
  return { text, tone };
}

export function renderReleases(view: AppView, { paint, now }: Admin): string {
  const { titles, rows } = releaseTable(view, now());
  return rows.length === 0 ? "" : `Releases:\n${indented(renderTable(titles, rows, paint))}`;
}
