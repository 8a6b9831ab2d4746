import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { applyDeployment } from "../../test/support/deployment-messages.ts";
import { applyPolicy } from "../../test/support/policy-messages.ts";
import { applySentinel } from "../../test/support/sentinel-messages.ts";
import { ReportAgentStateRequestSchema } from "../gen/ctrl/v1/cluster_service_pb.ts";
import {
  ReportDeploymentStatusRequest_Update_InstanceSchema as InstanceSchema,
  ReportDeploymentStatusRequest_Update_Instance_Status as Status,
} from "../gen/ctrl/v1/deployment_pb.ts";
import { Health } from "../gen/ctrl/v1/sentinel_pb.ts";
import { ObjectView_PhaseSchema as PhaseSchema } from "../gen/krane/admin/v1/admin_pb.ts";
import {
  BreakerStatus_State as Breaker,
  type ObjectStatusSchema,
  ObjectStatus_Outcome as Outcome,
} from "../gen/krane/v1/agent_pb.ts";
import type { KindName, ReportOf } from "../kinds/kinds.ts";
import { phaseFacts, phaseOf, troubleOf } from "./phase.ts";
import type { Row, StoredObject } from "./store.ts";

type StatusInit = Exclude<MessageInitShape<typeof ObjectStatusSchema>, { $typeName: string }>;
type StreamInit = { cursor?: bigint; settledUpTo?: bigint; unsettled?: bigint[] };

const controllers = {
  deployment: "deployments",
  sentinel: "sentinels",
  policy: "cilium",
  route: "routes",
} as const;

/** One that has tried in vain to report what runs, and has given up for a while. */
function heldBack(kind: KindName, state: Breaker) {
  const controller = { name: controllers[kind], stream: settled, breaker: { state } };
  return { report: create(ReportAgentStateRequestSchema, { state: { controllers: [controller] } }), atMs: 0 };
}

function agent(kind: KindName, stream: StreamInit, ...troubledObjects: readonly StatusInit[]) {
  const controller = controllers[kind];
  const report = create(ReportAgentStateRequestSchema, {
    state: { controllers: [{ name: controller, stream }] },
    troubledObjects: troubledObjects.map((status) => ({ controller, ...status })),
  });
  return { report, atMs: 0 };
}

function phase<K extends KindName>(
  kind: K,
  object: StoredObject<K>,
  state?: ReturnType<typeof agent>,
): string {
  return PhaseSchema.value[phaseOf(phaseFacts(kind, object, state))]?.localName ?? "";
}

const version = 5n;
const settled = { cursor: 5n };
const row = (replicas: number, desired: Row<"deployment">["desired"] = "running") =>
  ({ id: "d", spec: applyDeployment({ deploymentId: "d", replicas }), desired, version }) as const;
const report = (...statuses: readonly Status[]) => ({
  exists: true,
  instances: statuses.map((status) => create(InstanceSchema, { status })),
  atMs: 0,
});
const gone = { exists: false, instances: [], atMs: 0 };

