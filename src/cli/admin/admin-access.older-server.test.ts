// New commands with a control plane of an earlier version, which lacks their calls.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { AdminService, ObjectKind } from "../../gen/krane/admin/v1/admin_pb.ts";
import { main } from "../main.ts";

const region = "local.dev";
// As before apps, ExplainObject and WatchFleet.
const server = createServer(
  connectNodeAdapter({
    routes: ({ service }) =>
      service(AdminService, {
        listAgents: () => ({ agents: [{ region }] }),
        listObjects: () => ({
          objects: [
            {
              ref: { region, kind: ObjectKind.DEPLOYMENT, id: "d_1" },
              deployment: { exists: true, instances: [{ k8sName: "web-1" }] },
            },
          ],
        }),
      }),
  }),
);
let url: string;
before(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  url = typeof address === "object" ? `http://127.0.0.1:${address?.port}` : assert.fail("no port");
});
after(() => void server.close());

async function run(...argv: readonly string[]) {
  const io = new FakeIo({ "app.yaml": app });
  const code = await main(argv, { KRANE_SERVER: url, KRANE_TOKEN: "a-token", KRANE_REGION: region }, io);
  return { code, stdout: io.stdout.text, stderr: io.stderr.text };
}

const app = `apiVersion: krane/v1
kind: App
id: app_web
name: web
namespace: demo
workspace: ws_demo
project: proj_demo
environment: env_demo
image: registry.example/web:1
`;

for (const argv of [
  ["release", "web", "--image", "registry.example/web:2"],
  ["rollout", "history", "web"],
  ["get", "apps"],
  ["get", "deployments", "--watch"],
  ["apply", "-f", "app.yaml"],
])
  test(`krane ${argv.join(" ")} says that the control plane is too old`, async () => {
    const { code, stderr } = await run(...argv);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /the control plane at http:\S+ is too old for this; update it, or use a krane of its version\n$/,
    );
    assert.doesNotMatch(stderr, /does not serve the admin API/);
  });

test("what an older control plane has works as before, and pods are listed as far as it reports them", async () => {
  assert.equal((await run("get", "deployments", "-o", "name")).stdout, "deployment/d_1\n");
  assert.match((await run("get", "pods")).stdout, /\nweb-1 +d_1 +Unknown/);
  assert.equal((await run("get", "pods", "nope")).code, 3);
});
