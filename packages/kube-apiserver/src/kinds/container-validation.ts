// Validates containers: names, images, ports, environment, resources, mounts.
import type {
  Container,
  ContainerPort,
  EnvFromSource,
  EnvVar,
  ResourceRequirements,
  VolumeMount,
} from "kubernetes-types/core/v1.js";
import { duplicate, forbiddenField, invalidValue, required, unsupported } from "../causes.ts";
import { compareQuantities, isWholeQuantity } from "../quantities.ts";
import type { KubeStatusCause } from "../types.ts";
import { type Causes, checkId, checkPort, refuse } from "./field-checks.ts";
import {
  dnsLabelProblems,
  dnsSubdomainProblems,
  envNameProblems,
  portNameProblems,
  qualifiedNameProblems,
} from "./names.ts";

export interface ContainerSurroundings {
  /** Names of the volumes that mounts may refer to. */
  readonly volumes: ReadonlySet<string>;
  /** Names of the previous containers; each check adds its own. */
  readonly names: Set<string>;
  readonly hostNetwork: boolean;
}

const protocols = ["SCTP", "TCP", "UDP"];
const pullPolicies = ["Always", "IfNotPresent", "Never"];
const messagePolicies = ["File", "FallbackToLogsOnError"];
const fieldPaths =
  /^(metadata\.(name|namespace|uid|labels\['[^']+'\]|annotations\['[^']+'\])|spec\.(nodeName|serviceAccountName)|status\.(hostIP|hostIPs|podIP|podIPs))$/;

export function checkContainer(field: string, container: Container, around: ContainerSurroundings): Causes {
  const { name = "", image = "" } = container;
  const found: KubeStatusCause[] = [];
  if (name === "") found.push(required(`${field}.name`));
  else if (around.names.has(name)) found.push(duplicate(`${field}.name`, name));
  else found.push(...refuse(`${field}.name`, name, dnsLabelProblems(name)));
  around.names.add(name);
  if (image === "") found.push(required(`${field}.image`));
  else if (image !== image.trim())
    found.push(invalidValue(`${field}.image`, image, "must not have leading or trailing whitespace"));
  found.push(
    ...checkOneOf(`${field}.terminationMessagePolicy`, container.terminationMessagePolicy, messagePolicies),
    ...checkPorts(`${field}.ports`, container.ports ?? [], around.hostNetwork),
    ...(container.env ?? []).flatMap((item, index) => checkEnv(`${field}.env[${index}]`, item)),
    ...(container.envFrom ?? []).flatMap((item, index) => checkEnvFrom(`${field}.envFrom`, index, item)),
    ...checkMounts(`${field}.volumeMounts`, container.volumeMounts ?? [], around.volumes),
    ...checkOneOf(`${field}.imagePullPolicy`, container.imagePullPolicy, pullPolicies),
    ...checkResources(`${field}.resources`, container.resources ?? {}),
    ...checkId(`${field}.securityContext.runAsUser`, container.securityContext?.runAsUser),
    ...checkId(`${field}.securityContext.runAsGroup`, container.securityContext?.runAsGroup),
  );
  return found;
}

function checkOneOf(field: string, value: string | undefined, allowed: readonly string[]): Causes {
  return value === undefined || allowed.includes(value) ? [] : [unsupported(field, value, allowed)];
}

function checkPorts(field: string, ports: readonly ContainerPort[], hostNetwork: boolean): Causes {
  const names = new Set<string>();
  const hostPorts = new Set<string>();
  return ports.flatMap((port, index) => {
    const at = `${field}[${index}]`;
    const { name = "", containerPort = 0, hostPort = 0, hostIP = "", protocol = "TCP" } = port;
    const found: KubeStatusCause[] = [];
    if (name !== "") {
      const problems = portNameProblems(name);
      if (problems.length > 0) found.push(...refuse(`${at}.name`, name, problems));
      else if (names.has(name)) found.push(duplicate(`${at}.name`, name));
      names.add(name);
    }
    if (containerPort === 0) found.push(required(`${at}.containerPort`));
    else found.push(...checkPort(`${at}.containerPort`, containerPort));
    if (hostPort !== 0) {
      found.push(...checkPort(`${at}.hostPort`, hostPort));
      if (hostNetwork && hostPort !== containerPort)
        found.push(
          invalidValue(`${at}.hostPort`, hostPort, "must match `containerPort` when `hostNetwork` is true"),
        );
      const taken = `${protocol}/${hostIP}/${hostPort}`;
      if (hostPorts.has(taken)) found.push(duplicate(`${at}.hostPort`, taken));
      hostPorts.add(taken);
    }
    if (!protocols.includes(protocol)) found.push(unsupported(`${at}.protocol`, protocol, protocols));
    return found;
  });
}

