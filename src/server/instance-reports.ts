// What was reported of the deployments of one region. An address belongs to one
// instance at a time: Kubernetes gives the IP of a pod that is gone to the next one,
// often before anybody has reported the first as gone, and traffic for one customer's
// deployment must not be sent to another's pod.
import type { DeploymentReport, Instance } from "./store.ts";

export class InstanceReports {
  private readonly byDeployment = new Map<string, DeploymentReport>();
  private readonly deploymentByAddress = new Map<string, string>();

  get(deploymentId: string): DeploymentReport | undefined {
    return this.byDeployment.get(deploymentId);
  }

  replace(deploymentId: string, report: DeploymentReport): void {
    this.delete(deploymentId);
    const instances = withoutRepetition(report.instances);
    for (const { address } of instances) {
      // Pods that never got an IP have no address to fight over.
      if (address === "") continue;
      this.releaseAddress(address);
      this.deploymentByAddress.set(address, deploymentId);
    }
    this.byDeployment.set(deploymentId, { ...report, instances });
  }

  delete(deploymentId: string): void {
    for (const { address } of this.byDeployment.get(deploymentId)?.instances ?? []) {
      this.deploymentByAddress.delete(address);
    }
    this.byDeployment.delete(deploymentId);
  }

  private releaseAddress(address: string): void {
    const holder = this.deploymentByAddress.get(address);
    const report = holder === undefined ? undefined : this.byDeployment.get(holder);
    if (holder === undefined || report === undefined) return;
    const instances = report.instances.filter((instance) => instance.address !== address);
    this.byDeployment.set(holder, { ...report, instances });
  }
}

/** One instance per pod and per address; of two, the later one is the newer. */
export function withoutRepetition(instances: readonly Instance[]): Instance[] {
  const byPod = new Map<string, Instance>();
  const podByAddress = new Map<string, string>();
  for (const instance of instances) {
    const { k8sName, address } = instance;
    const holder = address === "" ? undefined : podByAddress.get(address);
    if (holder !== undefined) byPod.delete(holder);
    byPod.set(k8sName, instance);
    if (address !== "") podByAddress.set(address, k8sName);
  }
  return [...byPod.values()];
}
