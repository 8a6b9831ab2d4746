// Secrets in `krane dev`: its vault encrypts what `krane secrets set` stores, and new deployments get it.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { main } from "../../../src/cli/main.ts";
import { readTextFile } from "../../../src/cli/process/text-file.ts";
import { ObjectKind } from "../../../src/gen/krane/admin/v1/admin_pb.ts";
import { pods } from "../../../src/kube/resources.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeIo } from "../../support/fake-io.ts";
import { never, startedRegion, temporaryFolder } from "./dev-world.ts";

const program = (environment: string) => `apiVersion: krane/v1
kind: Deployment
id: d_greeter
name: greeter
namespace: krane-dev
workspace: ws_krane_dev
project: proj_krane_dev
environment: ${environment}
image: registry.example/greeter:1
`;

test("a secret that is set with the contexts file of krane dev reaches a new deployment", async (t) => {
  const cliContextPath = join(await temporaryFolder(t), "cli.toml");
  const region = await startedRegion(t, { cliContextPath });
  const run = async (argv: readonly string[], input: string) => {
    const io = Object.assign(new FakeIo(), { readTextFile, readInput: async () => input });
    const code = await main(argv, { KRANE_CONFIG: cliContextPath }, io);
    assert.equal(code, 0, io.stderr.text);
  };
  await run(["secrets", "set", "env_production", "GREETING"], "hello");
  await run(["apply", "-f", "-"], program("env_production"));
  const ref = { region: region.name, kind: ObjectKind.DEPLOYMENT, id: "d_greeter" };
  const { object } = await region.admin.getObject({ ref });
  assert.deepEqual(object?.secretNames, ["GREETING"]);
  await eventually("its pod has the token to fetch them with", async () => {
    const labelSelector = "unkey.com/deployment.id=d_greeter";
    const { items } = await region.cluster.api.list(pods, { namespace: "krane-dev", labelSelector }, never);
    const [pod] = items;
    assert.ok(
      pod?.spec?.containers[0]?.env?.some(({ name }) => name === "UNKEY_TOKEN_PATH"),
      "not yet",
    );
  });
});
