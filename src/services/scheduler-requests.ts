// From the messages of SchedulerService to those of the stream, which the controllers understand. What a
// message of the stream has more (a command, a port, a health check) stays at its default.
import { create } from "@bufbuild/protobuf";
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
import type {
  ApplyDeploymentRequest,
  ApplySentinelRequest,
  DeleteDeploymentRequest,
  DeleteSentinelRequest,
} from "../gen/krane/v1/scheduler_pb.ts";

export function deploymentOrder(request: ApplyDeploymentRequest): ApplyDeployment {
  const { $typeName: _, $unknown: __, readinessId: ___, ...fields } = request;
  return create(ApplyDeploymentSchema, fields);
}

export function deploymentDeletion(request: DeleteDeploymentRequest): DeleteDeployment {
  const { k8sNamespace, k8sName } = request;
  return create(DeleteDeploymentSchema, { k8sNamespace, k8sName });
}

/** Without the namespace: there is only one, and whoever calls this has compared it. */
export function sentinelOrder(request: ApplySentinelRequest): ApplySentinel {
  const { $typeName: _, $unknown: __, k8sNamespace: ___, ...fields } = request;
  return create(ApplySentinelSchema, fields);
}

export function sentinelDeletion({ k8sName }: DeleteSentinelRequest): DeleteSentinel {
  return create(DeleteSentinelSchema, { k8sName });
}
