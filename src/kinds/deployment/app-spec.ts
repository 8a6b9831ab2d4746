// Checks the spec of an app: its template as that of a deployment, and what only apps have.
import { create } from "@bufbuild/protobuf";
import { ApplyRoute_Expose as Expose } from "../../gen/ctrl/v1/route_pb.ts";
import { type AppSpec, AppSpecSchema } from "../../gen/krane/admin/v1/app_pb.ts";
import type { Refuse } from "../../model/field-problem.ts";
import { parseHostnames } from "../../model/hostnames.ts";
import type { MessageRules } from "../../model/message-fields.ts";
import { appIdLengthMax, appNameLengthMax } from "./release-names.ts";
import { checkReleasePolicy } from "./release-policy.ts";
import { parseApplyDeployment } from "./spec.ts";

const known: ReadonlySet<Expose> = new Set([
  Expose.UNSPECIFIED,
  Expose.ENVIRONMENT,
  Expose.CLUSTER,
  Expose.GATEWAY,
]);

/** Reports problems by the wire names of the template. */
export function parseAppSpec(spec: AppSpec | undefined, rules: MessageRules, refuse: Refuse): AppSpec {
  const { template } = spec ?? {};
  if (spec === undefined || template === undefined) {
    refuse("template", "is required");
    return spec ?? create(AppSpecSchema);
  }
  const parsed = parseApplyDeployment(template, rules);
  for (const { path, message } of parsed.kind === "invalid" ? parsed.problems : []) refuse(path, message);
  const tooLong = (path: string, value: string, lengthMax: number) => {
    if (value.length <= lengthMax) return;
    refuse(path, `must have at most ${lengthMax} characters, because its releases are named after it`);
  };
  tooLong("deployment_id", template.deploymentId, appIdLengthMax);
  tooLong("k8s_name", template.k8sName, appNameLengthMax);
  if (template.encryptedEnvironmentVariables.length > 0) {
    refuse("encrypted_environment_variables", "must be empty: releases take the secrets of the environment");
  }
  if (!known.has(spec.expose)) refuse("expose", `is ${spec.expose}, which this control plane does not know`);
  checkHostnames(spec, refuse);
  checkReleasePolicy(spec.policy, refuse);
  return spec;
}

function checkHostnames({ expose, hostnames }: AppSpec, refuse: Refuse): void {
  if (expose !== Expose.GATEWAY && hostnames.length > 0)
    refuse("hostnames", "is only for what the gateway exposes");
  parseHostnames("hostnames", hostnames, refuse);
}