describe("the phase of a deployment", () => {
  const { RUNNING, PENDING, FAILED } = Status;
  const reported = (replicas: number, ...statuses: readonly Status[]) => ({
    row: row(replicas),
    report: report(...statuses),
    reportedVersion: version,
  });
  const unheard = (replicas: number) => ({ row: row(replicas), reportedVersion: 0n });
  const of = (object: StoredObject<"deployment">) =>
    phase("deployment", object, agent("deployment", settled));

  test("follows its pods once the agent has settled the version", () => {
    assert.equal(of(unheard(1)), "PROGRESSING");
    assert.equal(of(reported(2, RUNNING)), "PROGRESSING");
    assert.equal(of(reported(2, RUNNING, PENDING)), "PROGRESSING");
    assert.equal(of(reported(2, RUNNING, RUNNING)), "READY");
    assert.equal(of(reported(1, RUNNING, RUNNING)), "PROGRESSING", "one too many still runs");
    assert.equal(of(reported(2, RUNNING, FAILED)), "FAILED");
    assert.equal(of(reported(0)), "PAUSED");
    assert.equal(of(unheard(0)), "PAUSED");
    assert.equal(of(reported(0, RUNNING)), "PROGRESSING");
  });

  test("is not ready while a pod of an earlier description runs", () => {
    const mixed = (...outdated: readonly boolean[]) => ({
      ...reported(outdated.length),
      report: {
        ...report(),
        instances: outdated.map((each) => create(InstanceSchema, { status: RUNNING, outdated: each })),
      },
    });
    assert.equal(of(mixed(true, true)), "PROGRESSING");
    assert.equal(of(mixed(false, true)), "PROGRESSING");
    assert.equal(of(mixed(false, false)), "READY");
  });

  test("does not come from an earlier report while reports are paused", () => {
    const before = { ...reported(1, RUNNING), reportedVersion: 4n };
    const [open, closed] = [Breaker.OPEN, Breaker.CLOSED].map((state) => heldBack("deployment", state));
    assert.equal(phase("deployment", before, open), "PROGRESSING");
    assert.equal(phase("deployment", before, closed), "READY", "there was nothing new to tell");
    assert.equal(phase("deployment", reported(1, RUNNING), open), "READY");
    assert.equal(phase("deployment", { ...before, row: row(0), report: report() }, open), "PROGRESSING");
  });

  test("is waiting until then, whatever runs", () => {
    const ready = reported(1, RUNNING);
    assert.equal(phase("deployment", ready), "WAITING", "nothing was heard of the agent");
    assert.equal(phase("deployment", ready, agent("deployment", { cursor: 4n })), "WAITING");
    assert.equal(phase("deployment", ready, agent("sentinel", settled)), "WAITING", "another controller's");
  });

  test("is not held up by another object that holds the cursor back", () => {
    const ready = reported(1, RUNNING);
    const behind = { cursor: 1n, settledUpTo: 9n };
    assert.equal(phase("deployment", ready, agent("deployment", { ...behind, unsettled: [2n] })), "READY");
    assert.equal(
      phase("deployment", ready, agent("deployment", { ...behind, unsettled: [2n, 5n] })),
      "WAITING",
    );
  });

  test("is failed if the agent rejected this version, or its pods cannot run", () => {
    const about = (status: StatusInit, stream: StreamInit = settled) =>
      phase(
        "deployment",
        unheard(1),
        agent("deployment", stream, { id: "d", desiredVersion: 5n, ...status }),
      );
    assert.equal(about({ outcome: Outcome.PARKED }, {}), "FAILED", "a refusal settles it");
    assert.equal(about({ outcome: Outcome.CONFLICT }), "FAILED");
    assert.equal(about({ outcome: Outcome.APPLIED, failing: "1 of 1 pods: ImagePullBackOff" }), "FAILED");
    assert.equal(about({ outcome: Outcome.RETRYING }, {}), "WAITING");
    assert.equal(about({ outcome: Outcome.PARKED, desiredVersion: 4n }, {}), "WAITING", "an older version");
    assert.equal(about({ outcome: Outcome.PARKED, id: "other" }), "PROGRESSING", "another object");
    assert.equal(
      about({ outcome: Outcome.CONFLICT, id: "", key: "acme/web" }),
      "FAILED",
      "known by name alone",
    );
    assert.equal(about({ outcome: Outcome.CONFLICT, id: "", key: "acme/x-web" }), "PROGRESSING");
  });

  test("ends with the report after the deletion was ordered", () => {
    const stopped = { row: row(1, "stopped"), reportedVersion: 4n };
    assert.equal(phase("deployment", stopped), "DELETING");
    assert.equal(of({ ...stopped, report: report(RUNNING) }), "DELETING", "pods are left");
    assert.equal(of({ ...stopped, report: gone }), "DELETED");
    assert.equal(phase("deployment", { ...stopped, report: gone }), "DELETING", "an old report");
    assert.equal(phase("deployment", { ...stopped, report: gone, reportedVersion: 5n }), "DELETED");
    assert.equal(of(stopped), "DELETED", "it never came to be");
  });

  test("is not gone while the agent says that it cannot delete it", () => {
    const stopped = { row: row(1, "stopped"), reportedVersion: 4n };
    const about = (status: StatusInit) =>
      phase("deployment", stopped, agent("deployment", settled, { id: "d", desiredVersion: 5n, ...status }));
    assert.equal(about({ outcome: Outcome.CONFLICT }), "DELETING");
    assert.equal(about({ outcome: Outcome.PARKED }), "DELETING");
    assert.equal(about({ outcome: Outcome.BLOCKED, id: "", key: "acme/web" }), "DELETING");
    assert.equal(about({ outcome: Outcome.CONFLICT, desiredVersion: 4n }), "DELETED", "an older version");
    const conflict = agent("deployment", settled, {
      id: "d",
      desiredVersion: 5n,
      outcome: Outcome.CONFLICT,
    });
    const reportedGone = { ...stopped, report: gone, reportedVersion: 5n };
    assert.equal(phase("deployment", reportedGone, conflict), "DELETED", "nothing of it is left");
  });

  test("is unknown if a newer server wrote it", () => {
    assert.equal(of({ row: row(1, "unreadable"), reportedVersion: 0n }), "UNSPECIFIED");
  });
});

