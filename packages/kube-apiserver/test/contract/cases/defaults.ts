// What the server fills in, kind by kind: a client that compares what it sent with what is there
// has to know all of it.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import {
  appsDeployment,
  appsDeployments,
  container,
  disruptionBudget,
  image,
  lease,
  leases,
  pendingPod,
  podDisruptionBudgets,
  pods,
  replicaSet,
  replicaSets,
  runtimeClasses,
  secret,
  secrets,
  service,
  services,
} from "../fixtures.ts";
import { at } from "../manifest.ts";
import type { Trial } from "../trial.ts";

type Fields = Readonly<Record<string, unknown>>;

const tolerations = [{ operator: "Exists" }];

const filledContainer = {
  name: "app",
  image,
  imagePullPolicy: "IfNotPresent",
  resources: {},
  terminationMessagePath: "/dev/termination-log",
  terminationMessagePolicy: "File",
};

const filledPodSpec = {
  containers: [filledContainer],
  dnsPolicy: "ClusterFirst",
  restartPolicy: "Always",
  schedulerName: "default-scheduler",
  securityContext: {},
  terminationGracePeriodSeconds: 30,
  tolerations,
};

async function templateOf(trial: Trial, spec: Fields): Promise<unknown> {
  return at(await trial.apply(replicaSets, replicaSet("a", {}, spec)), "spec.template.spec");
}

async function containerOf(trial: Trial, fields: Fields): Promise<unknown> {
  return at(await templateOf(trial, { containers: [container("app", fields)] }), "containers.0");
}

