// Validates a pod spec, in a pod or in a template, in the order in which the real server reports problems.
import type { PodSpec } from "kubernetes-types/core/v1.js";
import { forbiddenField, invalidValue, required, unsupported } from "../causes.ts";
import type { KubeStatusCause } from "../types.ts";
import { type ContainerSurroundings, checkContainer } from "./container-validation.ts";
import { type Causes, checkId, checkLabels, refuse } from "./field-checks.ts";
import { dnsLabelProblems, dnsSubdomainProblems, qualifiedNameProblems } from "./names.ts";
import { checkHooksAndProbes, refuseHooksAndProbes } from "./probe-validation.ts";
import { checkAffinity, checkSpread, checkTolerations } from "./scheduling-validation.ts";
import { checkVolumes } from "./volume-validation.ts";

const restartPolicies = ["Always", "OnFailure", "Never"];
const dnsPolicies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

export function checkPodSpec(field: string, spec: PodSpec | undefined): Causes {
  if (spec === undefined) return [required(`${field}.containers`)];
  const volumes = checkVolumes(`${field}.volumes`, spec.volumes ?? []);
  return [
    ...volumes.causes,
    ...checkAllContainers(field, spec, volumes.sound),
    ...checkPolicies(field, spec),
    ...checkLabels(`${field}.nodeSelector`, spec.nodeSelector),
    ...checkSecurity(`${field}.securityContext`, spec.securityContext),
    ...checkAffinity(`${field}.affinity`, spec.affinity),
    ...(spec.readinessGates ?? []).flatMap(({ conditionType }, index) =>
      refuse(
        `${field}.readinessGates[${index}].conditionType`,
        conditionType,
        qualifiedNameProblems(conditionType),
      ),
    ),
    ...checkSpread(`${field}.topologySpreadConstraints`, spec.topologySpreadConstraints ?? []),
    ...checkNames(field, spec),
    ...checkTolerations(`${field}.tolerations`, spec.tolerations ?? []),
    ...checkName(`${field}.runtimeClassName`, spec.runtimeClassName, dnsSubdomainProblems),
  ];
}

function checkAllContainers(field: string, spec: PodSpec, volumes: ReadonlySet<string>): Causes {
  const around: ContainerSurroundings = {
    volumes,
    names: new Set(),
    hostNetwork: spec.hostNetwork === true,
  };
  const containers = spec.containers ?? [];
  const found: KubeStatusCause[] = containers.length === 0 ? [required(`${field}.containers`)] : [];
  for (const list of ["containers", "initContainers"] as const) {
    for (const [index, container] of (spec[list] ?? []).entries()) {
      const at = `${field}.${list}[${index}]`;
      // Other init containers must exit before the pod continues, so they cannot have probes.
      const isLasting = list === "containers" || container.restartPolicy === "Always";
      found.push(...checkContainer(at, container, around));
      found.push(...(isLasting ? checkHooksAndProbes(at, container) : refuseHooksAndProbes(at, container)));
    }
  }
  return found;
}

function checkPolicies(field: string, spec: PodSpec): Causes {
  const { restartPolicy = "", dnsPolicy = "", dnsConfig, activeDeadlineSeconds: deadline, os } = spec;
  const found: KubeStatusCause[] = [];
  if (restartPolicy === "") found.push(required(`${field}.restartPolicy`));
  else if (!restartPolicies.includes(restartPolicy))
    found.push(unsupported(`${field}.restartPolicy`, restartPolicy, restartPolicies));
  if (!dnsPolicies.includes(dnsPolicy)) found.push(unsupported(`${field}.dnsPolicy`, dnsPolicy, dnsPolicies));
  if (dnsPolicy === "None" && (dnsConfig?.nameservers ?? []).length === 0)
    found.push(required(`${field}.dnsConfig`, "must provide `dnsConfig` when `dnsPolicy` is None"));
  if (deadline !== undefined && (deadline < 1 || deadline > 2_147_483_647))
    found.push(
      invalidValue(`${field}.activeDeadlineSeconds`, deadline, "must be between 1 and 2147483647, inclusive"),
    );
  if (os !== undefined && os.name !== "linux" && os.name !== "windows")
    found.push(unsupported(`${field}.os`, os.name, ["linux", "windows"]));
  return found;
}

function checkSecurity(field: string, security: PodSpec["securityContext"]): Causes {
  const { fsGroup, runAsUser, runAsGroup, supplementalGroups = [] } = security ?? {};
  return [
    ...checkId(`${field}.fsGroup`, fsGroup),
    ...checkId(`${field}.runAsUser`, runAsUser),
    ...checkId(`${field}.runAsGroup`, runAsGroup),
    ...supplementalGroups.flatMap((group, index) => checkId(`${field}.supplementalGroups[${index}]`, group)),
  ];
}

function checkNames(field: string, spec: PodSpec): Causes {
  const { ephemeralContainers = [] } = spec;
  return [
    ...checkName(`${field}.serviceAccountName`, spec.serviceAccountName, dnsSubdomainProblems),
    ...checkName(`${field}.nodeName`, spec.nodeName, dnsSubdomainProblems),
    ...checkName(`${field}.hostname`, spec.hostname, dnsLabelProblems),
    ...checkName(`${field}.subdomain`, spec.subdomain, dnsLabelProblems),
    ...(ephemeralContainers.length > 0
      ? [forbiddenField(`${field}.ephemeralContainers`, "cannot be set on create")]
      : []),
  ];
}

function checkName(
  field: string,
  name: string | undefined,
  problems: (text: string) => readonly string[],
): Causes {
  return name === undefined || name === "" ? [] : refuse(field, name, problems(name));
}
