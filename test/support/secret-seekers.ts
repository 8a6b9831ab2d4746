// Pods that want secrets, theirs and others', on any Kubernetes: deployments as krane applies them, impostors,
// and the tokens that each of them can get.
import assert from "node:assert/strict";
import type { Pod } from "kubernetes-types/core/v1.js";
import type { ApplyDeployment } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { desiredReplicaSet } from "../../src/kinds/deployment/pod-template.ts";
import type { DeploymentSpec } from "../../src/kinds/deployment/spec.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { listAll } from "../../src/kube/list-all.ts";
import { pods, replicaSets, serviceAccounts, tokenRequests } from "../../src/kube/resources.ts";
import { labelKeys } from "../../src/model/labels.ts";
import { applyDeployment, specOf } from "./deployment-messages.ts";
import { DesiredFixture } from "./desired-fixture.ts";
import { eventually } from "./eventually.ts";
import { audience, sealedBlob } from "./served-secrets.ts";

const never = new AbortController().signal;
export const environmentId = "env_a";
export const otherEnvironmentId = "env_b";
export const variables = { GREETING: "hello", EMPTY: "" };

export class SecretSeekers {
  readonly api: KubeApi;
  readonly namespace: string;
  /** What the agent knows to be wanted. */
  readonly desired: DesiredFixture;

  constructor(api: KubeApi, namespace: string, desired = new DesiredFixture()) {
    this.api = api;
    this.namespace = namespace;
    this.desired = desired;
  }

  /** A deployment of this namespace, `d_` and its name unless another id is given. */
  messageOf(name: string, environment = environmentId, deploymentId = `d_${name}`): ApplyDeployment {
    return applyDeployment({
      k8sNamespace: this.namespace,
      k8sName: name,
      deploymentId,
      environmentId: environment,
      encryptedEnvironmentVariables: sealedBlob(environment, variables),
    });
  }

  specOf(name: string, environment?: string, deploymentId?: string): DeploymentSpec {
    return specOf(this.messageOf(name, environment, deploymentId));
  }

  /** A running pod of a deployment that is wanted, made as krane makes it. */
  deploy(name: string, environment = environmentId): Promise<Pod> {
    const spec = this.specOf(name, environment);
    this.desired.apply(spec);
    return this.applyAsKrane(spec);
  }

  /**
   * What krane would apply, applied under its name, with more annotations. Whoever may apply ReplicaSets here can do
   * that.
   */
  async applyAsKrane(spec: DeploymentSpec, more: Readonly<Record<string, string>> = {}): Promise<Pod> {
    const { metadata, ...rest } = desiredReplicaSet(spec, { secrets: { audience } });
    const manifest = {
      ...rest,
      metadata: { ...metadata, annotations: { ...metadata?.annotations, ...more } },
    };
    await this.api.apply(replicaSets, manifest, { fieldManager: "krane", force: false }, never);
    return this.podOf(spec.deploymentId);
  }

  podOf(deploymentId: string, notUid?: string): Promise<Pod> {
    const labelSelector = `${labelKeys.deploymentId}=${deploymentId}`;
    const selection = { namespace: this.namespace, labelSelector };
    return eventually(`${deploymentId} has a pod`, async () => {
      const { items } = await listAll(this.api, pods, selection, (object) => object, never);
      return items.find(({ metadata }) => metadata?.uid !== notUid) ?? assert.fail("no pod yet");
    });
  }

  /** A pod that somebody else creates, never scheduled, with whatever metadata they like. */
  create(name: string, metadata: Pod["metadata"] = {}, serviceAccountName = "default"): Promise<Pod> {
    const containers = [{ name: "app", image: "registry.example/app:1" }];
    const spec = { containers, serviceAccountName, schedulerName: "nobody" };
    const pod = { metadata: { ...metadata, name, namespace: this.namespace }, spec };
    return this.api.create(pods, pod, {}, never);
  }

  async createAccount(name: string): Promise<void> {
    await this.api.create(serviceAccounts, { metadata: { name, namespace: this.namespace } }, {}, never);
  }

  /** Changes labels or annotations of a pod, as somebody who may patch pods. */
  async patch(pod: Pod, metadata: Pod["metadata"]): Promise<void> {
    const { name, namespace } = this.refOf(pod);
    const options = { fieldManager: "somebody", force: true };
    await this.api.apply(pods, { metadata: { ...metadata, name, namespace } }, options, never);
  }

  async delete(pod: Pod, gracePeriodSeconds = 0): Promise<void> {
    await this.api.delete(pods, this.refOf(pod), { gracePeriodSeconds }, never);
  }

  /** As the kubelet gets it for the projected volume. */
  tokenOf(pod: Pod, audiences: readonly string[] = [audience]): Promise<string> {
    const { name = "", uid = "" } = pod.metadata ?? {};
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name, uid };
    return this.request({ audiences: [...audiences], boundObjectRef }, pod.spec?.serviceAccountName);
  }

  unboundToken(): Promise<string> {
    return this.request({ audiences: [audience] });
  }

  private async request(
    spec: { audiences: string[]; boundObjectRef?: object },
    account = "default",
  ): Promise<string> {
    const ref = { namespace: this.namespace, name: account };
    const body = { spec: { ...spec, expirationSeconds: 600 } };
    const answer = await this.api.create(tokenRequests, body, { subresource: "token", ref }, never);
    return answer.status?.token ?? assert.fail("no token");
  }

  private refOf({ metadata }: Pod) {
    return { namespace: this.namespace, name: metadata?.name ?? assert.fail("a pod without a name") };
  }
}
