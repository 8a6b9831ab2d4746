// Turns the value of a Kubernetes field into text for a log line or an Event, without secrets (K7).
//
// A number or a boolean is shown. A text is shown only if its field is listed here, because any other one may hold a
// secret: an environment variable, an argument, a header, an annotation, the data of a Secret. So a field that a newer
// Kubernetes adds is not shown either.
import { printable, scrub } from "../telemetry/scrub.ts";
import type { FieldStep } from "./field-owners.ts";

const absentValue = "absent";
const redacted = "[redacted]";
const valueCharsMax = 160;
const itemsMax = 8;
const depthMax = 8;

const shownFields: ReadonlySet<string> = new Set([
  "name",
  "namespace",
  "kind",
  "apiVersion",
  "type",
  "protocol",
  "appProtocol",
  "port",
  "targetPort",
  "key",
  "operator",
  "effect",
  "values",
  "topologyKey",
  "whenUnsatisfiable",
  "labelSelector",
  "namespaces",
  "image",
  "imagePullPolicy",
  "restartPolicy",
  "dnsPolicy",
  "runtimeClassName",
  "serviceAccount",
  "serviceAccountName",
  "schedulerName",
  "priorityClassName",
  "preemptionPolicy",
  "nodeName",
  "hostname",
  "subdomain",
  "path",
  "mountPath",
  "mountPropagation",
  "subPath",
  "medium",
  "audience",
  "add",
  "drop",
  "procMount",
  "scheme",
  "host",
  "terminationMessagePath",
  "terminationMessagePolicy",
  "clusterIP",
  "clusterIPs",
  "ipFamilies",
  "ipFamilyPolicy",
  "externalIPs",
  "loadBalancerIP",
  "externalName",
  "sessionAffinity",
  "internalTrafficPolicy",
  "externalTrafficPolicy",
  "maxSurge",
  "maxUnavailable",
  "minAvailable",
  "unhealthyPodEvictionPolicy",
  "fromEntities",
  "toEntities",
  "fromCIDR",
  "toCIDR",
  "cidr",
  "matchName",
  "matchPattern",
]);

/** Maps whose values are shown, whatever their keys. */
const shownMaps: ReadonlySet<string> = new Set([
  "labels",
  "matchLabels",
  "selector",
  "nodeSelector",
  "limits",
  "requests",
]);

/** Below these nothing is shown, not even a field that is shown elsewhere. */
const hiddenFields: ReadonlySet<string> = new Set([
  "annotations",
  "data",
  "stringData",
  "binaryData",
  "volumeAttributes",
  "options",
]);

/** The value as JSON without secrets, cut to a length; "absent" for a field without a value. */
export function shownValue(path: readonly FieldStep[], value: unknown): string {
  if (value === undefined) return absentValue;
  const names = path.filter((step) => typeof step === "string");
  const isHidden = names.some((name) => hiddenFields.has(name));
  const [parent = "", field = ""] = names.slice(-2);
  const shown = isHidden
    ? redacted
    : textOf(value, { isShown: shownFields.has(field) || shownMaps.has(parent), field }, depthMax);
  return printable(scrub(shown, valueCharsMax));
}

interface Place {
  readonly isShown: boolean;
  readonly field: string;
}

function textOf(value: unknown, place: Place, depth: number): string {
  if (typeof value === "string")
    // The query of a path may hold a token.
    return place.isShown ? JSON.stringify(value.replace(/\?.*/su, `?${redacted}`)) : redacted;
  if (typeof value === "number" || typeof value === "boolean" || value === null) return String(value);
  if (typeof value !== "object" || depth === 0) return redacted;
  if (Array.isArray(value)) {
    const items = value.slice(0, itemsMax).map((item) => textOf(item, place, depth - 1));
    return `[${[...items, ...(value.length > itemsMax ? ["..."] : [])].join(",")}]`;
  }
  const members = Object.entries(value).map(([name, member]) => {
    const isShown = shownFields.has(name) || shownMaps.has(place.field);
    const text = hiddenFields.has(name) ? redacted : textOf(member, { isShown, field: name }, depth - 1);
    return `${JSON.stringify(name)}:${text}`;
  });
  return `{${members.join(",")}}`;
}
