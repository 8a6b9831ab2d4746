// K11 and K12: what still differs between the control plane and the cluster, and whether agents write although nothing does.
import { ReportDeploymentStatusRequest_Update_Instance_Status as Status } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { type ObjectStatus, ObjectStatus_Outcome as Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { type KindName, kindNames, kindOf } from "../../src/kinds/kinds.ts";
import { annotationKeys, labelKeys, managedBy } from "../../src/model/labels.ts";
import { orderBehind } from "../ledger.ts";
import { getsItsSecrets } from "../pod-secrets.ts";
import type { AuditRecord, LiveObject } from "../sim-cluster.ts";
import { type Oracle, region } from "../sim-region.ts";
import type { World } from "../world.ts";
import { objectsOfLeader } from "./answers.ts";
import { managedChanges, nameOf, placesOfKinds, targetOf } from "./audit-view.ts";

const secretsMaxMs = 10_000;

export class Convergence implements Oracle {
  private readonly world: World;
  private writes: string[] = [];
  /** When an agent last deleted a workload, by namespace. */
  private readonly deletedMs = new Map<string, number>();

  constructor(world: World) {
    this.world = world;
  }

  onAudit(record: AuditRecord): void {
    for (const change of managedChanges(record)) {
      const { plural, namespace, after } = change;
      // What the control plane does not have is confirmed for ten minutes and longer; OrdersOracle judges deletions.
      if (after === undefined) this.deletedMs.set(namespace, record.atMs);
      else if (plural !== "ciliumnetworkpolicies" || !this.followsDeletion(namespace, record.atMs))
        this.writes.push(`${record.actor} ${record.request.method} ${nameOf(change)}`);
    }
  }

  /** After a deployment is deleted, the ingress policy of its environment is narrowed. */
  private followsDeletion(namespace: string, atMs: number): boolean {
    return atMs - (this.deletedMs.get(namespace) ?? Number.NEGATIVE_INFINITY) < 5_000;
  }

  /** The writes of agents since the last call. */
  takeWrites(): readonly string[] {
    const { writes } = this;
    this.writes = [];
    return writes;
  }

  async differences(): Promise<readonly string[]> {
    const kinds = kindNames.map((kind) =>
      kind === "route" ? this.routeDifferences() : this.differencesOf(kind),
    );
    const found = await Promise.all(kinds);
    const apps = (await this.world.apps.unfinished()).map((id) => `app ${id} is still releasing`);
    const reports = [
      ...apps,
      ...this.callDifferences(),
      ...(await this.reportDifferences()),
      ...(await this.sentinelDifferences()),
    ];
    const differences = [...found.flat(), ...reports, ...(await this.answerDifferences())];
    return differences.length > 0 ? differences : this.secretDifferences();
  }

  /** Every agent gives a pod of each deployment its secrets. */
  private async secretDifferences(): Promise<readonly string[]> {
    const { world } = this;
    const taken = this.foreignNames("replicasets", "apps");
    const asked: Promise<string[]>[] = [];
    for (const { id, desired, spec } of await world.plane.store.rows(region, "deployment")) {
      const [pod] = desired === "running" && !taken.has(placeOfSpec(spec)) ? this.readyPods(id) : [];
      if (pod === undefined) continue;
      for (const agent of world.agents)
        asked.push(
          getsItsSecrets(world, agent, pod).then((gets) =>
            gets ? [] : [`agent ${agent.name} gives pod ${pod.metadata.name} of ${id} no secrets`],
          ),
        );
    }
    const answered = Promise.all(asked);
    await world.runFor(secretsMaxMs);
    return (await Promise.race([answered, [["agents do not answer pods that ask for secrets"]]])).flat();
  }

  /** The leader says of every object that it is in sync, in its newest version. */
  private async answerDifferences(): Promise<string[]> {
    const [objects] = (await Promise.all(this.world.agents.map(objectsOfLeader))).filter(Array.isArray);
    if (objects === undefined) return ["no agent leads"];
    const answers = new Map(objects.map((one: ObjectStatus) => [`${one.controller} ${one.id}`, one]));
    const found: string[] = [];
    for (const kind of kindNames) {
      const [plural, group] = placesOfKinds[kind];
      const taken = this.foreignNames(plural, group);
      for (const { id, desired, spec, version } of await this.world.plane.store.rows(region, kind)) {
        if (desired !== "running" || taken.has(placeOfSpec(spec))) continue;
        const answer = answers.get(`${kindOf(kind).controller} ${id}`);
        const isInSync = answer?.outcome === Outcome.APPLIED || answer?.outcome === Outcome.UNCHANGED;
        if (!isInSync || (this.world.sendsVersions && answer.appliedVersion !== version))
          found.push(
            `the leader says of ${kind} ${id} in version ${version}: ${answer === undefined ? "nothing" : `outcome ${answer.outcome} in version ${answer.appliedVersion} ${answer.reason}`}`,
          );
      }
    }
    return found;
  }

  /** The control plane knows how many pods of each sentinel are available. */
  private async sentinelDifferences(): Promise<string[]> {
    const live = this.world.cluster.list("deployments", "apps");
    const found: string[] = [];
    for (const { id, desired, spec } of await this.world.plane.store.rows(region, "sentinel")) {
      const object = live.find(({ metadata }) => metadata.labels?.[labelKeys.sentinelId] === id);
      if (desired !== "running" || object === undefined || !this.world.isOfAgents(object)) continue;
      const { availableReplicas = 0 } = (object["status"] ?? {}) as { availableReplicas?: number };
      const report = (await this.world.plane.store.object(region, "sentinel", id))?.report;
      if (report?.availableReplicas !== availableReplicas)
        found.push(
          `sentinel ${id} (${spec.k8sName}) is reported with ${report?.availableReplicas} available pods of ${availableReplicas}`,
        );
    }
    return found;
  }

  /** What was ordered by calls is there. */
  private callDifferences(): string[] {
    const live = this.world.cluster.list("replicasets", "apps");
    return [...this.world.caller.all()].flatMap(({ place: { id, namespace, name }, called }) => {
      const found = live.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
      const isOwn = found !== undefined && this.world.isOfAgents(found);
      if (found !== undefined && !isOwn) return [];
      const number = found && orderBehind("replicasets", found)?.number;
      if (called.state === "stopped" && isOwn)
        return [`deployment ${id} was deleted by a call, and is there`];
      return called.state === "running" && number !== called.number
        ? [`deployment ${id} has order ${number} instead of order ${called.number} of a call`]
        : [];
    });
  }

  /** Every Service of a route leads where the control plane wants it. */
  private async routeDifferences(): Promise<string[]> {
    const services = this.world.cluster.list("services");
    const found: string[] = [];
    for (const { id, desired, spec } of await this.world.plane.store.rows(region, "route")) {
      const live = services.find((each) => each.metadata.labels?.[labelKeys.routeId] === id);
      if (
        desired === "stopped"
          ? live !== undefined
          : targetOf(live) !== spec.deploymentId || live === undefined
      )
        found.push(
          `route ${id} leads to ${live && targetOf(live)} instead of ${desired} ${spec.deploymentId}`,
        );
    }
    return found;
  }

  private async differencesOf(kind: Exclude<KindName, "route">): Promise<string[]> {
    const rows = await this.world.plane.store.rows(region, kind);
    const [plural, group] = placesOfKinds[kind];
    const live = this.world.cluster.list(plural, group).filter((object) => this.world.isOfAgents(object));
    const byId = new Map<string, LiveObject>();
    for (const object of live) {
      const id = orderBehind(plural, object)?.id;
      if (id !== undefined) byId.set(id, object);
    }
    const taken = this.foreignNames(plural, group);
    return rows.flatMap(({ id, desired, spec }) => {
      const object = byId.get(id);
      const place = placeOfSpec(spec);
      if (taken.has(place)) return [];
      if (desired === "stopped") return object === undefined ? [] : [`${kind} ${id} is still there`];
      if (object === undefined) return [`${kind} ${id} is missing`];
      return this.specDifferences(kind, id, spec, plural, object);
    });
  }

  private specDifferences(
    kind: Exclude<KindName, "route">,
    id: string,
    spec: unknown,
    plural: string,
    object: LiveObject,
  ): string[] {
    const wanted = this.world.numberIn(kind, spec);
    const number = orderBehind(plural, object)?.number;
    if (number !== wanted) return [`${kind} ${id} has order ${number} instead of ${wanted}`];
    const { labels = {}, annotations = {} } = object.metadata;
    if (labels[labelKeys.managedBy] !== managedBy) return [`${kind} ${id} lacks krane's label`];
    if (!annotations[annotationKeys.seal]?.startsWith("v=1&")) return [`${kind} ${id} has a forged seal`];
    if (kind === "policy") return [];
    const { replicas } = spec as { readonly replicas: number };
    const live = object["spec"] as { replicas?: number; template?: { spec?: LivePodSpec } };
    if (live.replicas !== replicas)
      return [`${kind} ${id} has ${live.replicas} replicas instead of ${replicas}`];
    const pod = live.template?.spec ?? {};
    const isEdited =
      pod.hostNetwork === true || pod.terminationGracePeriodSeconds === 7 || pod.containers?.length !== 1;
    if (isEdited || (kind === "deployment" && pod.runtimeClassName !== "gvisor"))
      return [`${kind} ${id} is still edited`];
    const { readyReplicas = 0 } = (object["status"] ?? {}) as { readyReplicas?: number };
    return readyReplicas === replicas ? [] : [`${kind} ${id} has ${readyReplicas} ready pods of ${replicas}`];
  }

  private foreignNames(plural: string, group: string): ReadonlySet<string> {
    const foreign = this.world.cluster.list(plural, group).filter((object) => !this.world.isOfAgents(object));
    return new Set(foreign.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`));
  }

  /** The control plane knows every pod that runs. */
  private async reportDifferences(): Promise<string[]> {
    const rows = await this.world.plane.store.rows(region, "deployment");
    const taken = this.foreignNames("replicasets", "apps");
    const differences: string[] = [];
    for (const { id, desired, spec } of rows) {
      if (desired !== "running" || taken.has(`${spec.k8sNamespace}/${spec.k8sName}`)) continue;
      const report = (await this.world.plane.store.object(region, "deployment", id))?.report;
      const running = (report?.instances ?? []).filter(({ status }) => status === Status.RUNNING);
      const reported = running.map(({ k8sName }) => k8sName).sort();
      const ready = this.readyPods(id)
        .map(({ metadata }) => metadata.name ?? "")
        .sort();
      if (reported.join() !== ready.join())
        differences.push(
          `deployment ${id} is reported with ${reported.join() || "no pod"}, but has ${ready.join() || "none"}`,
        );
    }
    return differences;
  }

  private readyPods(deploymentId: string): readonly LiveObject[] {
    return this.world.cluster
      .list("pods")
      .filter((pod) => pod.metadata.labels?.[labelKeys.deploymentId] === deploymentId)
      .filter((pod) => this.world.isTenantPod(pod) && isServing(pod));
  }
}

function placeOfSpec(spec: { readonly k8sName: string }): string {
  return "k8sNamespace" in spec ? `${spec.k8sNamespace}/${spec.k8sName}` : "";
}

/** Running and ready, and not about to end. */
function isServing(pod: LiveObject): boolean {
  const { conditions = [], phase } = (pod["status"] ?? {}) as {
    conditions?: readonly { type: string; status: string }[];
    phase?: string;
  };
  const isReady = conditions.some(({ type, status }) => type === "ContainersReady" && status === "True");
  return isReady && phase === "Running" && pod.metadata.deletionTimestamp === undefined;
}

interface LivePodSpec {
  readonly containers?: readonly unknown[];
  readonly hostNetwork?: boolean;
  readonly runtimeClassName?: string;
  readonly terminationGracePeriodSeconds?: number;
}