export const defaultCases = [
  contractCase("defaults: a ReplicaSet", async (trial) => {
    const applied = await trial.apply(replicaSets, replicaSet("a", { replicas: undefined }));
    assert.deepEqual(at(applied, "spec"), {
      replicas: 1,
      selector: { matchLabels: { app: "a" } },
      template: { metadata: { labels: { app: "a" } }, spec: filledPodSpec },
    });
  }),
  contractCase("defaults: a ReplicaSet does not take labels from its template", async (trial) => {
    const applied = await trial.apply(replicaSets, { ...replicaSet("a"), metadata: { name: "a" } });
    assert.equal(applied.metadata?.labels, undefined);
  }),
  contractCase("defaults: an apps/v1 Deployment", async (trial) => {
    const applied = await trial.apply(
      appsDeployments,
      appsDeployment("a", { replicas: undefined, paused: true }),
    );
    assert.deepEqual(at(applied, "spec"), {
      paused: true,
      replicas: 1,
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: "25%" } },
      selector: { matchLabels: { app: "a" } },
      template: { metadata: { labels: { app: "a" } }, spec: filledPodSpec },
    });
  }),
  contractCase("defaults: strategy Recreate has no rolling update", async (trial) => {
    const spec = { strategy: { type: "Recreate" }, paused: true };
    const applied = await trial.apply(appsDeployments, appsDeployment("a", spec));
    assert.deepEqual(at(applied, "spec.strategy"), { type: "Recreate" });
  }),
  contractCase("defaults: a Service", async (trial) => {
    const applied = await trial.apply(services, service("a"));
    const { clusterIP, clusterIPs, ...spec } = at(applied, "spec") as Fields;
    assert.match(String(clusterIP), /^\d+\.\d+\.\d+\.\d+$/);
    assert.deepEqual(clusterIPs, [clusterIP]);
    assert.deepEqual(spec, {
      internalTrafficPolicy: "Cluster",
      ipFamilies: ["IPv4"],
      ipFamilyPolicy: "SingleStack",
      ports: [{ port: 80, protocol: "TCP", targetPort: 80 }],
      selector: { app: "a" },
      sessionAffinity: "None",
      type: "ClusterIP",
    });
    assert.deepEqual(at(applied, "status"), { loadBalancer: {} });
  }),
  contractCase("defaults: Services get addresses of their own and keep them", async (trial) => {
    const one = await trial.apply(services, service("a"));
    const two = await trial.apply(services, service("b"));
    assert.notEqual(at(one, "spec.clusterIP"), at(two, "spec.clusterIP"));
    const changed = await trial.apply(services, service("a", { ports: [{ port: 81 }] }));
    assert.equal(at(changed, "spec.clusterIP"), at(one, "spec.clusterIP"));
  }),
  contractCase("defaults: a headless Service has the address None", async (trial) => {
    const applied = await trial.apply(services, service("a", { clusterIP: "None" }));
    assert.equal(at(applied, "spec.clusterIP"), "None");
    assert.deepEqual(at(applied, "spec.clusterIPs"), ["None"]);
  }),
  contractCase("defaults: a Service that is no longer exposed loses what came with it", async (trial) => {
    const exposed = await trial.apply(services, service("a", { type: "LoadBalancer" }));
    assert.equal(at(exposed, "spec.externalTrafficPolicy"), "Cluster");
    assert.equal(at(exposed, "spec.allocateLoadBalancerNodePorts"), true);
    assert.ok(at(exposed, "spec.ports.0.nodePort"));
    const onNodes = await trial.apply(services, service("a", { type: "NodePort" }));
    assert.equal(at(onNodes, "spec.allocateLoadBalancerNodePorts"), undefined);
    assert.equal(at(onNodes, "spec.ports.0.nodePort"), at(exposed, "spec.ports.0.nodePort"));
    const inside = await trial.apply(services, service("a"));
    assert.equal(at(inside, "spec.externalTrafficPolicy"), undefined);
    assert.equal(at(inside, "spec.ports.0.nodePort"), undefined);
    assert.equal(at(inside, "spec.clusterIP"), at(exposed, "spec.clusterIP"));
  }),
  contractCase("defaults: a Secret is Opaque", async (trial) => {
    assert.equal(at(await trial.apply(secrets, secret("a")), "type"), "Opaque");
  }),
  contractCase("defaults: a disruption budget and a Lease have none", async (trial) => {
    const budget = await trial.apply(podDisruptionBudgets, disruptionBudget("a", { maxUnavailable: 1 }));
    assert.deepEqual(at(budget, "spec"), { maxUnavailable: 1, selector: { matchLabels: { app: "a" } } });
    const held = await trial.apply(leases, lease("a"));
    assert.deepEqual(at(held, "spec"), { holderIdentity: "somebody", leaseDurationSeconds: 15 });
  }),
  contractCase("defaults: an image without a tag, or with latest, is pulled always", async (trial) => {
    const policy = async (name: string, tagged: string) => {
      const spec = { containers: [{ name: "app", image: tagged }] };
      const applied = await trial.apply(replicaSets, replicaSet(name, {}, spec));
      return at(applied, "spec.template.spec.containers.0.imagePullPolicy");
    };
    assert.equal(await policy("a", "registry.example/app"), "Always");
    assert.equal(await policy("b", "registry.example/app:latest"), "Always");
    assert.equal(await policy("c", "registry.example:5000/app:1"), "IfNotPresent");
    const digest = `registry.example/app@sha256:${"0".repeat(64)}`;
    assert.equal(await policy("d", digest), "IfNotPresent");
  }),
  contractCase("defaults: probes", async (trial) => {
    const filled = { failureThreshold: 3, periodSeconds: 10, successThreshold: 1, timeoutSeconds: 1 };
    const made = await containerOf(trial, {
      livenessProbe: { httpGet: { port: 8080 } },
      readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 5 },
    });
    assert.deepEqual(at(made, "livenessProbe"), {
      ...filled,
      httpGet: { path: "/", port: 8080, scheme: "HTTP" },
    });
    assert.deepEqual(at(made, "readinessProbe"), { ...filled, periodSeconds: 5, tcpSocket: { port: 8080 } });
  }),
  contractCase("defaults: container ports are TCP", async (trial) => {
    const made = await containerOf(trial, { ports: [{ containerPort: 8080 }] });
    assert.deepEqual(at(made, "ports"), [{ containerPort: 8080, protocol: "TCP" }]);
  }),
  contractCase("defaults: limits become requests in a pod, not in a template", async (trial) => {
    const resources = { limits: { cpu: "500m", memory: "64Mi" }, requests: { cpu: "100m" } };
    const containers = [container("app", { resources })];
    assert.deepEqual(at(await templateOf(trial, { containers }), "containers.0.resources"), resources);
    const made = await trial.create(pods, pendingPod("a", { containers }));
    assert.deepEqual(at(made, "spec.containers.0.resources"), {
      limits: { cpu: "500m", memory: "64Mi" },
      requests: { cpu: "100m", memory: "64Mi" },
    });
  }),
  contractCase("defaults: quantities are written in their canonical form", async (trial) => {
    const limits = { cpu: "0.5", memory: "1024Mi", "ephemeral-storage": "1000000k" };
    const made = await containerOf(trial, { resources: { limits } });
    assert.deepEqual(at(made, "resources.limits"), { cpu: "500m", memory: "1Gi", "ephemeral-storage": "1G" });
  }),
  contractCase("defaults: the same quantity in another spelling changes nothing", async (trial) => {
    const spelled = (cpu: string) =>
      replicaSet("a", {}, { containers: [container("app", { resources: { limits: { cpu } } })] });
    const first = await trial.apply(replicaSets, spelled("1"));
    const again = await trial.apply(replicaSets, spelled("1000m"));
    assert.equal(again.metadata?.generation, first.metadata?.generation);
  }),
  contractCase("defaults: env from a field names the API version", async (trial) => {
    const env = [{ name: "A", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }];
    const made = await containerOf(trial, { env });
    const fieldRef = { apiVersion: "v1", fieldPath: "metadata.name" };
    assert.deepEqual(at(made, "env"), [{ name: "A", valueFrom: { fieldRef } }]);
  }),
  contractCase("defaults: volumes", async (trial) => {
    const volumes = [
      { name: "one", secret: { secretName: "a" } },
      { name: "two", emptyDir: {} },
      { name: "three", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } },
      { name: "four" },
    ];
    const made = await templateOf(trial, { volumes });
    assert.deepEqual(at(made, "volumes"), [
      { name: "one", secret: { secretName: "a", defaultMode: 420 } },
      { name: "two", emptyDir: {} },
      {
        name: "three",
        projected: {
          defaultMode: 420,
          sources: [{ serviceAccountToken: { path: "token", expirationSeconds: 3600 } }],
        },
      },
      { name: "four", emptyDir: {} },
    ]);
  }),
  contractCase("defaults: a pod's service account stands in both of its fields", async (trial) => {
    const made = await templateOf(trial, { serviceAccountName: "somebody" });
    assert.equal(at(made, "serviceAccount"), "somebody");
  }),
  contractCase("defaults: a pod gets its account, priority, links and mount", async (trial) => {
    const made = await trial.create(pods, pendingPod("a"));
    const spec = at(made, "spec") as Fields;
    assert.equal(spec["serviceAccountName"], "default");
    assert.equal(spec["serviceAccount"], "default");
    assert.equal(spec["enableServiceLinks"], true);
    assert.equal(spec["priority"], 0);
    assert.equal(spec["preemptionPolicy"], "PreemptLowerPriority");
    assert.match(String(at(spec, "volumes.0.name")), /^kube-api-access-[a-z0-9]{5}$/);
    const mountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
    assert.equal(at(spec, "containers.0.volumeMounts.0.mountPath"), mountPath);
    assert.equal(at(spec, "containers.0.volumeMounts.0.readOnly"), true);
  }),
  contractCase("defaults: a pod that wants no token gets no mount", async (trial) => {
    const made = await trial.create(pods, pendingPod("a", { automountServiceAccountToken: false }));
    assert.equal(at(made, "spec.volumes"), undefined);
    assert.equal(at(made, "spec.containers.0.volumeMounts"), undefined);
  }),
  contractCase("defaults: a pod tolerates lost nodes for five minutes", async (trial) => {
    const made = await trial.create(pods, pendingPod("a", { tolerations: undefined }));
    const lost = (state: string) => ({
      effect: "NoExecute",
      key: `node.kubernetes.io/${state}`,
      operator: "Exists",
      tolerationSeconds: 300,
    });
    assert.deepEqual(at(made, "spec.tolerations"), [lost("not-ready"), lost("unreachable")]);
  }),
  contractCase("defaults: a pod's quality of service follows its resources", async (trial) => {
    const quality = async (name: string, resources: Fields) => {
      const made = await trial.create(
        pods,
        pendingPod(name, { containers: [container("app", { resources })] }),
      );
      return at(made, "status.qosClass");
    };
    const room = { cpu: "1", memory: "1Gi" };
    assert.equal(await quality("a", { limits: room }), "Guaranteed");
    assert.equal(await quality("b", { limits: room, requests: { cpu: "500m" } }), "Burstable");
    assert.equal(await quality("c", {}), "BestEffort");
  }),
  contractCase("defaults: preStop and termination grace stay as they were sent", async (trial) => {
    const lifecycle = { preStop: { exec: { command: ["/bin/sh", "-c", "kill -TERM 1"] } } };
    const made = await templateOf(trial, {
      terminationGracePeriodSeconds: 60,
      containers: [container("app", { lifecycle })],
    });
    assert.equal(at(made, "terminationGracePeriodSeconds"), 60);
    assert.deepEqual(at(made, "containers.0.lifecycle"), lifecycle);
  }),
  contractCase("defaults: a runtime class only has its handler", async (trial) => {
    const name = trial.unique("class");
    const applied = await trial.apply(runtimeClasses, { metadata: { name }, handler: "runsc" });
    trial.after(() => trial.delete(runtimeClasses, name));
    assert.equal(at(applied, "handler"), "runsc");
    const extra = Object.keys(applied).filter(
      (key) => !["apiVersion", "kind", "metadata", "handler"].includes(key),
    );
    assert.deepEqual(extra, []);
  }),
];
