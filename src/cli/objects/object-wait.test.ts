import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { FakeOutput } from "../../../test/support/fake-io.ts";
import { ReportDeploymentStatusRequest_Update_Instance_Status as Status } from "../../gen/ctrl/v1/deployment_pb.ts";
import {
  GetObjectResponseSchema,
  ObjectKind,
  ObjectRefSchema,
  type ObjectView,
  ObjectViewSchema,
  ObjectView_Phase as Phase,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { ObjectStatus_Outcome as Outcome } from "../../gen/krane/v1/agent_pb.ts";
import { createProgressLine } from "../terminal/progress-line.ts";
import { waitForObjects } from "./object-wait.ts";
import { verdictOn } from "./wait-verdict.ts";

const ref = create(ObjectRefSchema, { region: "local.test", kind: ObjectKind.DEPLOYMENT, id: "d_1" });

function view(phase: Phase, version = 7n, trouble?: { reason?: string; outcome?: Outcome }): ObjectView {
  return create(ObjectViewSchema, { ref, phase, version, ...(trouble && { trouble }) });
}

/** A deployment of three pods, some of them from an older version. */
function runs(phase: Phase, { older = 0, reportedAtMs = 1n, failing = "" } = {}): ObjectView {
  const instances = [0, 1, 2].map((index) => ({
    k8sName: `web-${index}`,
    status: failing === "" ? Status.RUNNING : Status.FAILED,
    outdated: index < older,
  }));
  return create(ObjectViewSchema, {
    ref,
    phase,
    version: 7n,
    namespace: "acme",
    name: "web",
    spec: { spec: { case: "deployment", value: { replicas: 3 } } },
    deployment: { exists: true, instances, reportedAtMs },
    ...(failing !== "" && { trouble: { failing, outcome: Outcome.APPLIED } }),
  });
}

type Answer = ObjectView | Error | undefined;

/** Waits for one object; each poll returns the next of the answers, then always the last one. */
function wait(
  answers: readonly Answer[],
  { goal = "ready" as "ready" | "deleted", timeoutMs = 60_000, countsOlderPods = false } = {},
) {
  const clock = new FakeClock();
  const output = new FakeOutput();
  const done: string[] = [];
  const stop = new AbortController();
  let asked = 0;
  const client = {
    async getObject() {
      const answer = answers[Math.min(asked++, answers.length - 1)];
      if (answer instanceof Error) throw answer;
      if (answer === undefined) throw new ConnectError("no such object", Code.NotFound);
      return create(GetObjectResponseSchema, { object: answer });
    },
  };
  const ended = waitForObjects(
    { goal, objects: [{ ref, version: 7n }], timeoutMs, countsOlderPods },
    { client, clock, progress: createProgressLine(output), onDone: ({ id }) => done.push(id) },
    stop.signal,
  );
  ended.catch(() => undefined);
  return { clock, output, done, stop, ended, asked: () => asked };
}

describe("waiting for an object", () => {
  test("ends when it is ready, and shows each change once", async () => {
    const run = wait([
      view(Phase.READY, 6n),
      view(Phase.WAITING),
      view(Phase.PROGRESSING),
      view(Phase.PROGRESSING),
      runs(Phase.PROGRESSING, { older: 1 }),
      runs(Phase.READY),
    ]);
    await run.clock.advance(5_000);
    await run.ended;
    assert.deepEqual(run.done, ["d_1"]);
    assert.equal(
      run.output.text,
      "waiting for deployment/d_1: the control plane does not show the new version yet\nwaiting for deployment/d_1: the agent has not applied it yet\nwaiting for deployment/d_1: in progress\nwaiting for deployment/d_1: 3/3 pods ready, 1 from an older version\n",
    );
    assert.equal(run.clock.timerCount, 0);
  });

  test("polls several at a time, and reports them in order", async () => {
    const objects = Array.from({ length: 20 }, (_, index) => ({
      ref: create(ObjectRefSchema, { ...ref, id: `d_${index}` }),
      version: 7n,
    }));
    const open: (() => void)[] = [];
    let atOnceMax = 0;
    const done: string[] = [];
    const clock = new FakeClock();
    const ended = waitForObjects(
      { goal: "deleted", objects, timeoutMs: 60_000 },
      {
        client: {
          async getObject() {
            await new Promise<void>((resolve) => open.push(resolve));
            throw new ConnectError("no such object", Code.NotFound);
          },
        },
        clock,
        progress: createProgressLine(new FakeOutput()),
        onDone: ({ id }) => done.push(id),
      },
      new AbortController().signal,
    );
    while (done.length < objects.length) {
      await clock.settle();
      atOnceMax = Math.max(atOnceMax, open.length);
      for (const answer of open.splice(0).reverse()) answer();
      await clock.settle();
    }
    await ended;
    assert.equal(atOnceMax, 8);
    assert.deepEqual(
      done,
      objects.map((each) => each.ref.id),
    );
  });

  test("ends at once if the agent rejected it", async () => {
    const run = wait([
      view(Phase.FAILED, 7n, { reason: "port must be below 65536", outcome: Outcome.PARKED }),
    ]);
    await run.clock.settle();
    await assert.rejects(
      run.ended,
      /deployment\/d_1 will not become ready: failed: port must be below 65536; see krane why/,
    );
  });

  test("gives pods that cannot run ten seconds to recover", async () => {
    const failing = view(Phase.FAILED, 7n, { reason: "2 pods: CrashLoopBackOff", outcome: Outcome.APPLIED });
    const recovered = wait([
      ...Array(10).fill(failing),
      view(Phase.PROGRESSING),
      ...Array(15).fill(failing),
      view(Phase.READY),
    ]);
    await recovered.clock.advance(60_000);
    await recovered.ended;
    const lost = wait([failing]);
    await lost.clock.advance(9_900);
    assert.equal(lost.clock.timerCount, 1);
    await lost.clock.advance(600);
    await assert.rejects(lost.ended, /CrashLoopBackOff/);
  });

  test("ends after ten seconds if pods from an older version run, and says what to do", async () => {
    const run = wait([view(Phase.WAITING), runs(Phase.PROGRESSING, { older: 2 })]);
    await run.clock.advance(9_900);
    assert.equal(run.clock.timerCount, 1, "somebody may be about to delete them");
    await run.clock.advance(1_100);
    await assert.rejects(run.ended, {
      code: "failed",
      message:
        "deployment/d_1 will not become ready: 2 of its pods are from an older version, and krane does not replace running pods. A new version usually gets a new id. To update this one in place, delete the old pods when convenient, and new ones are created: kubectl -n acme delete pods web-0 web-1",
    });
    const replaced = wait([runs(Phase.PROGRESSING, { older: 2 }), runs(Phase.READY, { reportedAtMs: 2n })]);
    await replaced.clock.advance(1_000);
    await replaced.ended;
  });

  test("says so too if the older pods are the ones that cannot run", async () => {
    const failing = "3 of 3 pods from an older version: ImagePullBackOff";
    const run = wait([runs(Phase.FAILED, { older: 3, failing })]);
    await run.clock.advance(10_500);
    await assert.rejects(
      run.ended,
      /^CommandError: deployment\/d_1 will not become ready: 3 of its pods are from an older .* delete pods web-0 web-1 web-2$/,
    );
  });

  test("counts pods from an older version after a scale", async () => {
    const scaled = { countsOlderPods: true };
    const run = wait([view(Phase.WAITING), runs(Phase.PROGRESSING, { older: 2 })], scaled);
    await run.clock.advance(1_000);
    await run.ended;
    const failing = "3 of 3 pods from an older version: ImagePullBackOff";
    const failed = wait([runs(Phase.FAILED, { older: 3, failing })], scaled);
    await failed.clock.advance(10_500);
    await assert.rejects(failed.ended, /delete pods/);
  });

  test("does not mistake a report from before the change for one about it", async () => {
    const before = runs(Phase.READY);
    const run = wait([before, before, runs(Phase.PROGRESSING, { older: 3, reportedAtMs: 2n })]);
    await run.clock.advance(1_000);
    assert.deepEqual(run.done, []);
    const silent = wait([before]);
    await silent.clock.advance(1_900);
    assert.deepEqual(silent.done, []);
    await silent.clock.advance(600);
    await silent.ended;
    assert.deepEqual(silent.done, ["d_1"], "no newer report came");
  });

  test("keeps polling a control plane that does not respond for a while", async () => {
    const away = new ConnectError("connect ECONNREFUSED", Code.Unavailable);
    const run = wait([view(Phase.PROGRESSING), away, away, view(Phase.READY)]);
    await run.clock.advance(5_000);
    await run.ended;
    assert.match(run.output.text, /the control plane does not respond/);
  });

  test("fails if the token is rejected", async () => {
    const run = wait([new ConnectError("token?", Code.Unauthenticated)]);
    await run.clock.settle();
    await assert.rejects(run.ended, ConnectError);
  });

  test("ends at the timeout, and shows the last state", async () => {
    const run = wait([view(Phase.PROGRESSING)], { timeoutMs: 1_200 });
    await run.clock.advance(1_199);
    assert.equal(run.clock.timerCount, 1);
    await run.clock.advance(1);
    await assert.rejects(run.ended, {
      code: "failed",
      message: "not ready after 1s200ms: deployment/d_1: in progress",
    });
  });

  test("says at the timeout that the control plane did not respond", async () => {
    const away = new ConnectError("connect ECONNREFUSED", Code.Unavailable);
    const run = wait([view(Phase.PROGRESSING), away], { timeoutMs: 1_000 });
    await run.clock.advance(1_000);
    await assert.rejects(run.ended, {
      code: "unreachable",
      message: /d_1: the control plane does not respond$/,
    });
  });

  test("ends when aborted", async () => {
    const run = wait([view(Phase.PROGRESSING)]);
    await run.clock.advance(1_000);
    const reason = new Error("Ctrl-C");
    run.stop.abort(reason);
    await assert.rejects(run.ended, reason);
    assert.equal(run.clock.timerCount, 0);
  });

  test("for a deletion ends when the object is deleted or missing", async () => {
    for (const last of [view(Phase.DELETED), undefined]) {
      const run = wait([view(Phase.DELETING), last], { goal: "deleted" });
      await run.clock.advance(1_000);
      await run.ended;
      assert.deepEqual(run.done, ["d_1"]);
    }
  });
});

test("a deleted, deleting or missing object will not become ready", () => {
  for (const object of [view(Phase.DELETING), view(Phase.DELETED), undefined])
    assert.deepEqual(verdictOn(object, { goal: "ready" }, 7n), { kind: "failing", isFinal: true });
  assert.deepEqual(verdictOn(view(Phase.PAUSED), { goal: "ready" }, 7n), { kind: "done" });
});
