import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { eventually } from "../../../test/support/eventually.ts";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { AdminService, ObjectKind } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Admin } from "../admin/admin-access.ts";
import { listEvents } from "./event-list.ts";

const region = "local.test";

/** Follows a control plane that ends its first stream in that way, until something is told by the second. */
async function followOver(end: ConnectError) {
  const begun: (bigint | undefined)[] = [];
  const transport = createRouterTransport(({ service }) =>
    service(AdminService, {
      async *watchEvents({ after }, { signal }) {
        begun.push(after);
        if (begun.length === 1) {
          yield { position: 7n };
          throw end;
        }
        const ref = { region, kind: ObjectKind.DEPLOYMENT, id: "d_1" };
        yield { event: { ref, entry: 8n, event: "set" }, position: 8n };
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
    }),
  );
  const stop = new AbortController();
  const io = new FakeIo();
  const client = createClient(AdminService, transport);
  const admin = { client, region, signal: stop.signal, output: "json" } as Admin;
  const following = listEvents(admin, io, { kind: undefined, name: undefined }, { follow: true, limit: 50 });
  // It waits for the world below; that it fails is said there.
  following.catch(() => undefined);
  await Promise.race([
    eventually("the event is told", () => assert.match(io.stdout.text, /"set"/)),
    following.then(() => assert.fail("it ended")),
  ]);
  stop.abort(new Error("enough"));
  await assert.rejects(following, /enough/);
  return { begun, told: io.stderr.text };
}

test("--follow outlives a restart before anything happened, and goes on where it was", async () => {
  const { begun, told } = await followOver(new ConnectError("it restarts", Code.Unavailable));
  assert.deepEqual(begun, [undefined, 7n]);
  assert.equal(told, "the control plane does not respond; retrying\n");
});

test("--follow continues silently after a stream was ended for its age", async () => {
  const { begun, told } = await followOver(new ConnectError("it is old", Code.DeadlineExceeded));
  assert.deepEqual(begun, [undefined, 7n]);
  assert.equal(told, "");
});
