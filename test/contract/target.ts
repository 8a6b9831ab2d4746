// What the contract suite runs against: an API server, reached through the client that krane
// itself uses. The suite is one text; a target only says where the server is.
import type { KubeApi } from "../../src/kube/api.ts";
import type { KubeTransport } from "../../src/kube/transport.ts";

export interface ContractTarget {
  /** Stands in front of each case and in the list of accepted differences. */
  readonly name: string;
  readonly api: KubeApi;
  /** For what KubeApi does not say: updates, other patches, odd paths. */
  readonly transport: KubeTransport;
  /** Takes the namespace of a case away with everything in it; nobody waits for it. */
  removeNamespace(name: string): Promise<void>;
  /** Makes the server forget every state but the newest, as etcd's compaction does. */
  compactHistory(): Promise<void>;
  close(): Promise<void>;
}
