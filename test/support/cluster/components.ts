// The command lines of a control plane on the loopback interface. Everything is
// relative to one folder, which is also the working directory, so that paths
// stay short enough for a Unix socket on every system.

import { join } from "node:path";
import type { Certificates } from "../node/certificates.ts";
import type { Identities } from "./credentials.ts";

export interface ControlPlaneLayout {
  readonly dir: string;
  readonly binariesDir: string;
  readonly port: number;
  /** Where the fake nodes serve logs. */
  readonly kubeletPort: number;
  readonly identities: Identities;
  /** Present when a real node joins. Then everything is reachable from its pods. */
  readonly realNode?: { readonly address: string; readonly certificates: Certificates };
}

export interface ComponentCommand {
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
}

export const files = {
  auditLog: "audit.log",
  auditPolicy: "audit-policy.json",
  certDir: "certs",
  servingCertificate: join("certs", "apiserver.crt"),
  serviceAccountKey: "service-account.key",
  stages: "kwok-stages.yaml",
  tokens: "tokens.csv",
} as const;

// A socket instead of ports: nobody else can take it between choosing and
// binding, and no other user of the machine can reach the store behind RBAC.
// The API server's own check of etcd understands only the relative form.
const etcdUrl = "unix://etcd.sock";

export function etcd({ binariesDir }: ControlPlaneLayout): ComponentCommand {
  return command(binariesDir, "etcd", [
    "--data-dir=etcd",
    // The store lives no longer than the cluster, so there is no crash to survive.
    "--unsafe-no-fsync",
    `--listen-client-urls=${etcdUrl}`,
    `--advertise-client-urls=${etcdUrl}`,
    "--listen-peer-urls=unix://etcd-peer.sock",
    "--initial-advertise-peer-urls=unix://etcd-peer.sock",
    "--initial-cluster=default=unix://etcd-peer.sock",
    "--log-level=warn",
  ]);
}

export function apiServer(layout: ControlPlaneLayout): ComponentCommand {
  return command(layout.binariesDir, "kube-apiserver", [
    `--etcd-servers=${etcdUrl}`,
    ...(layout.realNode === undefined ? loopbackOnly : reachableFromPods(layout.realNode)),
    `--secure-port=${layout.port}`,
    "--service-cluster-ip-range=10.96.0.0/16",
    `--token-auth-file=${files.tokens}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${files.serviceAccountKey}`,
    `--service-account-signing-key-file=${files.serviceAccountKey}`,
    `--audit-policy-file=${files.auditPolicy}`,
    `--audit-log-path=${files.auditLog}`,
    // A rotated file would take counted calls away from a running test.
    "--audit-log-maxsize=10000",
    "--profiling=false",
  ]);
}

const loopbackOnly = [
  "--bind-address=127.0.0.1",
  "--advertise-address=127.0.0.1",
  `--cert-dir=${files.certDir}`,
  // A loopback address is refused as an endpoint of the `kubernetes` Service.
  "--endpoint-reconciler-type=none",
  "--authorization-mode=RBAC",
];

function reachableFromPods({ address, certificates }: NonNullable<ControlPlaneLayout["realNode"]>): string[] {
  const { authority, apiServer: own, apiServerAsClient: client } = certificates;
  return [
    "--bind-address=0.0.0.0",
    `--advertise-address=${address}`,
    `--tls-cert-file=${own.certificate}`,
    `--tls-private-key-file=${own.key}`,
    `--client-ca-file=${authority}`,
    "--authorization-mode=Node,RBAC",
    "--enable-admission-plugins=NodeRestriction",
    `--kubelet-certificate-authority=${authority}`,
    `--kubelet-client-certificate=${client.certificate}`,
    `--kubelet-client-key=${client.key}`,
    "--kubelet-preferred-address-types=InternalIP",
  ];
}

/** Verifies the API server's certificate. */
export function authorityPath({ dir, realNode }: ControlPlaneLayout): string {
  return realNode?.certificates.authority ?? join(dir, files.servingCertificate);
}

// The defaults (20 calls a second) would let the controllers, not krane, decide
// how long a test with many pods takes.
const unthrottled = ["--kube-api-qps=1000", "--kube-api-burst=2000"];
// By default a node that does not answer counts as dead after 50 seconds, which is long for a test.
const nodeDeadAfter = ["--node-monitor-grace-period=16s", "--node-monitor-period=2s"];
const alone = ["--leader-elect=false", "--secure-port=0", "--profiling=false"];

export function controllerManager(layout: ControlPlaneLayout): ComponentCommand {
  const { binariesDir, identities } = layout;
  return command(binariesDir, "kube-controller-manager", [
    `--kubeconfig=${identities.controllerManager.kubeconfigPath}`,
    `--service-account-private-key-file=${files.serviceAccountKey}`,
    `--root-ca-file=${authorityPath(layout)}`,
    ...(layout.realNode === undefined ? [] : nodeDeadAfter),
    ...unthrottled,
    ...alone,
  ]);
}

export function scheduler({ binariesDir, identities }: ControlPlaneLayout): ComponentCommand {
  return command(binariesDir, "kube-scheduler", [
    `--kubeconfig=${identities.scheduler.kubeconfigPath}`,
    ...unthrottled,
    ...alone,
  ]);
}

export function kwok({ binariesDir, identities, kubeletPort }: ControlPlaneLayout): ComponentCommand {
  return command(binariesDir, "kwok", [
    `--kubeconfig=${identities.kwok.kubeconfigPath}`,
    `--config=${files.stages}`,
    "--manage-all-nodes=true",
    "--node-ip=127.0.0.1",
    `--node-port=${kubeletPort}`,
    `--server-address=127.0.0.1:${kubeletPort}`,
    // Renewed leases keep the nodes Ready; without them their pods are evicted
    // after some minutes.
    "--node-lease-duration-seconds=40",
  ]);
}

function command(binariesDir: string, name: string, args: readonly string[]): ComponentCommand {
  return { name, file: join(binariesDir, name), args };
}
