// App documents: the fields of a deployment, and how its releases replace one another.
import { create } from "@bufbuild/protobuf";
import { formatDuration, parseDuration } from "../../config/duration.ts";
import { type DocumentKind, defineDocument, problemsOf } from "../../documents/document-kind.ts";
import { type Field, field } from "../../documents/fields.ts";
import { count, type Format, type Shape, text, texts } from "../../documents/formats.ts";
import { refuseUnknown } from "../../documents/known-names.ts";
import { type JsonValue, type SourceNode, wordOf } from "../../documents/source-tree.ts";
import { type ApplyDeployment, ApplyDeploymentSchema } from "../../gen/ctrl/v1/deployment_pb.ts";
import {
  type AppSpec,
  AppSpecSchema,
  type ReleasePolicy,
  ReleasePolicySchema,
} from "../../gen/krane/admin/v1/app_pb.ts";
import { collectProblems, type Refuse } from "../../model/field-problem.ts";
import { exposeFormat, exposeOf } from "../expose.ts";
import { type Plain, required } from "../kind-document.ts";
import { parseAppSpec } from "./app-spec.ts";
import { programFields } from "./document.ts";
import { releasePolicyDefaults } from "./release-policy.ts";

export interface AppContent {
  readonly kind: "app";
  readonly spec: AppSpec;
}

/** The template's fields, and the policy. */
type AppFields = Plain<ApplyDeployment> &
  Pick<AppSpec, "expose" | "hostnames"> & { readonly policy: ReleasePolicy };

type PolicyKey = keyof typeof releasePolicyDefaults;

/** The names in documents of what is one number; all but the history are durations. */
const policyNames: readonly (readonly [name: string, key: PolicyKey, holds: string])[] = [
  [
    "readyFor",
    "readySeconds",
    "How long all pods of a release must be ready before it becomes the current one.",
  ],
  ["deadline", "deadlineSeconds", "How long a release may take to become ready before it has failed."],
  ["drainFor", "drainSeconds", "How long a release keeps running after another one has become current."],
  ["stepFor", "stepSeconds", "How long each of the `steps` lasts."],
  ["history", "history", "How many ended releases are kept."],
];

const stepsMember = [
  "steps",
  {
    type: "array",
    items: { type: "integer" },
    description:
      "How many of a hundred requests by hostname a ready release gets before it becomes the current one, such as [10, 50]: one after the other, ascending.",
  },
] as const;

/** What `parseDuration` reads. */
const durationShape = {
  type: "string",
  pattern: "^[+-]?(0|((\\d+(\\.\\d*)?|\\.\\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$",
} as const;

function policyShape(): Shape {
  const members = policyNames.map(([name, key, description]) => {
    const type = key === "history" ? ({ type: "integer" } as const) : durationShape;
    return [name, { ...type, description, default: policyText(key, releasePolicyDefaults[key]) }] as const;
  });
  const properties = Object.fromEntries<Shape>([...members, stepsMember]);
  return { type: "object", properties, additionalProperties: false };
}

function policyText(key: PolicyKey, value: number): JsonValue {
  return key === "history" ? value : formatDuration(value * 1_000);
}

const policyFormat: Format<ReleasePolicy> = {
  words: "a mapping",
  shape: policyShape(),
  read(node, path, refuse) {
    const policy = create(ReleasePolicySchema);
    if (node.kind !== "map") {
      refuse(path, `must be a mapping, but is ${wordOf(node)}`);
      return policy;
    }
    refuseUnknown(
      node,
      path,
      [...policyNames, stepsMember].map(([name]) => ({ name })),
      refuse,
    );
    const steps = node.entries.get("steps");
    if (steps !== undefined) policy.steps = readSteps(steps.node, `${path}.steps`, refuse);
    for (const [name, key] of policyNames) {
      const entry = node.entries.get(name);
      if (entry === undefined) continue;
      const read = key === "history" ? count.read : readSeconds;
      policy[key] = read(entry.node, `${path}.${name}`, refuse);
    }
    return policy;
  },
  write(policy) {
    const members = policyNames.map(([name, key]) => {
      return [name, policyText(key, policy[key] ?? releasePolicyDefaults[key])] as const;
    });
    return Object.fromEntries([...members, ...(policy.steps.length > 0 ? [["steps", policy.steps]] : [])]);
  },
};

