// Sentinel documents: the fields that users write, and the manifests that `krane render` shows for them.
import { create } from "@bufbuild/protobuf";
import { defineDocument, problemsOf } from "../../documents/document-kind.ts";
import { field } from "../../documents/fields.ts";
import { count, cpu, memory, text } from "../../documents/formats.ts";
import { type ApplySentinel, ApplySentinelSchema } from "../../gen/ctrl/v1/sentinel_pb.ts";
import { fallbacks, type KindDocument, type ObjectContent, type Plain, required } from "../kind-document.ts";
import { desiredSentinel } from "./desired.ts";
import { parseApplySentinel, type SentinelSpec } from "./spec.ts";

/**
 * Only the cluster knows the uid of the apps/v1 Deployment. Owner references to it get an empty uid, which the API
 * server rejects: with any other text, objects applied by hand would count as orphans and be deleted. The hash of such
 * a manifest is that of the manifest as shown.
 */
const unknownUid = "";

const schema = defineDocument<Plain<ApplySentinel>, ObjectContent<"sentinel", ApplySentinel>>({
  word: "Sentinel",
  kind: "sentinel",
  holds:
    "The proxy in front of the deployments of an environment. Its objects are in the namespace `sentinel`.",
  fields: [
    field("id", "sentinelId", text, "Its permanent id.", required),
    field(
      "name",
      "k8sName",
      text,
      "The name of its objects: a DNS label of at most 52 characters.",
      required,
    ),
    field("workspace", "workspaceId", text, "The id of the workspace that owns it.", required),
    field("project", "projectId", text, "The id of the project within the workspace.", required),
    field(
      "environment",
      "environmentId",
      text,
      "The id of the environment whose traffic it receives.",
      required,
    ),
    field("image", "image", text, "The reference of the container image.", required),
    field("replicas", "replicas", count, "How many pods to keep running; 0 pauses it.", fallbacks.replicas),
    field("cpu", "cpuMillicores", cpu, "The CPU share of a pod.", fallbacks.cpu),
    field("memory", "memoryMib", memory, "The memory of a pod.", fallbacks.memory),
  ],
  judge: (content, rules) => problemsOf(parseApplySentinel(create(ApplySentinelSchema, content), rules)),
  documentOf: (content) => ({ kind: "sentinel", spec: create(ApplySentinelSchema, content) }),
  contentOf: ({ spec }) => spec,
});

export const sentinelDocument: KindDocument<"sentinel", ApplySentinel, SentinelSpec> = {
  schema,
  namesRegion: true,
  manifestsOf: (specs, settings) =>
    specs.map((spec) => desiredSentinel(spec, settings, unknownUid).map(({ manifest }) => manifest)),
};
