// What is refused as invalid, of the kinds that the server knows: a 422 with a cause per field.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import {
  appsDeployment,
  appsDeployments,
  container,
  disruptionBudget,
  lease,
  leases,
  namespaces,
  pendingPod,
  podDisruptionBudgets,
  podSpec,
  pods,
  replicaSet,
  replicaSets,
  runtimeClasses,
  secret,
  secrets,
  service,
  services,
} from "../fixtures.ts";
import type { Kind, Manifest } from "../manifest.ts";
import { invalid, refused } from "../refusal.ts";

type Fields = Readonly<Record<string, unknown>>;

interface Mistake {
  readonly kind: Kind;
  readonly manifest: Manifest;
  readonly causes: readonly string[];
}

const inTemplate = "spec.template.spec";

/** A ReplicaSet whose template has this in its pod spec. */
function template(spec: Fields, ...causes: readonly string[]): Mistake {
  return { kind: replicaSets, manifest: replicaSet("a", {}, spec), causes };
}

/** A ReplicaSet whose one container has these fields; causes are relative to the container. */
function inContainer(fields: Fields, ...causes: readonly string[]): Mistake {
  const relative = causes.map((cause) => cause.replace(" ", ` ${inTemplate}.containers[0].`));
  return template({ containers: [container("app", fields)] }, ...relative);
}

function inMetadata(metadata: Fields, ...causes: readonly string[]): Mistake {
  return { kind: secrets, manifest: secret("a", {}, metadata), causes };
}

function inService(spec: Fields, ...causes: readonly string[]): Mistake {
  return { kind: services, manifest: service("a", spec), causes };
}

function inBudget(spec: Fields, ...causes: readonly string[]): Mistake {
  return { kind: podDisruptionBudgets, manifest: disruptionBudget("a", spec), causes };
}

function inReplicaSet(spec: Fields, ...causes: readonly string[]): Mistake {
  return { kind: replicaSets, manifest: replicaSet("a", spec), causes };
}

function inDeployment(spec: Fields, ...causes: readonly string[]): Mistake {
  return { kind: appsDeployments, manifest: appsDeployment("a", spec), causes };
}

const long = "a".repeat(64);
const rolling = (rollingUpdate: Fields) => ({ strategy: { type: "RollingUpdate", rollingUpdate } });