describe("when the agent rejected more than it lists", () => {
  const refused = { outcome: Outcome.CONFLICT, desiredVersion: 4n };
  const listing = (counts: { parked?: number; conflicts?: number }, ...listed: readonly StatusInit[]) => {
    const full = agent("policy", settled, ...listed);
    Object.assign(full.report.state?.controllers[0] ?? {}, counts);
    return full;
  };
  const object = (desired: "running" | "stopped") => ({
    row: { id: "p", spec: applyPolicy(), desired, version },
    reportedVersion: 0n,
  });
  const both = (state: ReturnType<typeof agent>) =>
    (["running", "stopped"] as const).map((desired) => phase("policy", object(desired), state));
  const [unsure, done] = [
    ["WAITING", "DELETING"],
    ["READY", "DELETED"],
  ];

  test("nothing that it does not list is taken for done", () => {
    const other = { ...refused, id: "other" };
    assert.deepEqual(both(listing({ conflicts: 2 }, other)), unsure);
    assert.deepEqual(both(listing({ conflicts: 1, parked: 1 }, other)), unsure);
    assert.deepEqual(both(listing({ conflicts: 1 }, other)), done, "all are listed");
    const failing = { ...other, outcome: Outcome.APPLIED, failing: "1 of 1 pods: CrashLoopBackOff" };
    assert.deepEqual(both(listing({ conflicts: 1 }, failing)), unsure, "what is listed was applied");
  });

  test("listed objects are known, and the others say why they are not", () => {
    const trouble = (...listed: readonly StatusInit[]) =>
      phaseFacts("policy", object("stopped"), listing({ conflicts: 150 }, ...listed)).trouble;
    assert.equal(trouble({ ...refused, id: "p", reason: "not krane's" })?.reason, "not krane's");
    const { outcome, desiredVersion, reason = "" } = trouble() ?? {};
    assert.deepEqual([outcome, desiredVersion], [Outcome.UNSPECIFIED, version]);
    assert.match(reason, /150 .*rejected.* lists only 0 of them/);
  });

  test("a deployment that was reported gone after the order is deleted anyway", () => {
    const state = agent("deployment", settled);
    Object.assign(state.report.state?.controllers[0] ?? {}, { parked: 1 });
    const stopped = { row: row(1, "stopped"), report: gone };
    assert.equal(phase("deployment", { ...stopped, reportedVersion: 4n }, state), "DELETING");
    assert.equal(phase("deployment", { ...stopped, reportedVersion: 5n }, state), "DELETED");
  });
});

test("the phase of a sentinel follows its health, its pods and its image", () => {
  const of = (replicas: number, sentinel?: Partial<ReportOf<"sentinel">>) => {
    const spec = applySentinel({ replicas, image: "gate:2" });
    const full = {
      availableReplicas: 2,
      health: Health.HEALTHY,
      runningImage: "gate:2",
      atMs: 0,
      ...sentinel,
    };
    return phase(
      "sentinel",
      {
        row: { id: "s", spec, desired: "running", version },
        ...(sentinel && { report: full }),
        reportedVersion: version,
      },
      agent("sentinel", settled),
    );
  };
  assert.equal(of(2), "PROGRESSING");
  assert.equal(of(2, {}), "READY");
  assert.equal(of(3, {}), "PROGRESSING");
  assert.equal(of(2, { health: Health.UNHEALTHY }), "PROGRESSING");
  assert.equal(of(2, { runningImage: "gate:1" }), "PROGRESSING", "the old image still runs");
  assert.equal(of(2, { runningImage: "" }), "PROGRESSING", "in the middle of a roll-out");
  assert.equal(of(0, { availableReplicas: 0, health: Health.PAUSED }), "PAUSED");
  assert.equal(of(0, {}), "PROGRESSING");
});

test("a policy is ready as soon as it is settled", () => {
  const object = {
    row: { id: "p", spec: applyPolicy(), desired: "running", version },
    reportedVersion: 0n,
  } as const;
  assert.equal(phase("policy", object), "WAITING");
  assert.equal(phase("policy", object, agent("policy", settled)), "READY");
});

test("trouble that the agent knows by name alone is that of the same namespace, and less sure than an id", () => {
  const spec = applyPolicy({ k8sNamespace: "nsa", k8sName: "allow" });
  const policy = { id: "p", spec, desired: "running", version } as const;
  const reasonOf = (...statuses: readonly StatusInit[]) =>
    troubleOf("policy", policy, agent("policy", settled, ...statuses))?.reason;
  const byName = { id: "", key: "nsa/allow", reason: "by name" };
  assert.equal(reasonOf({ id: "", key: "nsb/allow", reason: "another's" }), undefined);
  assert.equal(reasonOf(byName), "by name");
  assert.equal(reasonOf(byName, { id: "p", key: "nsa/allow", reason: "by id" }), "by id");
  const sentinel = {
    id: "s",
    spec: applySentinel({ k8sName: "gate" }),
    desired: "running",
    version,
  } as const;
  const status = { id: "", key: "sentinel/gate" };
  assert.ok(troubleOf("sentinel", sentinel, agent("sentinel", settled, status)));
});
