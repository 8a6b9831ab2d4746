import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError, createRouterTransport } from "@connectrpc/connect";
import { adminOver } from "../../../test/support/answering-admin.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { parseDocuments } from "../../documents/parse.ts";
import { AdminService } from "../../gen/krane/admin/v1/admin_pb.ts";
import { loadDocumentKinds } from "../../kinds/documents.ts";
import { CommandError } from "../command-error.ts";
import { applyDocuments } from "./apply-documents.ts";

const region = "local.test";

const environment = `apiVersion: krane/v1
kind: Environment
id: env_1
workspace: ws_1
project: proj_1
`;

const deployment = (id: number) => `apiVersion: krane/v1
kind: Deployment
id: d_${id}
name: web-${id}
namespace: demo
workspace: ws_1
project: proj_1
environment: env_1
image: registry.example/web:1
`;

const kinds = await loadDocumentKinds();

function loaded(...texts: readonly string[]) {
  const parsed = parseDocuments([{ name: "a.yaml", text: texts.join("---\n") }], kinds);
  if (parsed.kind === "invalid") assert.fail(JSON.stringify(parsed.problems));
  return parsed.documents.map((document) => {
    const id = document.kind === "deployment" ? document.spec.deploymentId : "env_1";
    return { document, region, title: `${document.kind}/${id}` };
  });
}

/** A control plane that answers when the test says so, and refuses what it is told to. */
class SlowControlPlane {
  /** What came to be, in that order. */
  readonly applied: string[] = [];
  readonly waiting = new Map<string, (error?: ConnectError) => void>();
  readonly checkRefused = new Set<string>();
  readonly refused = new Set<string>();
  reason = "";
  atOnceMax = 0;
  private readonly stop = new AbortController();

  apply(io: FakeIo, documents: ReturnType<typeof loaded>) {
    const transport = createRouterTransport(({ service }) =>
      service(AdminService, {
        listEnvironments: () => ({ environments: [] }),
        applyEnvironment: async ({ id }) => {
          await this.held(id);
          return { environment: { id, version: 1n } };
        },
        applyObject: async ({ spec, dryRun }) => {
          const id = spec?.spec.case === "deployment" ? spec.spec.value.deploymentId : "";
          if ((dryRun ? this.checkRefused : this.refused).has(id))
            throw new ConnectError(`${id} is not wanted${this.reason}`, Code.InvalidArgument);
          if (!dryRun) await this.held(id);
          return { version: 7n };
        },
      }),
    );
    const admin = adminOver(transport, region, this.stop.signal);
    return applyDocuments(admin, io, documents, { timeout: 1_000 });
  }

  interrupt(): void {
    this.stop.abort(new Error("Ctrl-C"));
  }

  goAway(): void {
    for (const end of this.waiting.values()) end(new ConnectError("nobody answers", Code.Unavailable));
  }

  async answer(...ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      await eventually(`${id} is sent`, () => assert.equal(this.waiting.has(id), true));
      this.waiting.get(id)?.();
      this.waiting.delete(id);
    }
  }

  private held(id: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.waiting.set(id, (error) => {
        if (error !== undefined) return reject(error);
        this.applied.push(id);
        resolve();
      });
      this.atOnceMax = Math.max(this.atOnceMax, this.waiting.size);
    });
  }
}

const ids = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

test("several documents are on their way at a time, and told in their order", async () => {
  const plane = new SlowControlPlane();
  const io = new FakeIo();
  const applying = plane.apply(io, loaded(...ids(1, 20).map(deployment)));
  await eventually("eight are sent", () => assert.equal(plane.waiting.size, 8));
  await plane.answer(...ids(2, 8).map((id) => `d_${id}`));
  await plane.answer(...ids(9, 20).map((id) => `d_${id}`));
  assert.equal(io.stdout.text, "");
  await plane.answer("d_1");
  assert.equal(await applying, 0);
  assert.equal(plane.atOnceMax, 8);
  const lines = ids(1, 20).map((id) => `deployment/d_${id} applied (version 7)\n`);
  assert.equal(io.stdout.text, lines.join(""));
});

