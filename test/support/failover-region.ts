// A region with several agent processes on a real Kubernetes. Each of them has links of its own to the API server and to
// the control plane, which can be cut. Who led is read from the Lease, who wrote from the API server's audit log, and what
// was written from a watch that misses no state.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Interceptor } from "@connectrpc/connect";
import { parseReportOrder, reportOrderHeader } from "../../src/control-plane/report-order.ts";
import { ObjectStatus_Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { leases, replicaSets } from "../../src/kube/resources.ts";
import { agentClient, agentToken } from "../integration/agent/agent-world.ts";
import { dev, serveControlPlane, token } from "../integration/server/served-control-plane.ts";
import { type AgentProcess, startAgentProcess } from "./agent-process.ts";
import { type AuditedCall, AuditTail } from "./audit-log.ts";
import { realServerTarget } from "./cluster/contract-target.ts";
import type { TestCluster } from "./cluster-under-test.ts";
import type { ServiceAccountAccess } from "./deployed-rights.ts";
import { applyDeployment } from "./deployment-messages.ts";
import { eventually } from "./eventually.ts";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
import { followStates } from "./followed-states.ts";
import { fetchHttp1 } from "./http-clients.ts";
import { reportsOfCall } from "./reports-of-call.ts";
import type { StoreAdmin } from "./store-admin.ts";

export interface FailoverOptions {
  readonly cluster: TestCluster;
  readonly account: ServiceAccountAccess;
  readonly program: string;
  /** How many deployments there are. They have no pods. */
  readonly objects: number;
}

export interface LinkedAgent extends AgentProcess {
  readonly id: string;
  readonly client: ReturnType<typeof agentClient>;
  readonly links: { readonly cluster: FaultProxy; readonly controlPlane: FaultProxy };
}

interface HeldTerm {
  readonly holder: string;
  readonly term: number;
  /** When this became known, by the monotonic clock. */
  readonly seenMs: number;
}

const writeVerbs = new Set(["create", "patch", "update", "delete", "deletecollection"]);
const namespace = "acme";
const inSyncOutcomes: ReadonlySet<ObjectStatus_Outcome> = new Set([
  ObjectStatus_Outcome.UNCHANGED,
  ObjectStatus_Outcome.APPLIED,
]);

export class FailoverRegion {
  readonly objects: number;
  readonly api: KubeApi;
  readonly admin: StoreAdmin;
  /** The terms so far, in their order. */
  readonly terms: HeldTerm[] = [];
  /** Every write of an agent so far, without those of the Lease, in the order of arrival. */
  readonly writes: AuditedCall[] = [];
  /** Objects that went back to an older version, or were deleted. */
  readonly wentBack: string[] = [];
  private readonly t: TestContext;
  private readonly options: FailoverOptions;
  private readonly controlPlaneUrl: string;
  /** The objects that were reported in each term. */
  private readonly reported: ReadonlyMap<bigint, ReadonlySet<string>>;
  private readonly tail: AuditTail;
  private readonly versions = new Map<string, number>();
  private readonly wanted = new Map<string, number>();
  private version = 0;
  private next = 0;
  private started = 0;

  private constructor(
    t: TestContext,
    options: FailoverOptions,
    parts: {
      readonly admin: StoreAdmin;
      readonly api: KubeApi;
      readonly controlPlaneUrl: string;
      readonly reported: ReadonlyMap<bigint, ReadonlySet<string>>;
    },
  ) {
    this.t = t;
    this.options = options;
    this.objects = options.objects;
    this.admin = parts.admin;
    this.api = parts.api;
    this.controlPlaneUrl = parts.controlPlaneUrl;
    this.reported = parts.reported;
    this.tail = new AuditTail(options.cluster.auditLogPath);
  }

  /** Ends with the test. */
  static async start(t: TestContext, options: FailoverOptions): Promise<FailoverRegion> {
    const reported = new Map<bigint, Set<string>>();
    const noteReports: Interceptor = (next) => (call) => {
      const order = parseReportOrder(call.header.get(reportOrderHeader));
      if (order === undefined) return next(call);
      const names = reported.get(order.term) ?? new Set();
      reported.set(order.term, names);
      for (const { change } of reportsOfCall(call.method.name, call.message))
        if (change.case === "update") names.add(change.value.k8sName);
      return next(call);
    };
    const { admin, running } = await serveControlPlane(t, "h2c", [noteReports]);
    const { transport } = realServerTarget(options.cluster);
    const controlPlaneUrl = running?.url ?? assert.fail("it is not served");
    const parts = { admin, api: createKubeApi(transport), controlPlaneUrl, reported };
    const region = new FailoverRegion(t, options, parts);
    await region.tail.read();
    followStates(t, region.api, { kind: leases, namespace: "krane" }, (lease) => {
      const { holderIdentity = "", leaseTransitions: term = 0 } = lease.spec ?? {};
      const holder = holderIdentity.replace(/_[0-9a-f]{8}$/, "");
      if (holder === "" || region.terms.at(-1)?.term === term) return;
      region.terms.push({ holder, term, seenMs: performance.now() });
    });
    followStates(t, region.api, { kind: replicaSets, namespace }, (set, isDeleted) => {
      const name = set.metadata?.name ?? "";
      const version = Number(set.spec?.template?.spec?.containers[0]?.image?.split(":").at(-1));
      if (isDeleted || version < (region.versions.get(name) ?? 0))
        region.wentBack.push(`${name}: ${version}`);
      region.versions.set(name, version);
    });
    // After what uses it.
    t.after(() => transport.close());
    return region;
  }

  /** Starts an agent with a new name. */
  async startAgent(env: Readonly<Record<string, string>> = {}): Promise<LinkedAgent> {
    this.started += 1;
    const id = `agent-${this.started}`;
    const { cluster, account, program } = this.options;
    const links = {
      cluster: await startFaultProxy(this.t, Number(new URL(cluster.serverUrl).port)),
      controlPlane: await startFaultProxy(this.t, Number(new URL(this.controlPlaneUrl).port)),
    };
    const folder = await mkdtemp(join(tmpdir(), "krane-agent-"));
    this.t.after(() => rm(folder, { recursive: true }));
    const kubeconfigPath = join(folder, "kubeconfig");
    const kubeconfig = await readFile(account.kubeconfigPath, "utf8");
    const linked = links.cluster.url.replace("http:", "https:");
    await writeFile(kubeconfigPath, kubeconfig.replaceAll(cluster.serverUrl, linked), { mode: 0o600 });
    const place = {
      program,
      region: dev,
      controlPlane: { url: links.controlPlane.url, token },
      kubeconfigPath,
      agentToken,
    };
    const process = await startAgentProcess(
      this.t,
      place,
      { UNKEY_INSTANCE_ID: id, UNKEY_LEASE: "required", UNKEY_RECONCILE_WORKERS: "4", ...env },
      { withFaults: true },
    );
    return { id, links, client: agentClient(this.t, process.url), ...process };
  }

  /** Makes a new version of so many objects desired, in turn; of all by default. */
  async change(count = this.objects): Promise<void> {
    this.version += 1;
    for (let done = 0; done < count; done++) {
      const index = this.next++ % this.objects;
      const k8sName = `web-${index}`;
      this.wanted.set(k8sName, this.version);
      const image = `registry.example/acme/web:${this.version}`;
      const message = applyDeployment({ k8sName, deploymentId: `d_${index}`, image, replicas: 0 });
      await this.admin.setDeployment(dev, message);
    }
  }

  /** Resolves when every object has the version that is desired. */
  async untilApplied(): Promise<void> {
    const isApplied = () => {
      const open = [...this.wanted].filter(([name, version]) => this.versions.get(name) !== version);
      assert.equal(open.length, 0);
    };
    await eventually("every object has its newest version", isApplied, { deadlineMs: 240_000 });
  }

  get leader(): string {
    return this.terms.at(-1)?.holder ?? "";
  }

  async untilLeads({ id }: Pick<LinkedAgent, "id">): Promise<void> {
    await eventually(`${id} leads`, () => assert.equal(this.leader, id), { deadlineMs: 60_000 });
  }

  async untilStandby({ url }: LinkedAgent, deadlineMs = 60_000): Promise<void> {
    const isStandby = async () => {
      const { status, body } = await fetchHttp1(`${url}/health/ready`);
      // Each agent reaches the control plane by a proxy of its own, so that its address differs.
      const lease = `standby; ${this.leader} leads, for another control plane`;
      assert.deepEqual([status, JSON.parse(body).lease], [200, lease]);
    };
    await eventually("it is ready, and says who leads", isStandby, { deadlineMs });
  }

  /** Resolves when the agent has written so much more than at the call. */
  async untilBusy({ id }: LinkedAgent, more: number): Promise<void> {
    const before = (await this.writesOf(id)).length;
    await eventually(`${id} is in the middle of it`, async () =>
      assert.ok((await this.writesOf(id)).length >= before + more, "not yet"),
    );
  }

  /** Resolves when the leader has reported everything in its term, and has looked at everything. */
  async untilSettled({ client }: LinkedAgent): Promise<void> {
    await eventually("everything is reported in this term", () => {
      const term = this.terms.at(-1)?.term ?? 0;
      assert.equal(this.reported.get(BigInt(term))?.size ?? 0, this.objects);
    });
    // Since its term began, which the reports show; before, it may know outcomes of an earlier one.
    await eventually("it has looked at everything", async () => {
      let [inSync, pageToken] = [0, ""];
      do {
        const page = await client.listObjects({ controller: "deployments", pageToken });
        inSync += page.objects.filter(({ id, outcome }) => id !== "" && inSyncOutcomes.has(outcome)).length;
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      assert.equal(inSync, this.objects);
    });
  }

  async writesOf(id: string): Promise<readonly AuditedCall[]> {
    await this.readWrites();
    return this.writes.filter((call) => writerOf(call) === id);
  }

  /**
   * Nobody deleted anything or went back, everybody wrote in their own term only, and what a leader wrote was over
   * before its successor began.
   */
  async assertOneWriter(): Promise<void> {
    await this.readWrites();
    assert.deepEqual(this.wentBack, []);
    assert.deepEqual(
      this.writes.filter(({ verb }) => verb.startsWith("delete")),
      [],
    );
    const turns = turnsOf(this.writes);
    const holders = this.terms.map(({ holder }) => holder);
    for (const { writer } of turns) {
      const at = holders.indexOf(writer);
      assert.ok(at >= 0, `${writer} wrote outside of its term`);
      holders.splice(0, at);
    }
    for (const [index, { writer, began }] of turns.entries()) {
      const before = turns[index - 1];
      if (before === undefined) continue;
      const message = `${before.writer} wrote until ${before.ended}, ${writer} from ${began}`;
      assert.ok(before.ended < began, message);
    }
  }

  private async readWrites(): Promise<void> {
    const { user } = this.options.account;
    const calls = (await this.tail.read()).filter((call) => call.user === user && writeVerbs.has(call.verb));
    this.writes.push(...calls.filter((call) => !isOfEverybody(call)));
  }
}

interface Turn {
  readonly writer: string;
  readonly began: string;
  ended: string;
}

/** Writes of one agent that no write of another one arrived between. */
function turnsOf(writes: readonly AuditedCall[]): readonly Turn[] {
  const turns: Turn[] = [];
  const arrived = [...writes].sort((one, other) => (one.receivedAt < other.receivedAt ? -1 : 1));
  for (const call of arrived) {
    const writer = writerOf(call);
    const { receivedAt: began, answeredAt: ended } = call;
    const last = turns.at(-1);
    if (last?.writer !== writer) turns.push({ writer, began, ended });
    else if (ended > last.ended) last.ended = ended;
  }
  return turns;
}

/** What needs no lease: the Lease, reviews, and the Secret of the seal, which the first agent creates at its start. */
function isOfEverybody({ resource, verb, namespace }: AuditedCall): boolean {
  if (resource === "secrets") return verb === "create" && namespace === "krane";
  return resource === "leases" || resource.endsWith("reviews");
}

function writerOf({ userAgent }: AuditedCall): string {
  return /\((.*)\)$/.exec(userAgent)?.[1] ?? "";
}