/** What is wrong -> the object and its causes. */
const mistakes: Readonly<Record<string, Mistake>> = {
  "a label key that is none": inMetadata(
    { labels: { "not a key": "1" } },
    "FieldValueInvalid metadata.labels",
  ),
  "a label value with a space": inMetadata(
    { labels: { one: "not a value" } },
    "FieldValueInvalid metadata.labels",
  ),
  "a label value of 64 characters": inMetadata(
    { labels: { one: long } },
    "FieldValueInvalid metadata.labels",
  ),
  "an annotation key that is none": inMetadata(
    { annotations: { "not a key": "1" } },
    "FieldValueInvalid metadata.annotations",
  ),
  "annotations of more than 256 KiB": inMetadata(
    { annotations: { one: "a".repeat(256 * 1024) } },
    "FieldValueTooLong metadata.annotations",
  ),
  "a finalizer without a domain": inMetadata(
    { finalizers: ["hold"] },
    "FieldValueInvalid metadata.finalizers[0]",
  ),
  "a Secret key with a slash": {
    kind: secrets,
    manifest: secret("a", { "a/b": "1" }),
    causes: ["FieldValueInvalid data[a/b]"],
  },
  "a Secret of more than 1 MiB": {
    kind: secrets,
    manifest: secret("a", { big: "a".repeat(1024 * 1024 + 1) }),
    causes: ["FieldValueTooLong data"],
  },
  "a pull secret without its key": {
    kind: secrets,
    manifest: { ...secret("a"), type: "kubernetes.io/dockerconfigjson" },
    causes: ["FieldValueRequired data[.dockerconfigjson]"],
  },
  "a pull secret that is not JSON": {
    kind: secrets,
    manifest: { ...secret("a", { ".dockerconfigjson": "no" }), type: "kubernetes.io/dockerconfigjson" },
    causes: ["FieldValueInvalid data[.dockerconfigjson]"],
  },
  "negative replicas": inReplicaSet({ replicas: -1 }, "FieldValueInvalid spec.replicas"),
  "negative minReadySeconds": inReplicaSet({ minReadySeconds: -1 }, "FieldValueInvalid spec.minReadySeconds"),
  "a selector that its template does not match": inReplicaSet(
    { selector: { matchLabels: { app: "other" } } },
    "FieldValueInvalid spec.template.metadata.labels",
  ),
  "an empty selector": inReplicaSet({ selector: {} }, "FieldValueInvalid spec.selector"),
  "no selector": inReplicaSet(
    { selector: undefined },
    "FieldValueRequired spec.selector",
    "FieldValueInvalid spec.template.metadata.labels",
  ),
  "a selector with an unknown operator": inReplicaSet(
    { selector: { matchLabels: { app: "a" }, matchExpressions: [{ key: "app", operator: "Near" }] } },
    "FieldValueInvalid spec.selector.matchExpressions[0].operator",
    "FieldValueInvalid spec.selector",
  ),
  "a template that ends by itself": template(
    { restartPolicy: "Never" },
    `FieldValueNotSupported ${inTemplate}.restartPolicy`,
  ),
  "a template without containers": template(
    { containers: [] },
    `FieldValueRequired ${inTemplate}.containers`,
  ),
  "two containers of one name": template(
    { containers: [container("app"), container("app")] },
    `FieldValueDuplicate ${inTemplate}.containers[1].name`,
  ),
  "a runtime class that is no name": template(
    { runtimeClassName: "Not_A_Name" },
    `FieldValueInvalid ${inTemplate}.runtimeClassName`,
  ),
  "a service account that is no name": template(
    { serviceAccountName: "Not_A_Name" },
    `FieldValueInvalid ${inTemplate}.serviceAccountName`,
  ),
  "a toleration with an unknown operator": template(
    { tolerations: [{ key: "a", operator: "Near" }] },
    `FieldValueNotSupported ${inTemplate}.tolerations[0].operator`,
  ),
  "a toleration that exists with a value": template(
    { tolerations: [{ key: "a", operator: "Exists", value: "b" }] },
    `FieldValueInvalid ${inTemplate}.tolerations[0].operator`,
  ),
  "a spread constraint with a skew of 0": template(
    {
      topologySpreadConstraints: [
        { maxSkew: 0, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway", labelSelector: {} },
      ],
    },
    `FieldValueInvalid ${inTemplate}.topologySpreadConstraints[0].maxSkew`,
  ),
  "a spread constraint that is unsatisfiable in an unknown way": template(
    { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "Sometimes" }] },
    `FieldValueNotSupported ${inTemplate}.topologySpreadConstraints[0].whenUnsatisfiable`,
  ),
  "an affinity weight above 100": template(
    {
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 101, podAffinityTerm: { topologyKey: "zone", labelSelector: {} } },
          ],
        },
      },
    },
    `FieldValueInvalid ${inTemplate}.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight`,
  ),
  "an affinity term without a topology key": template(
    {
      affinity: {
        podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: {} }] },
      },
    },
    `FieldValueRequired ${inTemplate}.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey`,
    `FieldValueInvalid ${inTemplate}.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey`,
  ),
  "two volumes of one name": template(
    {
      volumes: [
        { name: "a", emptyDir: {} },
        { name: "a", emptyDir: {} },
      ],
    },
    `FieldValueDuplicate ${inTemplate}.volumes[1].name`,
  ),
  "a volume of two sources": template(
    { volumes: [{ name: "a", emptyDir: {}, secret: { secretName: "b" } }] },
    `FieldValueForbidden ${inTemplate}.volumes[0].secret`,
  ),
  "a projected token that lasts too short": template(
    {
      volumes: [
        {
          name: "a",
          projected: { sources: [{ serviceAccountToken: { path: "token", expirationSeconds: 599 } }] },
        },
      ],
    },
    `FieldValueInvalid ${inTemplate}.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds`,
  ),
  "an init container with a probe": template(
    { initContainers: [container("init", { readinessProbe: { httpGet: { port: 80 } } })] },
    `FieldValueForbidden ${inTemplate}.initContainers[0].readinessProbe`,
  ),
  "a mount of a volume that is itself wrong": template(
    {
      volumes: [{ name: "a", emptyDir: {}, secret: { secretName: "b" } }],
      containers: [container("app", { volumeMounts: [{ name: "a", mountPath: "/a" }] })],
    },
    `FieldValueForbidden ${inTemplate}.volumes[0].secret`,
    `FieldValueNotFound ${inTemplate}.containers[0].volumeMounts[0].name`,
  ),
  "a container without an image": inContainer({ image: "" }, "FieldValueRequired image"),
  "an image of a pod with a space before it": {
    kind: pods,
    manifest: pendingPod("a", { containers: [container("app", { image: " app:1" })] }),
    causes: ["FieldValueInvalid spec.containers[0].image"],
  },
  "a container name in capitals": inContainer({ name: "App" }, "FieldValueInvalid name"),
  "an unknown pull policy": inContainer(
    { imagePullPolicy: "Maybe" },
    "FieldValueNotSupported imagePullPolicy",
  ),
  "port 0": inContainer({ ports: [{ containerPort: 0 }] }, "FieldValueRequired ports[0].containerPort"),
  "port 65536": inContainer(
    { ports: [{ containerPort: 65536 }] },
    "FieldValueInvalid ports[0].containerPort",
  ),
  "an unknown protocol": inContainer(
    { ports: [{ containerPort: 80, protocol: "HTTP" }] },
    "FieldValueNotSupported ports[0].protocol",
  ),
  "two ports of one name": inContainer(
    {
      ports: [
        { name: "web", containerPort: 80 },
        { name: "web", containerPort: 81 },
      ],
    },
    "FieldValueDuplicate ports[1].name",
  ),
  "a port name of 16 characters": inContainer(
    { ports: [{ name: "a".repeat(16), containerPort: 80 }] },
    "FieldValueInvalid ports[0].name",
  ),
  "an env name with an equals sign": inContainer({ env: [{ name: "A=B" }] }, "FieldValueInvalid env[0].name"),
  "an env without a name": inContainer({ env: [{ name: "", value: "1" }] }, "FieldValueRequired env[0].name"),
  "an env with a value and a source": inContainer(
    { env: [{ name: "A", value: "1", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }] },
    "FieldValueInvalid env[0].valueFrom",
  ),
  "an env from a field that pods do not have": inContainer(
    { env: [{ name: "A", valueFrom: { fieldRef: { fieldPath: "metadata.nonsense" } } }] },
    "FieldValueInvalid env[0].valueFrom.fieldRef.fieldPath",
  ),
  "more requested than allowed": inContainer(
    { resources: { limits: { cpu: "1" }, requests: { cpu: "2" } } },
    "FieldValueInvalid resources.requests",
  ),
  "a negative quantity": inContainer(
    { resources: { limits: { memory: "-1" } } },
    "FieldValueInvalid resources.limits[memory]",
  ),
  "an unknown resource": inContainer(
    { resources: { limits: { nonsense: "1" } } },
    "FieldValueInvalid resources.limits[nonsense]",
  ),
  "a probe without an action": inContainer(
    { livenessProbe: { periodSeconds: 5 } },
    "FieldValueRequired livenessProbe",
  ),
  "a probe to port 0": inContainer(
    { livenessProbe: { httpGet: { port: 0 } } },
    "FieldValueInvalid livenessProbe.httpGet.port",
  ),
  "a liveness probe that must succeed twice": inContainer(
    { livenessProbe: { httpGet: { port: 80 }, successThreshold: 2 } },
    "FieldValueInvalid livenessProbe.successThreshold",
  ),
  "a probe with a negative period": inContainer(
    { readinessProbe: { httpGet: { port: 80 }, periodSeconds: -1 } },
    "FieldValueInvalid readinessProbe.periodSeconds",
  ),
  "a mount of a volume that is not there": inContainer(
    { volumeMounts: [{ name: "none", mountPath: "/x" }] },
    "FieldValueNotFound volumeMounts[0].name",
  ),
  "a mount without a path": template(
    {
      volumes: [{ name: "a", emptyDir: {} }],
      containers: [container("app", { volumeMounts: [{ name: "a", mountPath: "" }] })],
    },
    `FieldValueRequired ${inTemplate}.containers[0].volumeMounts[0].mountPath`,
  ),
  "a preStop hook without an action": inContainer(
    { lifecycle: { preStop: {} } },
    "FieldValueRequired lifecycle.preStop",
  ),
  "a Deployment whose template does not match": inDeployment(
    { selector: { matchLabels: { app: "other" } } },
    "FieldValueInvalid spec.template.metadata.labels",
  ),
  "an unknown strategy": inDeployment(
    { strategy: { type: "Slowly" } },
    "FieldValueNotSupported spec.strategy",
  ),
  "a rollout that may neither surge nor lack": inDeployment(
    rolling({ maxSurge: 0, maxUnavailable: 0 }),
    "FieldValueInvalid spec.strategy.rollingUpdate.maxUnavailable",
  ),
  "a surge that is no percentage": inDeployment(
    rolling({ maxSurge: "many" }),
    "FieldValueInvalid spec.strategy.rollingUpdate.maxSurge",
  ),
  "a progress deadline not above minReadySeconds": inDeployment(
    { minReadySeconds: 10, progressDeadlineSeconds: 10 },
    "FieldValueInvalid spec.progressDeadlineSeconds",
  ),
  "a Service without ports": inService({ ports: [] }, "FieldValueRequired spec.ports"),
  "a Service port of 0": inService(
    { ports: [{ port: 0, targetPort: 80 }] },
    "FieldValueInvalid spec.ports[0].port",
  ),
  "two Service ports without names": inService(
    { ports: [{ port: 80 }, { port: 81 }] },
    "FieldValueRequired spec.ports[0].name",
    "FieldValueRequired spec.ports[1].name",
  ),
  "two Service ports of one name": inService(
    {
      ports: [
        { name: "a", port: 80 },
        { name: "a", port: 81 },
      ],
    },
    "FieldValueDuplicate spec.ports[1].name",
  ),
  "a Service port twice": inService(
    {
      ports: [
        { name: "a", port: 80 },
        { name: "b", port: 80 },
      ],
    },
    "FieldValueDuplicate spec.ports[1]",
  ),
  "an unknown Service type": inService({ type: "Magic" }, "FieldValueNotSupported spec.type"),
  "an external name with an address": inService(
    { type: "ExternalName", clusterIP: "None" },
    "FieldValueForbidden spec.clusterIPs",
    "FieldValueRequired spec.externalName",
  ),
  "a Service selector that is no label": inService(
    { selector: { app: "not a value" } },
    "FieldValueInvalid spec.selector",
  ),
  "an address that is none": inService({ clusterIP: "nowhere" }, "FieldValueInvalid spec.clusterIPs[0]"),
  "a budget with both bounds": inBudget({ minAvailable: 1, maxUnavailable: 1 }, "FieldValueInvalid spec"),
  "a budget with both bounds and a bad selector": inBudget(
    {
      minAvailable: 1,
      maxUnavailable: 1,
      selector: { matchExpressions: [{ key: "app", operator: "Near" }] },
    },
    "FieldValueInvalid spec",
    "FieldValueInvalid spec.selector.matchExpressions[0].operator",
  ),
  "a budget with a negative bound": inBudget({ minAvailable: -1 }, "FieldValueInvalid spec.minAvailable"),
  "a budget above 100%": inBudget({ maxUnavailable: "101%" }, "FieldValueInvalid spec.maxUnavailable"),
  "an unknown eviction policy": inBudget(
    { minAvailable: 1, unhealthyPodEvictionPolicy: "Never" },
    "FieldValueNotSupported spec.unhealthyPodEvictionPolicy",
  ),
  "a Lease of no duration": {
    kind: leases,
    manifest: lease("a", { leaseDurationSeconds: 0 }),
    causes: ["FieldValueInvalid spec.leaseDurationSeconds"],
  },
  "a runtime class without a handler": {
    kind: runtimeClasses,
    manifest: { metadata: { name: "contract-no-handler" }, handler: "" },
    causes: ["FieldValueRequired handler"],
  },
  "a namespace with a bad label": {
    kind: namespaces,
    manifest: { metadata: { name: "contract-bad-label", labels: { one: "not a value" } } },
    causes: ["FieldValueInvalid metadata.labels"],
  },
};

