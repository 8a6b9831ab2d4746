// Converts the messages of SchedulerService: requests to stream messages, which the controllers understand, and observed
// objects to states.
//
// - Fields that only stream messages have (a command, a port, a health check) keep their defaults.
// - The contract has no field for "gone": a deployment that is gone has no instances, and a sentinel that is gone has no
//   replicas.
import { clone, create } from "@bufbuild/protobuf";
import {
  type ApplyDeployment,
  ApplyDeploymentSchema,
  type DeleteDeployment,
  DeleteDeploymentSchema,
} from "../gen/ctrl/v1/deployment_pb.ts";
import {
  type ApplySentinel,
  ApplySentinelSchema,
  type DeleteSentinel,
  DeleteSentinelSchema,
} from "../gen/ctrl/v1/sentinel_pb.ts";
import {
  type ApplyDeploymentRequest,
  type ApplySentinelRequest,
  type DeleteDeploymentRequest,
  type DeleteSentinelRequest,
  type State,
  type State_Deployment_Instance_Status,
  StateSchema,
} from "../gen/krane/v1/scheduler_pb.ts";
import type { SeenDeployment } from "../kinds/deployment/seen.ts";
import type { ObservedSentinel } from "../kinds/sentinel/seen.ts";

export function deploymentOrder(request: ApplyDeploymentRequest): ApplyDeployment {
  const { $typeName: _, $unknown: __, readinessId: ___, ...fields } = request;
  return create(ApplyDeploymentSchema, fields);
}

export function deploymentDeletion(request: DeleteDeploymentRequest): DeleteDeployment {
  const { k8sNamespace, k8sName } = request;
  return create(DeleteDeploymentSchema, { k8sNamespace, k8sName });
}

/** Drops the namespace, which the caller has already checked: there is only one. */
export function sentinelOrder(request: ApplySentinelRequest): ApplySentinel {
  const { $typeName: _, $unknown: __, k8sNamespace: ___, ...fields } = request;
  return create(ApplySentinelSchema, fields);
}

export function sentinelDeletion({ k8sName }: DeleteSentinelRequest): DeleteSentinel {
  return create(DeleteSentinelSchema, { k8sName });
}

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

/** The final state of an object that is gone, made from its last known state. */
export function goneState(last: State): State {
  const gone = clone(StateSchema, last);
  if (gone.state.case === "deployment") gone.state.value.instances = [];
  if (gone.state.case === "sentinel") gone.state.value.availableReplicas = 0;
  return gone;
}
