// What krane get selects, watches and prints of pods and single fields.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type AdminServer, startAdminServer } from "../../../test/support/admin-server.ts";
import { applyDeployment } from "../../../test/support/deployment-messages.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { ReportDeploymentStatusRequest_Update_Instance_Status as Status } from "../../gen/ctrl/v1/deployment_pb.ts";
import { ObjectKind } from "../../gen/krane/admin/v1/admin_pb.ts";
import { main } from "../main.ts";
import { podStatusCell } from "./pod-list.ts";

const region = "local.dev";
const owner = { workspaceId: "ws_demo", projectId: "proj_demo" };

let server: AdminServer;
before(async () => {
  server = await startAdminServer();
  const client = server.client();
  for (const id of ["env_live", "env_test"]) await client.applyEnvironment({ region, id, ...owner });
  await apply("d_api", "api", "env_live");
  await apply("d_job", "job", "env_test");
  await report("api", [
    { k8sName: "api-1", status: Status.RUNNING, restarts: 3, createdAtMs: 1_000n, cpuMillicores: 250n },
    { k8sName: "api-2", status: Status.FAILED },
  ]);
});
after(() => server.stop());

async function apply(deploymentId: string, k8sName: string, environmentId: string, image = "r.example/a:1") {
  const value = applyDeployment({ ...owner, deploymentId, k8sName, environmentId, image });
  await server.client().applyObject({ region, spec: { spec: { case: "deployment", value } } });
}

async function report(k8sName: string, instances: readonly object[]) {
  const addressed = instances.map((each, index) => ({ address: `${k8sName}-${index}:8080`, ...each }));
  await server
    .agentClient()
    .reportDeploymentStatus({ change: { case: "update", value: { k8sName, instances: addressed } } });
}

function begin(argv: readonly string[]) {
  const io = new FakeIo();
  const env = { KRANE_SERVER: server.url, KRANE_TOKEN: server.tokens.readWrite, KRANE_REGION: region };
  return { io, ended: main(argv, env, io) };
}

async function run(...argv: readonly string[]) {
  const { io, ended } = begin(argv);
  return { code: await ended, stdout: io.stdout.text, stderr: io.stderr.text };
}

describe("krane get pods", () => {
  test("lists pods with their restarts and ages, and says what an older agent does not report", async () => {
    const { code, stdout } = await run("get", "pods");
    assert.equal(code, 0);
    const lines = stdout.trimEnd().split("\n");
    assert.match(lines[0] ?? "", /^NAME +DEPLOYMENT +STATUS +RESTARTS +AGE +REPORTED$/);
    assert.match(lines[1] ?? "", /^api-1 +d_api +Running.* 3 +\d+d +\d+s ago$/);
    assert.match(lines[2] ?? "", /^api-2 +d_api +Failed.* \d+s ago$/);
    assert.equal(lines.length, 3);
  });

  test("finds them by pod, deployment and name, and takes pods/NAME", async () => {
    for (const name of ["d_api", "api", "acme/api", "deployment/d_api"])
      assert.match((await run("get", "pods", name)).stdout, /api-1[\s\S]*api-2/, name);
    for (const argv of [["pods", "api-2"], ["pod/api-2"]])
      assert.equal((await run("get", ...argv, "-o", "name")).stdout, "pod/api-2\n");
    const none = await run("get", "pods", "nope");
    assert.deepEqual([none.code, /no app, deployment or pod nope/.test(none.stderr)], [3, true]);
  });

  test("tells programs whose pods they are, and when that was reported", async () => {
    const { pods } = JSON.parse((await run("get", "pods", "-o", "json")).stdout);
    const [first, second] = pods;
    assert.deepEqual(
      [first.deployment, first.k8sName, first.status, first.restarts, first.createdAtMs, first.agentSilent],
      ["d_api", "api-1", "STATUS_RUNNING", 3, "1000", true],
    );
    assert.ok(Number(first.reportedAtMs) > 0);
    assert.equal("restarts" in second, false);
  });
});