export const validationCases = [
  ...Object.entries(mistakes).map(([what, { kind, manifest, causes }]) =>
    contractCase(`invalid: ${what}`, async (trial) => {
      await invalid(trial.create(kind, manifest, { dryRun: true }), causes);
    }),
  ),
  contractCase("invalid: an apply is refused in the same words as a create", async (trial) => {
    const wrong = replicaSet("a", { replicas: -1 }, { containers: [container("app", { image: "" })] });
    const causes = [
      "FieldValueInvalid spec.replicas",
      "FieldValueRequired spec.template.spec.containers[0].image",
    ];
    const applied = await invalid(trial.apply(replicaSets, wrong), causes);
    const created = await invalid(trial.create(replicaSets, wrong), causes);
    assert.deepEqual(applied.causes, created.causes);
    assert.match(applied.message, /ReplicaSet\.apps "a" is invalid: \[spec\.replicas: Invalid value: -1: /);
  }),
  contractCase("invalid: two env of one name are taken by a create, not by an apply", async (trial) => {
    const env = [
      { name: "A", value: "1" },
      { name: "A", value: "2" },
    ];
    const twice = replicaSet("a", {}, { containers: [container("app", { env })] });
    await trial.create(replicaSets, twice, { dryRun: true });
    await refused(trial.apply(replicaSets, twice), {
      status: 500,
      reason: "",
      message: /duplicate entries for key \[name="A"\]/,
    });
  }),
  contractCase("invalid: a quantity that is none cannot even be read", async (trial) => {
    const resources = { limits: { cpu: "much" } };
    const wrong = replicaSet("a", {}, { containers: [container("app", { resources })] });
    await refused(trial.create(replicaSets, wrong), {
      status: 400,
      reason: "BadRequest",
      message: /quantities must match the regular expression/,
    });
  }),
  contractCase("invalid: data of a Secret that is not base64 cannot be read", async (trial) => {
    const wrong = { metadata: { name: "a" }, data: { key: "not base64!" } };
    await refused(trial.create(secrets, wrong), {
      status: 400,
      reason: "BadRequest",
      message: /illegal base64 data/,
    });
  }),
  contractCase("invalid: a pod of a runtime class that is not there is forbidden", async (trial) => {
    const runtimeClassName = trial.unique("none");
    await refused(trial.create(pods, pendingPod("a", { runtimeClassName })), {
      status: 403,
      reason: "Forbidden",
      message: new RegExp(`pod rejected: RuntimeClass "${runtimeClassName}" not found`),
    });
  }),
  contractCase("invalid: a pod of a service account that is not there is forbidden", async (trial) => {
    await refused(trial.create(pods, pendingPod("a", { serviceAccountName: "nobody" })), {
      status: 403,
      reason: "Forbidden",
      message: /error looking up service account .*\/nobody: serviceaccount "nobody" not found/,
    });
  }),
  contractCase("invalid: a handler of a runtime class cannot be changed", async (trial) => {
    const name = trial.unique("class");
    await trial.apply(runtimeClasses, { metadata: { name }, handler: "runsc" });
    trial.after(() => trial.delete(runtimeClasses, name));
    await invalid(trial.apply(runtimeClasses, { metadata: { name }, handler: "kata" }), [
      "FieldValueInvalid handler",
    ]);
  }),
  contractCase("invalid: the address of a Service cannot be changed", async (trial) => {
    await trial.apply(services, service("a"));
    await invalid(trial.apply(services, service("a", { clusterIP: "None" }), { force: true }), [
      "FieldValueInvalid spec.clusterIPs[0]",
    ]);
  }),
  contractCase("invalid: the selector of an apps/v1 Deployment cannot be changed", async (trial) => {
    await trial.apply(appsDeployments, appsDeployment("a", { paused: true }));
    const labels = { app: "other" };
    const spec = {
      paused: true,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: podSpec() },
    };
    await invalid(trial.apply(appsDeployments, appsDeployment("a", spec), { force: true }), [
      "FieldValueInvalid spec.selector",
    ]);
  }),
  contractCase("valid: the selector of a disruption budget can be changed", async (trial) => {
    await trial.apply(podDisruptionBudgets, disruptionBudget("a", { minAvailable: 1 }));
    const selector = { matchLabels: { app: "other" } };
    await trial.apply(podDisruptionBudgets, disruptionBudget("a", { minAvailable: 1, selector }));
  }),
];
