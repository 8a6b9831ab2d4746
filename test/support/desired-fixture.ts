// The desired state that an agent has in memory, without the agent: what the stream said, and after a restart
// what live ReplicaSets say of themselves.

import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import type { DesiredMessage, Want } from "../../src/engine/desired-message.ts";
import { DesiredStore } from "../../src/engine/desired-store.ts";
import { restoreOrder } from "../../src/engine/orders.ts";
import { desiredDeployments } from "../../src/kinds/deployment/desired-deployments.ts";
import { projectReplicaSet } from "../../src/kinds/deployment/projections.ts";
import type { DeploymentSpec } from "../../src/kinds/deployment/spec.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import { testSeal } from "./test-seal.ts";

export class DesiredFixture {
  private readonly streamed: DesiredMessage<DeploymentSpec>[] = [];
  private store = new DesiredStore<DeploymentSpec>(createSystemClock());

  find(key: string) {
    return desiredDeployments(this.store).find(key);
  }

  /** The stream brings this deployment. */
  apply(spec: DeploymentSpec): void {
    this.receive(spec, { kind: "apply", spec });
  }

  /** The stream takes it back. */
  delete(spec: DeploymentSpec): void {
    this.receive(spec, { kind: "delete" });
  }

  /** As an agent starts: first what is kept on live objects, then the stream from its beginning. */
  restart(live: readonly ReplicaSet[]): void {
    this.store = new DesiredStore(createSystemClock());
    for (const replicaSet of live) {
      const { namespace, name, deploymentId: id, ordered } = projectReplicaSet(replicaSet, testSeal);
      const order = restoreOrder(kinds.deployment, { namespace, name, id, ordered }, { registries: [] });
      if (order !== undefined) this.store.restore(order);
    }
    for (const message of this.streamed) this.store.receive(message);
  }

  private receive({ namespace, name, deploymentId }: DeploymentSpec, want: Want<DeploymentSpec>): void {
    const version = BigInt(this.streamed.length + 1);
    const message = { key: `${namespace}/${name}`, id: deploymentId, version, want };
    this.streamed.push(message);
    this.store.receive(message);
  }
}
