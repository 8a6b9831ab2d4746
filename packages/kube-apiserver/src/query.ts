// Parses query parameters, with the real server's checks.

import { forbiddenField, invalidValue, required, unsupported } from "./causes.ts";
import type { ServerRequest } from "./request.ts";
import { badRequest, invalid, StatusError } from "./status-error.ts";
import type { KubeStatusCause } from "./types.ts";

export interface WriteQuery {
  readonly dryRun: boolean;
  readonly fieldManager: string;
  readonly force: boolean;
  readonly fieldValidation: "Ignore" | "Warn" | "Strict";
}

export interface ListQuery {
  readonly labelSelector: string;
  readonly fieldSelector: string;
  readonly limit: number;
  readonly continueToken: string;
  /** "" if the request has none. */
  readonly resourceVersion: string;
  readonly resourceVersionMatch: "" | "Exact" | "NotOlderThan";
  readonly watch: boolean;
  readonly bookmarks: boolean;
  readonly sendInitialEvents: boolean | undefined;
  readonly timeoutSeconds: number | undefined;
}

type OptionsKind = "PatchOptions" | "CreateOptions" | "UpdateOptions" | "ListOptions" | "DeleteOptions";

export function parseWriteQuery(request: ServerRequest, options: OptionsKind): WriteQuery {
  const query = request.query ?? {};
  const isApply = request.contentType?.startsWith("application/apply-patch") ?? false;
  const manager = query["fieldManager"] ?? "";
  const validation = query["fieldValidation"] || "Warn";
  const dryRun = query["dryRun"] ?? "";
  const force = parseFlag(query["force"]);
  const causes: KubeStatusCause[] = [];
  if (isApply && manager === "") causes.push(required("fieldManager", "is required for apply patch"));
  if (!isApply && query["force"] !== undefined && options === "PatchOptions") {
    causes.push(forbiddenField("force", "may not be specified for non-apply patch"));
  }
  if (manager.length > 128) {
    causes.push({
      reason: "FieldValueTooLong",
      message: "Too long: may not be more than 128 bytes",
      field: "fieldManager",
    });
  }
  if (!/^[\x20-\x7e]*$/.test(manager)) {
    causes.push(invalidValue("fieldManager", manager, "should only contain printable characters"));
  }
  if (dryRun !== "" && dryRun !== "All") causes.push(unsupported("dryRun", [dryRun], ["All"]));
  if (validation !== "Ignore" && validation !== "Warn" && validation !== "Strict") {
    causes.push(unsupported("fieldValidation", validation, ["", "Ignore", "Strict", "Warn"]));
  }
  refuse(options, causes);
  const fieldValidation = validation as WriteQuery["fieldValidation"];
  return { dryRun: dryRun === "All", fieldManager: managerOf(request, manager), force, fieldValidation };
}

// The first word of the user agent, as in "kubectl/v1.36 (linux)".
function managerOf(request: ServerRequest, manager: string): string {
  if (manager !== "") return manager;
  return (request.userAgent ?? "").split("/")[0]?.slice(0, 128) || "unknown";
}

export function parseListQuery(request: ServerRequest): ListQuery {
  const query = request.query ?? {};
  const match = query["resourceVersionMatch"] ?? "";
  const list: ListQuery = {
    labelSelector: query["labelSelector"] ?? "",
    fieldSelector: query["fieldSelector"] ?? "",
    limit: parseNumber(query["limit"]) ?? 0,
    continueToken: query["continue"] ?? "",
    resourceVersion: query["resourceVersion"] ?? "",
    resourceVersionMatch: match as ListQuery["resourceVersionMatch"],
    watch: parseFlag(query["watch"]),
    bookmarks: parseFlag(query["allowWatchBookmarks"]),
    sendInitialEvents:
      query["sendInitialEvents"] === undefined ? undefined : parseFlag(query["sendInitialEvents"]),
    timeoutSeconds: parseNumber(query["timeoutSeconds"]),
  };
  refuse("ListOptions", list.watch ? watchCauses(list) : listCauses(list));
  return list;
}

function listCauses(list: ListQuery): KubeStatusCause[] {
  const { resourceVersionMatch: match, resourceVersion, sendInitialEvents, continueToken } = list;
  const field = "resourceVersionMatch";
  const causes: KubeStatusCause[] = [];
  if (match !== "") {
    if (resourceVersion === "") {
      causes.push(
        forbiddenField(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"),
      );
    }
    if (continueToken !== "") {
      causes.push(forbiddenField(field, "resourceVersionMatch is forbidden when continue is provided"));
    }
    if (match !== "Exact" && match !== "NotOlderThan") {
      causes.push(unsupported(field, match, ["Exact", "NotOlderThan", ""]));
    }
    if (match === "Exact" && resourceVersion === "0") {
      causes.push(forbiddenField(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
    }
  }
  if (sendInitialEvents !== undefined) {
    causes.push(forbiddenField("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  }
  return causes;
}

function watchCauses(list: ListQuery): KubeStatusCause[] {
  const { resourceVersionMatch: match, sendInitialEvents, continueToken } = list;
  const field = "resourceVersionMatch";
  if (sendInitialEvents === undefined) {
    return match === ""
      ? []
      : [
          forbiddenField(
            field,
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
          ),
        ];
  }
  const causes: KubeStatusCause[] = [];
  if (match !== "NotOlderThan") {
    causes.push(
      forbiddenField(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
    );
  }
  if (continueToken !== "") causes.push(forbiddenField("continue", "continue is forbidden for watch"));
  return causes;
}

/** A resourceVersion as a number; undefined if not set. */
export function parseRevision(text: string): number | undefined {
  if (text === "") return undefined;
  if (/^\d+$/.test(text)) return Number(text);
  throw badRequest(`invalid resource version: ${revisionProblem(text)}`);
}

/** In a watch, an invalid resourceVersion is an internal error. */
export function parseWatchRevision(text: string): number | undefined {
  if (text === "" || /^\d+$/.test(text)) return parseRevision(text);
  throw new StatusError(500, "", revisionProblem(text));
}

function revisionProblem(text: string): string {
  const quoted = JSON.stringify(text);
  return `resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: invalid syntax`;
}

function parseNumber(text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  if (/^-?\d+$/.test(text)) return Number(text);
  throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
}

function parseFlag(text: string | undefined): boolean {
  return text !== undefined && text !== "false" && text !== "0";
}

export function refuse(options: OptionsKind, causes: readonly KubeStatusCause[]): void {
  if (causes.length > 0) throw invalid({ group: "meta.k8s.io", kind: options }, "", causes);
}
