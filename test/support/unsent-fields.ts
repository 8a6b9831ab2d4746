// Fields that krane does not send, of every kind that it writes: what a person, a program or an attacker may add.
import type { Json } from "./drift-trial.ts";

/** `container`: the name of krane's container. */
export function unsentPodFields(container: string): readonly Json[] {
  const pod = (fields: Json): Json => ({ spec: { template: { spec: fields } } });
  const inContainer = (fields: Json): Json => pod({ containers: [{ name: container, ...fields }] });
  const template = (metadata: Json): Json => ({ spec: { template: { metadata } } });
  return [
    ...[
      { hostNetwork: true },
      { hostPID: true },
      { hostIPC: true },
      { shareProcessNamespace: true },
      { hostUsers: true },
      { hostname: "other" },
      { subdomain: "other" },
      { setHostnameAsFQDN: true },
      { nodeName: "node-1" },
      { nodeSelector: { disk: "ssd" } },
      { priorityClassName: "system-cluster-critical" },
      { preemptionPolicy: "Never" },
      { serviceAccountName: "builder" },
      { dnsPolicy: "Default" },
      { dnsConfig: { nameservers: ["1.1.1.1"] } },
      { schedulerName: "mine" },
      { terminationGracePeriodSeconds: 1 },
      { securityContext: { runAsUser: 0 } },
      { securityContext: { sysctls: [{ name: "kernel.shm_rmid_forced", value: "0" }] } },
      { hostAliases: [{ ip: "10.0.0.1", hostnames: ["db"] }] },
      { readinessGates: [{ conditionType: "example.com/gate" }] },
      { imagePullSecrets: [{ name: "others" }] },
      { volumes: [{ name: "host", hostPath: { path: "/" } }] },
      { volumes: [{ name: "scratch", emptyDir: {} }] },
      { initContainers: [{ name: "first", image: "evil" }] },
      { containers: [{ name: "evil", image: "evil", securityContext: { privileged: true } }] },
      { affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [term] } } },
    ].map(pod),
    ...[
      { securityContext: { privileged: true } },
      { securityContext: { capabilities: { add: ["SYS_ADMIN"] } } },
      { stdin: true },
      { tty: true },
      { workingDir: "/tmp" },
      { env: [{ name: "LD_PRELOAD", value: "evil.so" }] },
      { envFrom: [{ configMapRef: { name: "others" } }] },
      { lifecycle: { postStart: { exec: { command: ["evil"] } } } },
      { startupProbe: { tcpSocket: { port: 1 } } },
      { terminationMessagePolicy: "FallbackToLogsOnError" },
      { terminationMessagePath: "/dev/other" },
      { resources: { limits: { "ephemeral-storage": "1Gi" } } },
      { livenessProbe: { terminationGracePeriodSeconds: 5 } },
      { readinessProbe: { httpGet: { httpHeaders: [{ name: "X", value: "1" }] } } },
      { resizePolicy: [{ resourceName: "cpu", restartPolicy: "RestartContainer" }] },
    ].map(inContainer),
    template({ annotations: { "dev.gvisor.spec.mount.x": "1" } }),
    template({ labels: { "unkey.com/extra": "1" } }),
    pod({
      volumes: [{ name: "both", emptyDir: {} }],
      containers: [{ name: container, volumeMounts: [{ name: "both", mountPath: "/both" }] }],
    }),
  ];
}

const term = {
  weight: 1,
  podAffinityTerm: { topologyKey: "zone", labelSelector: { matchLabels: { a: "b" } } },
};

export const unsentDeploymentFields: readonly Json[] = [
  { spec: { paused: true } },
  { spec: { progressDeadlineSeconds: 100 } },
  { spec: { revisionHistoryLimit: 0 } },
];

export const unsentServiceFields: readonly Json[] = [
  { spec: { externalIPs: ["1.2.3.4"] } },
  { spec: { sessionAffinity: "ClientIP" } },
  { spec: { sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: 9 } } } },
  { spec: { publishNotReadyAddresses: true } },
  { spec: { internalTrafficPolicy: "Local" } },
  { spec: { trafficDistribution: "PreferClose" } },
  { spec: { selector: { extra: "1" } } },
  { spec: { type: "NodePort" } },
  { spec: { type: "LoadBalancer", loadBalancerSourceRanges: ["0.0.0.0/0"] } },
];

export const unsentPolicyFields: readonly Json[] = [
  { spec: { enableDefaultDeny: { ingress: false } } },
  { spec: { description: "edited" } },
  { spec: { endpointSelector: { matchLabels: { only: "this" } } } },
  { spec: { ingressDeny: [{ fromEntities: ["all"] }] } },
  { spec: { egress: [{ toEntities: ["all"] }] } },
  { spec: { log: { value: "x" } } },
];
