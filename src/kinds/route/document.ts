// Route documents: the fields that users write, and the manifests that `krane render` shows for them. A document names
// one backend; the route of an app has one for each of its releases that run.
import { create } from "@bufbuild/protobuf";
import { defineDocument, problemsOf } from "../../documents/document-kind.ts";
import { field } from "../../documents/fields.ts";
import { count, text, texts } from "../../documents/formats.ts";
import { type ApplyRoute, ApplyRouteSchema } from "../../gen/ctrl/v1/route_pb.ts";
import { desiredNamespace } from "../../model/namespace.ts";
import { exposeFormat, exposeOf } from "../expose.ts";
import { type KindDocument, type ObjectContent, type Plain, required } from "../kind-document.ts";
import { desiredNextService, desiredPolicy, desiredService, isExposed } from "./desired.ts";
import { desiredHttpRoute } from "./http-route.ts";
import { parseApplyRoute, type RouteSpec } from "./spec.ts";

type RouteFields = Omit<Plain<ApplyRoute>, "backends"> & { readonly port: number };

const defaultPort = 8080;

const schema = defineDocument<RouteFields, ObjectContent<"route", ApplyRoute>>({
  word: "Route",
  kind: "route",
  holds:
    "A stable name for one deployment: a Service on port 80 that leads to it. An app with `expose` has one, which moves with its releases.",
  fields: [
    field("id", "routeId", text, "Its permanent id.", required),
    field(
      "name",
      "k8sName",
      text,
      "The name of the Service: a DNS label that starts with a letter.",
      required,
    ),
    field("namespace", "k8sNamespace", text, "The namespace of the deployment.", required),
    field("workspace", "workspaceId", text, "The id of the workspace that owns it.", required),
    field("project", "projectId", text, "The id of the project within the workspace.", required),
    field("environment", "environmentId", text, "The id of the deployment's environment.", required),
    field("deployment", "deploymentId", text, "The id of the deployment that it leads to.", required),
    field("port", "port", count, "The port that the deployment listens on.", { fallback: defaultPort }),
    field(
      "expose",
      "expose",
      exposeFormat,
      "Who may reach the deployment, besides the sentinels of its environment: the deployments of the `environment`, everything in the `cluster`, or the `gateway` of the cluster for requests with its hostnames. Without it nobody else may.",
    ),
    field(
      "hostnames",
      "hostnames",
      texts,
      "The DNS names that the Gateway sends it the requests for; they imply `expose: gateway`. Each must be [granted](#hostnames) to the workspace.",
    ),
  ],
  judge: (content, rules) =>
    problemsOf(parseApplyRoute(specOf(content), rules)).map(({ path, message }) => ({
      path: path.replace(/^backends\[0\]\./, ""),
      message,
    })),
  documentOf: (content) => ({ kind: "route", spec: specOf(content) }),
  contentOf: ({ spec: { backends, ...spec } }) => {
    const { port = defaultPort } = backends.find((each) => each.deploymentId === spec.deploymentId) ?? {};
    return { ...spec, port };
  },
});

function specOf({ port = defaultPort, ...content }: Partial<RouteFields>): ApplyRoute {
  const { deploymentId = "" } = content;
  return create(ApplyRouteSchema, { ...content, ...exposeOf(content), backends: [{ deploymentId, port }] });
}

export const routeDocument: KindDocument<"route", ApplyRoute, RouteSpec> = {
  schema,
  belongsTo: ({ environmentId, workspaceId, projectId }) => ({ id: environmentId, workspaceId, projectId }),
  manifestsOf: (specs, { gateway }) =>
    specs.map((spec) => [
      desiredNamespace(spec.namespace),
      ...(isExposed(spec) ? [desiredPolicy(spec, gateway)] : []),
      desiredService(spec),
      ...(spec.next === undefined ? [] : [desiredNextService(spec)]),
      ...(spec.hostnames.length > 0 && gateway !== undefined ? [desiredHttpRoute(spec, gateway)] : []),
    ]),
};