test("an environment is there before anything is sent that may belong to it, wherever it stands", async () => {
  const plane = new SlowControlPlane();
  const applying = plane.apply(new FakeIo(), loaded(deployment(1), environment, deployment(2)));
  await eventually("it is sent", () => assert.deepEqual([...plane.waiting.keys()], ["env_1"]));
  await plane.answer("env_1", "d_2", "d_1");
  assert.equal(await applying, 0);
  assert.equal(plane.applied[0], "env_1");
});

test("all that the control plane refuses is said at once while nothing is changed", async () => {
  const plane = new SlowControlPlane();
  for (const id of ["d_3", "d_17"]) plane.checkRefused.add(id);
  const documents = loaded(...ids(1, 20).map(deployment));
  await assert.rejects(plane.apply(new FakeIo(), documents), {
    message: "a.yaml:21: deployment/d_3: d_3 is not wanted\na.yaml:161: deployment/d_17: d_17 is not wanted",
  });
  assert.deepEqual(plane.applied, []);
});

test("after a refusal nothing more is sent, what was sent is told, and how many are left", async () => {
  const plane = new SlowControlPlane();
  plane.refused.add("d_3");
  const io = new FakeIo();
  const applying = plane.apply(io, loaded(...ids(1, 20).map(deployment)));
  const ended = assert.rejects(applying, {
    message:
      "a.yaml:21: deployment/d_3: d_3 is not wanted\n12 more were not sent; run apply again once this is fixed",
  });
  await eventually("all are sent", () => assert.equal(plane.waiting.size, 7));
  await plane.answer(...[1, 2, 4, 5, 6, 7, 8].map((id) => `d_${id}`));
  await ended;
  const told = io.stdout.text.match(/d_\d+/g);
  assert.deepEqual(
    told,
    [1, 2, 4, 5, 6, 7, 8].map((id) => `d_${id}`),
  );
});

test("Ctrl-C ends it, and tells what had come to be", async () => {
  const plane = new SlowControlPlane();
  const io = new FakeIo();
  const applying = plane.apply(io, loaded(...ids(1, 20).map(deployment)));
  const ended = assert.rejects(applying, /Ctrl-C/);
  await plane.answer("d_2");
  await eventually("the next is sent", () => assert.equal(plane.waiting.has("d_9"), true));
  plane.interrupt();
  await ended;
  assert.equal(io.stdout.text, "deployment/d_2 applied (version 7)\n");
  assert.equal(
    io.stderr.text,
    "stopped; 1 applied, 8 without a response may have been applied, 11 more were not sent\n",
  );
});

test("what was on its way when the control plane went away is not passed over", async () => {
  const plane = new SlowControlPlane();
  const applying = plane.apply(new FakeIo(), loaded(...ids(1, 20).map(deployment)));
  const ended = assert.rejects(applying, {
    code: "unreachable",
    message:
      "nobody answers\n8 without a response may have been applied, 12 more were not sent; run apply again once this is fixed",
  });
  await eventually("eight are sent", () => assert.equal(plane.waiting.size, 8));
  plane.goAway();
  await ended;
});

test("each field that is refused has its place, and a file that is refused as a whole is not checked to its end", async () => {
  const plane = new SlowControlPlane();
  for (const id of ids(1, 100)) plane.checkRefused.add(`d_${id}`);
  plane.reason = "\nnor is its name";
  const error: unknown = await plane
    .apply(new FakeIo(), loaded(...ids(1, 100).map(deployment)))
    .catch((e) => e);
  assert.ok(error instanceof CommandError);
  const lines = error.message.split("\n");
  const refusals = lines.slice(0, -1);
  for (const line of refusals) assert.match(line, /^a\.yaml:\d+: deployment\/d_\d+: /);
  assert.equal(lines.at(-1), `${100 - refusals.length / 2} more were not checked`);
});