describe("krane get", () => {
  test("selects by what documents say, and by phase", async () => {
    const names = async (...argv: readonly string[]) => (await run("get", ...argv, "-o", "name")).stdout;
    assert.equal(await names("deployments", "-l", "environment=env_live"), "deployment/d_api\n");
    assert.equal(
      await names("all", "-l", "workspace = ws_demo, environment!=env_live"),
      "deployment/d_job\n",
    );
    assert.equal(
      await names("deployments", "-l", "phase=waiting,project==proj_demo,app="),
      "deployment/d_api\ndeployment/d_job\n",
    );
    assert.equal(await names("environments", "-l", "environment=env_test"), "environment/env_test\n");
    assert.equal(await names("pods", "-l", "environment=env_test"), "");
  });

  test("rejects a selector that it cannot read", async () => {
    for (const [selector, said] of [
      ["env_live", /selector "env_live" is neither KEY=VALUE nor KEY!=VALUE/],
      ["enviroment=x", /unknown key "enviroment" in the selector; did you mean environment\?/],
    ] as const) {
      const { code, stderr } = await run("get", "deployments", "-l", selector);
      assert.deepEqual([code, said.test(stderr)], [64, true], stderr);
    }
  });

  test("prints the value at a path, one per line", async () => {
    const values = async (path: string) => (await run("get", "deployments", "-o", `path=${path}`)).stdout;
    assert.equal(await values("ref.id"), "d_api\nd_job\n");
    assert.equal(await values(".spec.deployment.image"), "r.example/a:1\nr.example/a:1\n");
    assert.equal(await values("deployment.instances[*].k8sName"), "api-1\napi-2\n\n");
    assert.equal(await values("deployment.instances[1].status"), "STATUS_FAILED\n\n");
    assert.match(await values("ref"), /^\{"region":"local\.dev".*\}\n/);
    for (const [path, said] of [
      ["ref.nope", /nothing has the field "ref\.nope"; there are region, kind, id/],
      ["ref[", /path "ref\[" is not fields with dots between them/],
      ["", /the path is empty/],
    ] as const) {
      const { code, stderr } = await run("get", "deployments", "-o", `path=${path}`);
      assert.deepEqual([code, said.test(stderr)], [64, true], stderr);
    }
    assert.equal((await run("get", "deployments", "-o", "path")).code, 64);
    assert.equal((await run("get", "deployments", "-o", "json=x")).code, 64);
  });

  test("with --watch prints rows again when they change, and says what is gone", async () => {
    await apply("d_watched", "watched", "env_live");
    const { io, ended } = begin(["get", "deployments", "--watch"]);
    await eventually("the list is printed", () => assert.match(io.stdout.text, /d_watched/));
    const before = io.stdout.text;
    await apply("d_watched", "watched", "env_live", "r.example/watched:2");
    await eventually("the change is printed", () => assert.match(io.stdout.text, /watched:2/));
    const row = io.stdout.text.slice(before.length);
    assert.match(row, /^d_watched [^\n]*watched:2\n$/);
    await server.client().deleteObject({ ref: { region, kind: ObjectKind.DEPLOYMENT, id: "d_watched" } });
    await eventually("the deletion is printed", () => assert.match(io.stdout.text, /Deleting/));
    io.send("SIGINT");
    assert.equal(await ended, 130);
    assert.equal((await run("get", "deployments", "-w", "-o", "document")).code, 64);
  });
});

test("krane describe tells programs the object with its events, oldest first", async () => {
  const { object, events } = JSON.parse((await run("describe", "deployment", "api", "-o", "json")).stdout);
  assert.deepEqual([object.ref.id, object.agentSilent], ["d_api", true]);
  assert.deepEqual(
    events.map(({ event }: { readonly event: string }) => event),
    ["set", "reported"],
  );
  const { environment } = JSON.parse((await run("describe", "env/env_live", "-o", "json")).stdout);
  assert.equal(environment.workspaceId, "ws_demo");
});

test("what a silent agent reported of a pod is not shown as the present", () => {
  const pod = { k8sName: "a", status: Status.RUNNING, address: "", outdated: true, createdAtMs: 0n };
  assert.deepEqual(podStatusCell(pod, "2m"), { text: "Running, outdated, last heard 2m ago", tone: "busy" });
});
