// What is seen of a deployment or a sentinel, as a message of SchedulerService. The contract has no word for
// "gone": a deployment that is gone has no instances, and a sentinel that is gone has no replicas.
import { clone, create } from "@bufbuild/protobuf";
import {
  type State,
  type State_Deployment_Instance_Status,
  StateSchema,
} from "../gen/krane/v1/scheduler_pb.ts";
import type { SeenDeployment } from "../kinds/deployment/observed.ts";
import type { ObservedSentinel } from "../kinds/sentinel/observed.ts";

export function deploymentState({ update, readinessId }: SeenDeployment): State {
  const instances = update.instances.map(({ k8sName, address, cpuMillicores, memoryMib, status }) => ({
    instanceK8sName: k8sName,
    address,
    cpuMillicores,
    memoryMib,
    // Both enums have the same values.
    status: status as number as State_Deployment_Instance_Status,
  }));
  return create(StateSchema, {
    state: {
      case: "deployment",
      value: {
        deploymentK8sName: update.k8sName,
        instances,
        ...(readinessId !== undefined && { readinessId }),
      },
    },
  });
}

export function sentinelState({ update: { k8sName, availableReplicas } }: ObservedSentinel): State {
  return create(StateSchema, { state: { case: "sentinel", value: { k8sName, availableReplicas } } });
}

/** The last state of an object, from the one before it. */
export function goneState(last: State): State {
  const gone = clone(StateSchema, last);
  if (gone.state.case === "deployment") gone.state.value.instances = [];
  if (gone.state.case === "sentinel") gone.state.value.availableReplicas = 0;
  return gone;
}
