// How the CLI shows a deployment. Its status report lists every pod.
import {
  type ApplyDeployment,
  type ReportDeploymentStatusRequest_Update_Instance as Instance,
  ReportDeploymentStatusRequest_Update_Instance_Status as InstanceStatus,
} from "../../gen/ctrl/v1/deployment_pb.ts";
import type { ObjectView } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { KindView, PodCounts } from "../kind-view.ts";
import { readyPodsText, workloadColumns, workloadText } from "../workload-view.ts";

export const deploymentView: KindView = {
  columns: workloadColumns.flatMap((name) => (name === "age" ? ["restarts", name] : [name])),
  podsOf,
  listedPods: ({ deployment }) => deployment?.instances ?? [],
  reportedAtMs: ({ deployment }) => deployment?.reportedAtMs,
  wantedText(object) {
    const spec = specOf(object);
    return spec === undefined ? "" : workloadText(spec);
  },
  liveText({ deployment }, pods) {
    if (deployment?.exists !== true) return "gone";
    const others = [
      [pods.failed, "failing"],
      [pods.pending, "not ready"],
      [pods.outdated, "from an older version"],
    ] as const;
    const some = others.flatMap(([count, word]) => (count === 0 ? [] : [`${count} ${word}`]));
    return [readyPodsText(pods), ...some].join(", ");
  },
  differencesOf(object) {
    const spec = specOf(object);
    if (spec === undefined) return [];
    const instances = object.deployment?.instances ?? [];
    const difference = (field: string, desired: string, found: readonly string[]) => {
      const live = found.length === 0 ? desired : [...new Set(found)].sort().join(" and ");
      return live === desired ? [] : [{ field, desired, live }];
    };
    // An agent of the original reports 0 for both.
    return [
      ...difference(
        "CPU of each pod",
        `${spec.cpuMillicores}m`,
        instances.flatMap(({ cpuMillicores }) => (cpuMillicores === 0n ? [] : [`${cpuMillicores}m`])),
      ),
      ...difference(
        "memory of each pod",
        `${spec.memoryMib}Mi`,
        instances.flatMap(({ memoryMib }) => (memoryMib === 0n ? [] : [`${memoryMib}Mi`])),
      ),
    ];
  },
  stillExists: ({ deployment }) => deployment?.exists === true,
  // krane does not replace running pods of a deployment.
  isRollingOut: () => false,
};

function specOf({ spec }: ObjectView): ApplyDeployment | undefined {
  return spec?.spec.case === "deployment" ? spec.spec.value : undefined;
}

function podsOf(object: ObjectView): PodCounts {
  const { deployment } = object;
  const instances = deployment?.instances ?? [];
  const wanted = specOf(object)?.replicas;
  const count = (isMeant: (instance: Instance) => boolean) => instances.filter(isMeant).length;
  const running = count(({ status }) => status === InstanceStatus.RUNNING);
  const failed = count(({ status }) => status === InstanceStatus.FAILED);
  return {
    wanted,
    isReported: deployment !== undefined,
    running,
    failed,
    pending: instances.length - running - failed,
    outdated: count(({ outdated }) => outdated),
    outdatedDown: count(({ outdated, status }) => outdated && status !== InstanceStatus.RUNNING),
    surplus: Math.max(0, instances.length - (wanted ?? instances.length)),
  };
}
