// Events in both API versions: core/v1, which kubectl reads, and events.k8s.io/v1. In the real server they are one
// object; here they are two kinds.
import type { Event } from "kubernetes-types/core/v1.js";
import type { Event as NewEvent } from "kubernetes-types/events/v1.js";
import { invalidValue, required } from "../causes.ts";
import { type Column, defineResource } from "../resource.ts";
import { ageSince, nameColumn } from "../table-columns.ts";
import type { KubeObject, KubeStatusCause } from "../types.ts";
import { type Causes, refuse } from "./field-checks.ts";
import { qualifiedNameProblems } from "./names.ts";

/** The values of the columns, for both versions. */
interface Story {
  readonly type?: string | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly about?: { readonly kind?: string; readonly name?: string; readonly fieldPath?: string };
  readonly source?: { readonly component?: string; readonly host?: string };
  readonly firstSeen?: string | undefined;
  readonly lastSeen?: string | undefined;
  readonly count?: number | undefined;
}

export const events = defineResource<Event>({
  kind: { group: "", version: "v1", kind: "Event", plural: "events", namespaced: true },
  singular: "event",
  shortNames: ["ev"],
  categories: [],
  schema: "io.k8s.api.core.v1.Event",
  statusSubresource: false,
  createOnUpdate: true,
  selectableFields: {
    "involvedObject.kind": ({ involvedObject }) => involvedObject?.kind ?? "",
    "involvedObject.namespace": ({ involvedObject }) => involvedObject?.namespace ?? "",
    "involvedObject.name": ({ involvedObject }) => involvedObject?.name ?? "",
    "involvedObject.uid": ({ involvedObject }) => involvedObject?.uid ?? "",
    "involvedObject.apiVersion": ({ involvedObject }) => involvedObject?.apiVersion ?? "",
    "involvedObject.resourceVersion": ({ involvedObject }) => involvedObject?.resourceVersion ?? "",
    "involvedObject.fieldPath": ({ involvedObject }) => involvedObject?.fieldPath ?? "",
    reason: ({ reason }) => reason ?? "",
    reportingComponent: ({ reportingComponent }) => reportingComponent ?? "",
    source: ({ source, reportingComponent }) => source?.component ?? reportingComponent ?? "",
    type: ({ type }) => type ?? "",
  },
  columns: eventColumns<Event>((event) => ({
    type: event.type,
    reason: event.reason,
    message: event.message,
    about: event.involvedObject,
    source: reporter(event.source, event.reportingComponent, event.reportingInstance),
    firstSeen: event.firstTimestamp ?? event.eventTime,
    lastSeen:
      event.series?.lastObservedTime ?? event.lastTimestamp ?? event.firstTimestamp ?? event.eventTime,
    count: event.series?.count ?? event.count,
  })),

  defaults(event) {
    event.source ??= {};
    event.reportingComponent ??= "";
    event.reportingInstance ??= "";
  },
  validate: ({ involvedObject, metadata }) =>
    checkSubject("involvedObject.namespace", involvedObject?.namespace, metadata?.namespace),
});

export const newEvents = defineResource<NewEvent>({
  kind: { group: "events.k8s.io", version: "v1", kind: "Event", plural: "events", namespaced: true },
  singular: "event",
  shortNames: ["ev"],
  categories: [],
  schema: "io.k8s.api.events.v1.Event",
  statusSubresource: false,
  createOnUpdate: true,
  selectableFields: {
    "regarding.kind": ({ regarding }) => regarding?.kind ?? "",
    "regarding.namespace": ({ regarding }) => regarding?.namespace ?? "",
    "regarding.name": ({ regarding }) => regarding?.name ?? "",
    "regarding.uid": ({ regarding }) => regarding?.uid ?? "",
    reason: ({ reason }) => reason ?? "",
    reportingController: ({ reportingController }) => reportingController ?? "",
    type: ({ type }) => type ?? "",
  },
  columns: eventColumns<NewEvent>((event) => ({
    type: event.type,
    reason: event.reason,
    message: event.note,
    ...(event.regarding === undefined ? {} : { about: event.regarding }),
    source: reporter(event.deprecatedSource, event.reportingController, event.reportingInstance),
    firstSeen: event.deprecatedFirstTimestamp ?? event.eventTime,
    lastSeen: event.series?.lastObservedTime ?? event.deprecatedLastTimestamp ?? event.eventTime,
    count: event.series?.count ?? event.deprecatedCount,
  })),

  validate: checkNewEvent,
});

function reporter(
  source: { readonly component?: string; readonly host?: string } | undefined,
  component: string | undefined,
  host: string | undefined,
): { component?: string; host?: string } {
  const given = source?.component ? source : { component, host };
  return {
    ...(given.component ? { component: given.component } : {}),
    ...(given.host ? { host: given.host } : {}),
  };
}

function eventColumns<T extends KubeObject>(storyOf: (event: T) => Story): Column<T>[] {
  const column = (name: string, priority: 0 | 1, cell: (story: Story, nowMs: number) => string | number) => ({
    name,
    type: "string" as const,
    priority,
    cell: (event: T, nowMs: number) => cell(storyOf(event), nowMs),
  });
  return [
    column("Last Seen", 0, ({ lastSeen }, nowMs) => ageSince(lastSeen, nowMs)),
    column("Type", 0, ({ type }) => type ?? ""),
    column("Reason", 0, ({ reason }) => reason ?? ""),
    column("Object", 0, ({ about }) => {
      const kind = (about?.kind ?? "").toLowerCase();
      return about?.name ? `${kind}/${about.name}` : kind;
    }),
    column("Subobject", 1, ({ about }) => about?.fieldPath ?? ""),
    column("Source", 1, ({ source = {} }) => [source.component, source.host].filter(Boolean).join(", ")),
    column("Message", 0, ({ message }) => (message ?? "").trim()),
    column("First Seen", 1, ({ firstSeen }, nowMs) => ageSince(firstSeen, nowMs)),
    column("Count", 1, ({ count }) => count ?? 1),
    { ...nameColumn, priority: 1 },
  ];
}

/** An event must be in the namespace of its object, or in `default` for cluster-wide objects. */
function checkSubject(field: string, subject = "", namespace = ""): Causes {
  const isRight = subject === namespace || (subject === "" && namespace === "default");
  return isRight ? [] : [invalidValue(field, subject, "does not match event.namespace")];
}

function checkNewEvent(event: NewEvent): Causes {
  const { metadata, regarding, eventTime, reportingController = "", reportingInstance = "" } = event;
  const { action = "", reason = "", note = "", type = "" } = event;
  const found: KubeStatusCause[] = [
    ...checkSubject("involvedObject.namespace", regarding?.namespace, metadata?.namespace),
  ];
  if (!eventTime) {
    found.push(required("eventTime"));
  } else {
    if (reportingController === "") found.push(required("reportingController"));
    else
      found.push(
        ...refuse("reportingController", reportingController, qualifiedNameProblems(reportingController)),
      );
    found.push(...checkText("reportingInstance", reportingInstance, 128));
    found.push(...checkText("action", action, 128));
    found.push(...checkText("reason", reason, 128));
    if (note.length > 1024) found.push(tooMany("message", 1024));
  }
  if (type !== "Normal" && type !== "Warning")
    found.push(invalidValue("type", "", `has invalid value: ${type}`));
  return found;
}

function checkText(field: string, text: string, max: number): Causes {
  if (text === "") return [required(field)];
  return text.length > max ? [tooMany(field, max)] : [];
}

function tooMany(field: string, max: number): KubeStatusCause {
  return invalidValue(field, "", `can have at most ${max} characters`);
}
