// A region with many objects in which something always changes, written straight to the database as agents and people would.
import { create } from "@bufbuild/protobuf";
import type { Clock } from "../../src/concurrency/clock.ts";
import { ReportAgentStateRequestSchema } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import {
  ReportDeploymentStatusRequest_Update_InstanceSchema as InstanceSchema,
  ReportDeploymentStatusRequest_Update_Instance_Status as Status,
} from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { StreamStatus_State as Stream } from "../../src/gen/krane/v1/agent_pb.ts";
import type { Store } from "../../src/server/store.ts";
import { applyDeployment } from "../../test/support/deployment-messages.ts";
import { createStoreAdmin, type StoreAdmin } from "../../test/support/store-admin.ts";

/** Its changes are timed until somebody sees them. Its name puts it on top of every list. */
export const marker = { id: "d_marker", name: "a-marker" } as const;

const atOnce = 20;

export class BusyFleet {
  readonly region: string;
  private readonly store: Store;
  private readonly clock: Clock;
  private readonly admin: StoreAdmin;
  private version = 0n;
  private turn = 0;

  constructor(region: string, { store, clock }: { readonly store: Store; readonly clock: Clock }) {
    this.region = region;
    this.store = store;
    this.clock = clock;
    this.admin = createStoreAdmin(store, { clock, by: "bench" });
  }

  async fill(objects: number): Promise<void> {
    await this.store.registerRegion(this.region);
    await this.mark("first");
    for (let from = 1; from < objects; from += atOnce) {
      const some = Array.from({ length: Math.min(atOnce, objects - from) }, (_, index) => from + index);
      await Promise.all(some.map((number) => this.release(number, "1")));
      await this.report(some, Status.RUNNING);
    }
    await this.beat();
  }

  /** One change in two is a new image, the other one what an agent reports. */
  async change(count: number, objects: number): Promise<void> {
    const first = this.turn;
    this.turn += count;
    const numbers = Array.from({ length: count }, (_, index) => 1 + (((first + index) * 7) % (objects - 1)));
    const half = Math.ceil(count / 2);
    await Promise.all(numbers.slice(0, half).map((number) => this.release(number, String(this.turn))));
    await this.report(numbers.slice(half), this.turn % 400 < 200 ? Status.RUNNING : Status.PENDING);
  }

  /** Gives the marker another image. */
  async mark(tag: string): Promise<void> {
    this.version = await this.admin.setDeployment(this.region, deployment(marker.id, marker.name, tag));
  }

  /** As agents do every few seconds. The marker is in trouble. */
  async beat(): Promise<void> {
    const { region, version } = this;
    const atMs = this.clock.wallMs();
    const stream = { state: Stream.OPEN, cursor: version, settledUpTo: version };
    const report = create(ReportAgentStateRequestSchema, {
      state: {
        instanceId: "ins_bench",
        region,
        version: "0.0.0",
        controllers: [{ name: "deployments", stream }],
      },
      troubledObjects: [
        { controller: "deployments", key: `acme/${marker.name}`, id: marker.id, failing: "1 of 1 pods" },
      ],
    });
    await this.store.reportHeartbeat(region, atMs);
    await this.store.reportAgent(region, { report, atMs });
  }

  private async release(number: number, tag: string): Promise<void> {
    this.version = await this.admin.setDeployment(
      this.region,
      deployment(`d_${number}`, nameOf(number), tag),
    );
  }

  private async report(numbers: readonly number[], status: Status): Promise<void> {
    const atMs = this.clock.wallMs();
    const received = numbers.map((number) => {
      const k8sName = `${nameOf(number)}-abcde`;
      const address = `10-0-${number >> 8}-${number & 255}.acme.pod.cluster.local:8080`;
      const instances = [create(InstanceSchema, { k8sName, address, status, restarts: this.turn })];
      return { name: nameOf(number), id: "", report: { exists: true, instances, atMs } };
    });
    await this.store.reportMany(this.region, "deployment", received);
  }
}

function nameOf(number: number): string {
  return `web-${String(number).padStart(5, "0")}`;
}

export function imageOf(tag: string): string {
  return `registry.example/acme/web:${tag}`;
}

function deployment(deploymentId: string, k8sName: string, tag: string) {
  return applyDeployment({ deploymentId, k8sName, image: imageOf(tag), replicas: 1 });
}
