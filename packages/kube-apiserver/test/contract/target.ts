// What the contract suite runs against: an API server and a client. The suite is one text; a target only says where
// the server is and how to reach it.
import type { ContractApi, ContractTransport } from "./api.ts";

export interface ContractTarget {
  /** Stands in front of each case and in the list of accepted differences. */
  readonly name: string;
  readonly api: ContractApi;
  readonly transport: ContractTransport;
  /** Who the server takes the client for where a request names no field manager: its user agent. */
  readonly userAgent: string;
  /** Takes the namespace of a case away with everything in it; nobody waits for it. */
  removeNamespace(name: string): Promise<void>;
  /** Makes the server forget every state but the newest, as etcd's compaction does. */
  compactHistory(): Promise<void>;
  close(): Promise<void>;
}
