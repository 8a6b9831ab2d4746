// The command lines and configuration files of a real node: containerd with runc and gVisor, the kubelet and kube-proxy.

import { join } from "node:path";
import type { ComponentCommand } from "../cluster/components.ts";
import type { Certificates } from "./certificates.ts";

export interface NodeLayout {
  readonly dir: string;
  readonly binariesDir: string;
  readonly name: string;
  readonly address: string;
  /** The control group that all pods are below. */
  readonly cgroup: string;
  readonly certificates: Certificates;
  readonly kubeProxyKubeconfigPath: string;
}

export const containerdSocket = "/run/containerd/containerd.sock";
export const sandboxImage = "krane.test/pause:1";
/** Where Debian installs CNI plugins. */
export const cniPluginDir = "/usr/lib/cni";
const podRange = "10.244.0.0/16";

/** The configuration files by name, in `dir`. JSON is YAML too. */
export function nodeFiles(layout: NodeLayout): Readonly<Record<string, string>> {
  return {
    "containerd.toml": containerdConfig(layout),
    "cni/10-pods.conflist": JSON.stringify(podNetwork),
    "runsc.toml": '[runsc_config]\n  platform = "systrap"\n',
    "kubelet.json": JSON.stringify(kubeletConfig(layout)),
    "kube-proxy.json": JSON.stringify(kubeProxyConfig(layout)),
    // Pods that do not use the cluster's DNS get no DNS.
    "resolv.conf": "",
  };
}

export function containerd({ dir, binariesDir }: NodeLayout): ComponentCommand {
  const file = join(binariesDir, "containerd");
  return { name: "containerd", file, args: ["--config", join(dir, "containerd.toml")] };
}

export function kubelet({ dir, binariesDir, name, address }: NodeLayout): ComponentCommand {
  const labels = [
    "karpenter.sh/nodepool=untrusted",
    "node-class=sentinel",
    "topology.kubernetes.io/zone=zone-a",
    "topology.kubernetes.io/region=test-region",
  ];
  return {
    name: "kubelet",
    file: join(binariesDir, "kubelet"),
    args: [
      `--config=${join(dir, "kubelet.json")}`,
      `--kubeconfig=${join(dir, "kubelet.kubeconfig")}`,
      `--root-dir=${join(dir, "kubelet")}`,
      `--hostname-override=${name}`,
      `--node-ip=${address}`,
      `--node-labels=${labels.join(",")}`,
    ],
  };
}

export function kubeProxy({ dir, binariesDir }: NodeLayout): ComponentCommand {
  const file = join(binariesDir, "kube-proxy");
  return { name: "kube-proxy", file, args: [`--config=${join(dir, "kube-proxy.json")}`] };
}

// Lowering the OOM score of a process needs a capability that a container may lack.
function containerdConfig({ dir, binariesDir }: NodeLayout): string {
  const runtime = "plugins.'io.containerd.cri.v1.runtime'";
  const images = "plugins.'io.containerd.cri.v1.images'";
  const text = JSON.stringify;
  return `version = 4
root = ${text(join(dir, "containerd"))}
state = "/run/containerd"
[grpc]
address = ${text(containerdSocket)}
[${images}.pinned_images]
sandbox = ${text(sandboxImage)}
[${runtime}]
restrict_oom_score_adj = true
disable_apparmor = true
[${runtime}.cni]
bin_dirs = [${text(cniPluginDir)}]
conf_dir = ${text(join(dir, "cni"))}
[${runtime}.containerd]
default_runtime_name = "runc"
[${runtime}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
runtime_path = ${text(join(binariesDir, "containerd-shim-runc-v2"))}
[${runtime}.containerd.runtimes.runsc]
runtime_type = "io.containerd.runsc.v1"
runtime_path = ${text(join(binariesDir, "containerd-shim-runsc-v1"))}
[${runtime}.containerd.runtimes.runsc.options]
TypeUrl = "io.containerd.runsc.v1.options"
ConfigPath = ${text(join(dir, "runsc.toml"))}
[plugins.'io.containerd.nri.v1.nri']
disable = true
[plugins.'io.containerd.internal.v1.opt']
path = ${text(join(dir, "opt"))}
`;
}

// Routed, not bridged: between two pods on one bridge, answers of a Service would not pass the rules that translated the
// request.
const podNetwork = {
  cniVersion: "1.0.0",
  name: "pods",
  plugins: [
    {
      type: "ptp",
      ipam: { type: "host-local", ranges: [[{ subnet: podRange }]], routes: [{ dst: "0.0.0.0/0" }] },
    },
    { type: "portmap", capabilities: { portMappings: true } },
  ],
};

function kubeletConfig({ dir, address, cgroup, certificates }: NodeLayout): unknown {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: certificates.authority },
    },
    authorization: { mode: "Webhook" },
    tlsCertFile: certificates.kubeletServer.certificate,
    tlsPrivateKeyFile: certificates.kubeletServer.key,
    containerRuntimeEndpoint: `unix://${containerdSocket}`,
    cgroupDriver: "cgroupfs",
    cgroupRoot: `/${cgroup}`,
    failCgroupV1: false,
    failSwapOn: false,
    oomScoreAdj: 0,
    clusterDNS: [address],
    clusterDomain: "cluster.local",
    resolvConf: join(dir, "resolv.conf"),
    healthzPort: 0,
    maxPods: 200,
    // The disk belongs to the machine, and how full it is to its owner.
    evictionHard: { "memory.available": "100Mi" },
    imageGCHighThresholdPercent: 100,
    // Renewed every two seconds, so that a dead node is noticed soon; see nodeDeadAfter in components.ts.
    nodeLeaseDurationSeconds: 8,
    // The defaults (5 events and 50 calls a second) are for many nodes.
    eventRecordQPS: 0,
    kubeAPIQPS: 200,
    kubeAPIBurst: 400,
    serializeImagePulls: false,
  };
}

function kubeProxyConfig({ kubeProxyKubeconfigPath: kubeconfig, name }: NodeLayout): unknown {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "nftables",
    clusterCIDR: podRange,
    hostnameOverride: name,
    clientConnection: { kubeconfig },
    // These would be set for the whole machine.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
    oomScoreAdj: 0,
  };
}
