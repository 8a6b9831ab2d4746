import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport } from "@connectrpc/connect";
import { adminOver } from "../../../test/support/answering-admin.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { AdminService, ObjectKind, ObjectRefSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { deleteObjects } from "./delete-objects.ts";

const region = "local.test";

type Targets = Parameters<typeof deleteObjects>[2];

const deployment = (id: number, where = region): Targets[number] => ({
  kind: "object",
  title: `deployment/d_${id}`,
  ref: create(ObjectRefSchema, { region: where, kind: ObjectKind.DEPLOYMENT, id: `d_${id}` }),
});
const environment: Targets[number] = { kind: "environment", title: "environment/env_1", region, id: "env_1" };

/** A control plane that answers when the test says so, and refuses what it is told to. */
class SlowControlPlane {
  readonly waiting = new Map<string, (error?: ConnectError) => void>();
  readonly refused = new Map<string, Code>();
  private readonly stop = new AbortController();

  delete(io: FakeIo, targets: Targets, yes = true) {
    const transport = createRouterTransport(({ service }) =>
      service(AdminService, {
        deleteObject: async ({ ref }) => {
          await this.held(ref?.id ?? "");
          return { version: 7n };
        },
        deleteEnvironment: async ({ id }) => {
          await this.held(id);
          return {};
        },
      }),
    );
    const admin = adminOver(transport, region, this.stop.signal);
    return deleteObjects(admin, io, targets, { timeout: 1_000, ...(yes && { yes }) });
  }

  interrupt(): void {
    this.stop.abort(new Error("Ctrl-C"));
  }

  async answer(...ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      await eventually(`${id} is sent`, () => assert.equal(this.waiting.has(id), true));
      this.waiting.get(id)?.();
      this.waiting.delete(id);
    }
  }

  private held(id: string): Promise<void> {
    const code = this.refused.get(id);
    if (code !== undefined) throw new ConnectError(`${id} stays`, code);
    return new Promise((resolve, reject) => {
      this.waiting.set(id, (error) => (error === undefined ? resolve() : reject(error)));
    });
  }
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);
const deployments = (from: number, to: number) => numbers(from, to).map((id) => deployment(id));
const names = (from: number, to: number) => numbers(from, to).map((id) => `d_${id}`);

/** The question that a person is asked, who says no. */
async function question(targets: Targets): Promise<string> {
  const asked: string[] = [];
  const ask = async (text: string) => {
    asked.push(text);
    return "n";
  };
  assert.equal(await new SlowControlPlane().delete(Object.assign(new FakeIo(), { ask }), targets, false), 1);
  return asked.join("\n");
}

test("several deletions are on their way at a time, and told in their order", async () => {
  const plane = new SlowControlPlane();
  const io = new FakeIo();
  const deleting = plane.delete(io, deployments(1, 20));
  await eventually("eight are sent", () => assert.equal(plane.waiting.size, 8));
  await plane.answer(...names(2, 20));
  assert.equal(io.stdout.text, "");
  await plane.answer("d_1");
  assert.equal(await deleting, 0);
  const lines = names(1, 20).map((id) => `deployment/${id} is being deleted (version 7)\n`);
  assert.equal(io.stdout.text, lines.join(""));
});

test("an environment goes when all that may belong to it was ordered to", async () => {
  const plane = new SlowControlPlane();
  const deleting = plane.delete(new FakeIo(), [environment, ...deployments(1, 2)]);
  await eventually("two are sent", () => assert.deepEqual([...plane.waiting.keys()], ["d_1", "d_2"]));
  await plane.answer("d_2", "d_1", "env_1");
  assert.equal(await deleting, 0);
});

test("Ctrl-C ends it, and says how many were deleted and how many were not", async () => {
  const plane = new SlowControlPlane();
  plane.refused.set("d_3", Code.NotFound);
  const io = new FakeIo();
  const ended = assert.rejects(plane.delete(io, [...deployments(1, 20), environment]), /Ctrl-C/);
  await plane.answer("d_1", "d_2");
  await eventually("the next are sent", () => assert.equal(plane.waiting.has("d_11"), true));
  plane.interrupt();
  await ended;
  assert.deepEqual(io.stdout.text.match(/d_\d+/g), ["d_1", "d_2"]);
  assert.equal(
    io.stderr.text,
    "deployment/d_3 does not exist\nstopped; 2 deleted, 8 without a response may have been deleted, 10 more were not sent\n",
  );
});

test("after a refusal nothing more is sent, and the error names the refused object and how many are left", async () => {
  const plane = new SlowControlPlane();
  plane.refused.set("d_3", Code.InvalidArgument);
  const io = new FakeIo();
  const ended = assert.rejects(plane.delete(io, [...deployments(1, 20), environment]), {
    code: "failed",
    message: "deployment/d_3: d_3 stays\n13 more were not sent; run delete again once this is fixed",
  });
  await eventually("all are sent", () => assert.equal(plane.waiting.size, 7));
  await plane.answer("d_1", "d_2", ...names(4, 8));
  await ended;
  assert.equal(io.stdout.text.match(/is being deleted/g)?.length, 7);
});

test("an object that does not exist does not stop the other deletions", async () => {
  const plane = new SlowControlPlane();
  plane.refused.set("d_1", Code.NotFound);
  const io = new FakeIo();
  const deleting = plane.delete(io, deployments(1, 2));
  await plane.answer("d_2");
  assert.equal(await deleting, 3);
  assert.equal(io.stdout.text, "deployment/d_2 is being deleted (version 7)\n");
  assert.equal(io.stderr.text, "deployment/d_1 does not exist\n");
});

test("the question names ten and counts the others, with the environments in front", async () => {
  const ten = names(1, 10).map((id) => `deployment/${id}`);
  assert.equal(await question(deployments(1, 10)), `Delete ${ten.join(", ")} in ${region}? [y/N] `);
  assert.equal(
    await question([...deployments(1, 300), environment]),
    `Delete environment/env_1, ${ten.slice(0, 9).join(", ")} and 291 more in ${region}? [y/N] `,
  );
});

test("the question names every region, also of what it only counts", async () => {
  assert.equal(
    await question([deployment(1), deployment(2, "other.test")]),
    `Delete deployment/d_1 in ${region}, deployment/d_2 in other.test? [y/N] `,
  );
  assert.match(
    await question([...deployments(1, 11), deployment(12, "other.test")]),
    /, deployment\/d_10 in local\.test and 2 more in local\.test, other\.test\? \[y\/N\] $/,
  );
});