function readSteps(node: SourceNode, path: string, refuse: Refuse): number[] {
  if (node.kind === "list")
    return node.items.map((item, index) => count.read(item, `${path}[${index}]`, refuse));
  refuse(path, `must be a list of whole numbers, but is ${wordOf(node)}`);
  return [];
}

function readSeconds(node: SourceNode, path: string, refuse: Refuse): number {
  let isText = true;
  const written = text.read(node, path, (where, message) => {
    isText = false;
    refuse(where, message);
  });
  const ms = parseDuration(written);
  if (ms !== undefined && ms >= 0 && Number.isInteger(ms / 1_000)) return ms / 1_000;
  if (isText) refuse(path, "must be a duration in whole seconds, such as 30s or 5m");
  return releasePolicyDefaults.readySeconds;
}

const policyField = field<AppFields, "policy">(
  "release",
  "policy",
  policyFormat,
  "How one release replaces another. A release becomes the current one after all of its pods have been ready for `readyFor` (10s); if they are not within `deadline` (10m), it has failed. The previous one keeps running for `drainFor` (30s). `history` (10) ended releases are kept. With `steps`, such as `[10, 50]`, a ready release first gets these percentages of the requests by hostname, each for `stepFor` (1m).",
);

const schema = defineDocument<AppFields, AppContent>({
  word: "App",
  kind: "app",
  holds:
    "A customer's program with releases: each change of anything but `replicas` is a release, a deployment of its own.",
  fields: [
    field("id", "deploymentId", text, "Its permanent id. Its releases have it with a number.", required),
    field(
      "name",
      "k8sName",
      text,
      "Its name: a DNS label that starts with a letter. Its releases have it with a hash and a number.",
      required,
    ),
    ...(programFields as readonly Field<AppFields>[]),
    field<AppFields, "expose">(
      "expose",
      "expose",
      exposeFormat,
      "Who may reach it, besides the sentinels of its environment: at `http://NAME.NAMESPACE` the deployments and apps of its `environment`, or everything in the `cluster`; or at its hostnames everybody who reaches the `gateway` of the cluster. Without it the app has no such name.",
    ),
    field<AppFields, "hostnames">(
      "hostnames",
      "hostnames",
      texts,
      "The DNS names that the Gateway sends it the requests for; they imply `expose: gateway`. Each must be [granted](#hostnames) to the workspace.",
    ),
    { ...policyField, translate: translatePolicy },
  ],
  judge: (content, rules) =>
    problemsOf(collectProblems((refuse) => parseAppSpec(specOf(content), rules, refuse))),
  documentOf: (content) => ({ kind: "app", spec: specOf(content) }),
  contentOf: ({ spec }) => ({
    ...(spec.template ?? create(ApplyDeploymentSchema)),
    expose: spec.expose,
    hostnames: spec.hostnames,
    policy: spec.policy ?? create(ReleasePolicySchema),
  }),
});

function translatePolicy({ path, message }: { readonly path: string; readonly message: string }) {
  if (path.startsWith("policy.steps")) return { path: path.replace("policy.", "release."), message };
  const found = policyNames.find(
    ([, key]) => path === `policy.${key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`,
  );
  if (found === undefined) return undefined;
  const [name, key] = found;
  return { path: `release.${name}`, message: key === "history" ? message : `${message} (in seconds)` };
}

function specOf({ policy, expose, hostnames, ...template }: Partial<AppFields>): AppSpec {
  return create(AppSpecSchema, {
    template: create(ApplyDeploymentSchema, template),
    ...exposeOf({ expose, hostnames }),
    ...(hostnames !== undefined && { hostnames }),
    ...(policy && { policy }),
  });
}

export const appDocument: DocumentKind<AppContent> = {
  ...schema,
  idOf: ({ spec }) => spec.template?.deploymentId ?? "",
  nameOf: ({ spec }) => [spec.template?.k8sNamespace ?? "", spec.template?.k8sName ?? ""],
  belongsTo: ({ spec }) => ({
    id: spec.template?.environmentId ?? "",
    workspaceId: spec.template?.workspaceId ?? "",
    projectId: spec.template?.projectId ?? "",
  }),
};
