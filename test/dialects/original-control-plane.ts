// The original's control plane as an agent sees it, from the tables of its behaviour: eight methods over h2c, one message
// of a stream per change, version 0 in answers, `not_found` for what it does not know, and a bare error for a report on it.
import type { TestContext } from "node:test";
import { create, type DescMessage, type Message, type MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import {
  type CiliumNetworkPolicyState,
  CiliumNetworkPolicyStateSchema,
} from "../../src/gen/ctrl/v1/cilium_network_policy_pb.ts";
import type { ClusterService } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import {
  type DeploymentState,
  DeploymentStateSchema,
  type ReportDeploymentStatusRequest,
} from "../../src/gen/ctrl/v1/deployment_pb.ts";
import {
  type ReportSentinelStatusRequest,
  type SentinelState,
  SentinelStateSchema,
} from "../../src/gen/ctrl/v1/sentinel_pb.ts";
import { type BareServer, serveRpc } from "../integration/control-plane/bare-server.ts";

/** A call as it arrived. */
export interface ArrivedCall {
  readonly method: string;
  readonly authorization: string | null;
  readonly region: string | null;
  readonly message: Message;
}

/** What one stream sends, in order, to every agent that has not seen it. */
class Changes<S extends DescMessage> {
  private readonly schema: S;
  private readonly sent: MessageShape<S>[] = [];
  private waiting: (() => void)[] = [];

  constructor(schema: S) {
    this.schema = schema;
  }

  get version(): bigint {
    return BigInt(this.sent.length);
  }

  add(state: object): void {
    this.sent.push(create(this.schema, { ...state, version: this.version + 1n } as object as never));
    for (const wake of this.waiting.splice(0)) wake();
  }

  async *after(cursor: bigint, signal: AbortSignal): AsyncIterable<MessageShape<S>> {
    for (let index = Number(cursor); !signal.aborted; index++) {
      while (index >= this.sent.length) {
        await new Promise<void>((resolve) => {
          this.waiting.push(resolve);
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
        if (signal.aborted) return;
      }
      const state = this.sent[index];
      if (state !== undefined) yield state;
    }
  }

  /** The newest state of an object, as an answer: without its version. */
  find(isMeant: (state: MessageShape<S>) => boolean): MessageShape<S> {
    const found = this.sent.findLast(isMeant);
    if (found === undefined) throw new ConnectError("not found", Code.NotFound);
    return { ...found, version: 0n };
  }
}

export interface OriginalControlPlane {
  readonly server: BareServer;
  readonly deployments: Changes<typeof DeploymentStateSchema>;
  readonly sentinels: Changes<typeof SentinelStateSchema>;
  readonly policies: Changes<typeof CiliumNetworkPolicyStateSchema>;
  readonly calls: readonly ArrivedCall[];
  readonly deploymentReports: readonly ReportDeploymentStatusRequest[];
  readonly sentinelReports: readonly ReportSentinelStatusRequest[];
}

export async function serveOriginalControlPlane(t: TestContext): Promise<OriginalControlPlane> {
  const calls: ArrivedCall[] = [];
  const note = (message: Message, { method, requestHeader }: HandlerContext) =>
    void calls.push({
      method: method.name,
      authorization: requestHeader.get("authorization"),
      region: requestHeader.get("x-krane-region"),
      message,
    });
  const deployments = new Changes(DeploymentStateSchema);
  const sentinels = new Changes(SentinelStateSchema);
  const policies = new Changes(CiliumNetworkPolicyStateSchema);
  const deploymentReports: ReportDeploymentStatusRequest[] = [];
  const sentinelReports: ReportSentinelStatusRequest[] = [];
  const stream =
    (changes: { after(cursor: bigint, signal: AbortSignal): AsyncIterable<never> }) =>
    (request: Message & { readonly versionLastSeen: bigint }, context: HandlerContext) => {
      note(request, context);
      return changes.after(request.versionLastSeen, context.signal);
    };
  const isOf =
    (id: string, field: string) => (state: DeploymentState | SentinelState | CiliumNetworkPolicyState) =>
      state.state.case === "apply" && (state.state.value as unknown as Record<string, unknown>)[field] === id;
  const methods: Partial<ServiceImpl<typeof ClusterService>> = {
    watchDeployments: stream(deployments as never),
    watchSentinels: stream(sentinels as never),
    watchCiliumNetworkPolicies: stream(policies as never),
    getDesiredDeploymentState(request, context) {
      note(request, context);
      return deployments.find(isOf(request.deploymentId, "deploymentId"));
    },
    getDesiredSentinelState(request, context) {
      note(request, context);
      return sentinels.find(isOf(request.sentinelId, "sentinelId"));
    },
    getDesiredCiliumNetworkPolicyState(request, context) {
      note(request, context);
      return policies.find(isOf(request.ciliumNetworkPolicyId, "ciliumNetworkPolicyId"));
    },
    reportDeploymentStatus(request, context) {
      note(request, context);
      deploymentReports.push(request);
      return {};
    },
    reportSentinelStatus(request, context) {
      note(request, context);
      sentinelReports.push(request);
      return {};
    },
  };
  const server = await serveRpc(t, methods);
  return { server, deployments, sentinels, policies, calls, deploymentReports, sentinelReports };
}
