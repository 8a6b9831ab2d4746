// The desired state that an agent has in memory, without the agent: what the stream said.
import { createSystemClock } from "../../src/concurrency/clock.ts";
import type { DesiredMessage, Want } from "../../src/engine/desired-message.ts";
import { DesiredStore } from "../../src/engine/desired-store.ts";
import { desiredDeployments } from "../../src/kinds/deployment/desired-deployments.ts";
import type { DeploymentSpec } from "../../src/kinds/deployment/spec.ts";

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

  /** As an agent starts: the stream from its beginning. Nothing is read from live objects. */
  restart(): void {
    this.store = new DesiredStore(createSystemClock());
    for (const message of this.streamed) this.store.receive(message);
  }

  private receive({ namespace, name, deploymentId }: DeploymentSpec, want: Want<DeploymentSpec>): void {
    const version = BigInt(this.streamed.length + 1);
    const message = { key: `${namespace}/${name}`, id: deploymentId, version, want };
    this.streamed.push(message);
    this.store.receive(message);
  }
}