// Duplicate names are allowed: the last one wins when the container starts.
function checkEnv(field: string, { name = "", value = "", valueFrom }: EnvVar): Causes {
  const found: KubeStatusCause[] = [];
  if (name === "") found.push(required(`${field}.name`));
  else found.push(...refuse(`${field}.name`, name, envNameProblems(name)));
  if (valueFrom === undefined) return found;
  const at = `${field}.valueFrom`;
  const { fieldRef, secretKeyRef, configMapKeyRef } = valueFrom;
  if (fieldRef !== undefined) {
    const path = fieldRef.fieldPath ?? "";
    if (path === "") found.push(required(`${at}.fieldRef.fieldPath`));
    else if (!fieldPaths.test(path))
      found.push(
        invalidValue(
          `${at}.fieldRef.fieldPath`,
          path,
          `error converting fieldPath: field label not supported: ${path}`,
        ),
      );
  }
  for (const [kind, reference] of [
    ["configMapKeyRef", configMapKeyRef],
    ["secretKeyRef", secretKeyRef],
  ] as const) {
    if (reference === undefined) continue;
    found.push(
      ...refuse(`${at}.${kind}.name`, reference.name ?? "", dnsSubdomainProblems(reference.name ?? "")),
    );
    if ((reference.key ?? "") === "") found.push(required(`${at}.${kind}.key`));
  }
  const sources = Object.keys(valueFrom).length;
  if (sources === 0) {
    found.push(
      invalidValue(
        at,
        "",
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
      ),
    );
  } else if (value !== "") {
    found.push(invalidValue(at, "", "may not be specified when `value` is not empty"));
  } else if (sources > 1) {
    found.push(invalidValue(at, "", "may not have more than one field specified at a time"));
  }
  return found;
}

function checkEnvFrom(field: string, index: number, source: EnvFromSource): Causes {
  const { prefix = "", configMapRef, secretRef } = source;
  const found: KubeStatusCause[] = [];
  if (prefix !== "") found.push(...refuse(`${field}[${index}].prefix`, prefix, envNameProblems(prefix)));
  for (const [kind, reference] of [
    ["configMapRef", configMapRef],
    ["secretRef", secretRef],
  ] as const) {
    if (reference === undefined) continue;
    const name = reference.name ?? "";
    const at = `${field}[${index}].${kind}.name`;
    found.push(...(name === "" ? [required(at)] : refuse(at, name, dnsSubdomainProblems(name))));
  }
  if (configMapRef === undefined && secretRef === undefined)
    found.push(invalidValue(field, "", "must specify one of: `configMapRef` or `secretRef`"));
  if (configMapRef !== undefined && secretRef !== undefined)
    found.push(invalidValue(field, "", "may not have more than one field specified at a time"));
  return found;
}

function checkMounts(field: string, mounts: readonly VolumeMount[], volumes: ReadonlySet<string>): Causes {
  const paths = new Set<string>();
  return mounts.flatMap((mount, index) => {
    const at = `${field}[${index}]`;
    const { name = "", mountPath = "", subPath = "", subPathExpr = "" } = mount;
    const found: KubeStatusCause[] = [];
    if (name === "") found.push(required(`${at}.name`));
    if (!volumes.has(name))
      found.push({
        reason: "FieldValueNotFound",
        message: `Not found: ${JSON.stringify(name)}`,
        field: `${at}.name`,
      });
    if (mountPath === "") found.push(required(`${at}.mountPath`));
    else if (paths.has(mountPath)) found.push(invalidValue(`${at}.mountPath`, mountPath, "must be unique"));
    paths.add(mountPath);
    if (subPath !== "" && subPathExpr !== "")
      found.push(forbiddenField(`${at}.subPathExpr`, "subPathExpr and subPath are mutually exclusive"));
    // The real server omits the index here.
    if (subPath !== "") found.push(...checkLocalPath(`${field}.subPath`, subPath));
    return found;
  });
}

/** A relative path without "..". */
export function checkLocalPath(field: string, path: string): Causes {
  if (path.startsWith("/")) return [invalidValue(field, path, "must be a relative path")];
  return path.split("/").includes("..") ? [invalidValue(field, path, "must not contain '..'")] : [];
}

const standardNames = new Set(["cpu", "memory", "ephemeral-storage"]);

function checkResources(field: string, { limits = {}, requests = {} }: ResourceRequirements): Causes {
  const found: KubeStatusCause[] = [];
  for (const [name, amount] of Object.entries(limits)) {
    found.push(...checkAmount(`${field}.limits[${name}]`, name, amount));
  }
  for (const [name, amount] of Object.entries(requests)) {
    found.push(...checkAmount(`${field}.requests[${name}]`, name, amount));
    const limit = Object.hasOwn(limits, name) ? limits[name] : undefined;
    if (limit !== undefined && compareQuantities(amount, limit) > 0) {
      const why = `must be less than or equal to ${name} limit of ${limit}`;
      found.push(invalidValue(`${field}.requests`, amount, why));
    } else if (limit === undefined && isExtended(name)) {
      found.push(required(`${field}.limits`, "Limit must be set for non overcommitable resources"));
    }
  }
  return found;
}

function checkAmount(field: string, name: string, amount: string): Causes {
  const found: KubeStatusCause[] = [...refuse(field, name, qualifiedNameProblems(name))];
  if (!name.includes("/") && !isStandard(name)) {
    found.push(invalidValue(field, name, "must be a standard resource type or fully qualified"));
    found.push(invalidValue(field, name, "must be a standard resource for containers"));
  }
  if (compareQuantities(amount, "0") < 0)
    found.push(invalidValue(field, amount, "must be greater than or equal to 0"));
  if (isExtended(name) && !isWholeQuantity(amount))
    found.push(invalidValue(field, amount, "must be an integer"));
  return found;
}

function isStandard(name: string): boolean {
  return standardNames.has(name) || name.startsWith("hugepages-");
}

// Devices cannot be shared, so the request must equal the limit.
function isExtended(name: string): boolean {
  return name.includes("/") && !name.includes("kubernetes.io/");
}
