import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { parse } from "yaml";
import { type AdminServer, startAdminServer } from "../../../test/support/admin-server.ts";
import { ciphertextOf } from "../../../test/support/ciphertext.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { FakeIo } from "../../../test/support/fake-io.ts";
import {
  ApplyDeploymentSchema,
  ReportDeploymentStatusRequest_Update_Instance_Status as Status,
} from "../../gen/ctrl/v1/deployment_pb.ts";
import { main } from "../main.ts";
import { readTextFile } from "../process/text-file.ts";

const deployment = (id: string, more = "") => `apiVersion: krane/v1
kind: Deployment
id: d_${id}
name: ${id}
namespace: demo
workspace: ws_demo
project: proj_demo
environment: env_demo
image: registry.example/${id}:1
${more}`;

const hello = `apiVersion: krane/v1
kind: Environment
id: env_hello
workspace: ws_hello
project: proj_hello
---
${deployment("hello", "replicas: 2\n").replaceAll("_demo", "_hello")}`;

let server: AdminServer;
before(async () => {
  server = await startAdminServer({ regions: ["local.dev", "other.dev"] });
  const owner = { workspaceId: "ws_demo", projectId: "proj_demo" };
  for (const region of ["local.dev", "other.dev"])
    for (const id of ["env_demo", "env_get", "env_past"])
      await server.client().applyEnvironment({ region, id, ...owner });
});
/** A command that waits for a test that has failed would go on for minutes. */
const started: FakeIo[] = [];
after(() => {
  for (const io of started) io.send("SIGINT");
  return server.stop();
});

const env = () => ({
  KRANE_SERVER: server.url,
  KRANE_TOKEN: server.tokens.readWrite,
  KRANE_REGION: "local.dev",
});

async function run(argv: readonly string[], files: Readonly<Record<string, string>> = {}, more: object = {}) {
  const io = Object.assign(new FakeIo(files), more);
  const code = await main(argv, env(), io);
  assert.equal(io.signalListeners, 0);
  return { code, stdout: io.stdout.text, stderr: io.stderr.text };
}

function start(argv: readonly string[], files: Readonly<Record<string, string>> = {}) {
  const io = new FakeIo(files);
  started.push(io);
  return { io, ended: main(argv, env(), io) };
}

/** What an agent says that has done everything, with so many pods that run. */
async function report(name: string, running: number): Promise<void> {
  const agent = server.agentClient();
  const instances = Array.from({ length: running }, (_, index) => ({
    k8sName: `${name}-${index}`,
    address: `${name}-${index}.demo:8080`,
    status: Status.RUNNING,
  }));
  await agent.reportDeploymentStatus({ change: { case: "update", value: { k8sName: name, instances } } });
  await settle();
}

async function settle(): Promise<void> {
  const { objects } = await server.client().listObjects({ region: "local.dev", includeDeleted: true });
  const cursor = objects.reduce((newest, { version }) => (version > newest ? version : newest), 0n);
  const controllers = ["deployments", "sentinels", "cilium"].map((name) => ({ name, stream: { cursor } }));
  await server.agentClient().reportAgentState({ state: { controllers } });
}

describe("krane apply", () => {
  test("says of each document what it did, and the second time that nothing changed", async () => {
    const first = await run(["apply", "-f", "hello.yaml"], { "hello.yaml": hello });
    assert.equal(first.code, 0, first.stderr);
    assert.match(
      first.stdout,
      /^environment\/env_hello created \(version \d+\)\ndeployment\/d_hello created \(version \d+\)\n$/,
    );
    const second = await run(["apply", "-f", "hello.yaml"], { "hello.yaml": hello });
    assert.equal(second.stdout, first.stdout.replaceAll("created", "unchanged"));
    const third = await run(
      ["apply", "-f", "-"],
      {},
      { readInput: async () => hello.replace("replicas: 2", "replicas: 3") },
    );
    assert.match(third.stdout, /^environment\/env_hello unchanged .*\ndeployment\/d_hello configured /);
  });

  test("with --dry-run says what would come of it, and changes nothing", async () => {
    const { code, stdout } = await run(["apply", "-f", "a.yaml", "--dry-run"], {
      "a.yaml": deployment("dry"),
    });
    assert.equal(code, 0);
    assert.equal(stdout, "deployment/d_dry would be created (dry run)\n");
    assert.equal((await run(["get", "deployment", "d_dry"])).code, 3);
  });

  test("with --dry-run promises nothing before every document has passed", async () => {
    const io = new FakeIo({ "hello.yaml": hello });
    const readOnly = { ...env(), KRANE_TOKEN: server.tokens.readOnly };
    assert.equal(await main(["apply", "-f", "hello.yaml", "--dry-run"], readOnly, io), 77);
    assert.equal(io.stdout.text, "");
  });

  test("rejects an unknown region from a flag or a document", async () => {
    const known = "unknown region nope.x; there are local.dev, other.dev\n";
    const two = { "a.yaml": `${deployment("a")}---\n${deployment("b")}` };
    const flag = await run(["apply", "-f", "a.yaml", "--region", "nope.x"], two);
    assert.deepEqual([flag.code, flag.stderr], [3, `krane: ${known}`]);
    const named = await run(["apply", "-f", "a.yaml"], { "a.yaml": deployment("a", "region: nope.x\n") });
    assert.deepEqual([named.code, named.stderr], [3, `krane: a.yaml:1: deployment/d_a: ${known}`]);
    for (const argv of [["diff"], ["delete", "--yes"]]) {
      const files = { "a.yaml": deployment("a", "region: nope.x\n") };
      const { code, stdout, stderr } = await run([...argv, "-f", "a.yaml"], files);
      assert.deepEqual([code, stdout, stderr], [3, "", `krane: ${known}`], argv.join(" "));
    }
  });

  test("takes a folder, by name, and JSON", async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "krane-apply-"));
    t.after(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, "b.yml"), deployment("second"));
    await writeFile(join(folder, "a.json"), JSON.stringify(parse(deployment("first"))));
    await writeFile(join(folder, "notes.txt"), "not a document");
    const { code, stdout, stderr } = await run(["apply", "-f", folder], {}, { readTextFile });
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^deployment\/d_first created .*\ndeployment\/d_second created .*\n$/);
  });

  test("says every mistake with its place, and sends nothing while there is one", async () => {
    const files = {
      "good.yaml": deployment("good"),
      "bad.yaml": deployment("bad", "port: 99999\nreplica: 2\n"),
    };
    const { code, stdout, stderr } = await run(["apply", "-f", "good.yaml", "bad.yaml"], files);
    assert.equal(code, 1);
    assert.equal(stdout, "");
    assert.match(stderr, /^krane: bad\.yaml:10: port must be from 1 to 65535/m);
    assert.match(stderr, /^krane: bad\.yaml:11: replica is not a known field; did you mean replicas\?$/m);
    assert.equal((await run(["get", "deployment", "d_good"])).code, 3);
  });

  test("leaves nothing behind where the control plane refuses one of several", async () => {
    await run(["apply", "-f", "a.yaml"], { "a.yaml": deployment("taken") });
    const clash = deployment("taken").replace("d_taken", "d_other");
    const { code, stderr } = await run(["apply", "-f", "a.yaml"], {
      "a.yaml": `${deployment("fresh")}---\n${clash}`,
    });
    assert.equal(code, 1);
    assert.match(stderr, /^krane: a\.yaml:\d+: deployment\/d_other: .*taken/);
    assert.equal((await run(["get", "deployment", "d_fresh"])).code, 3);
  });

  test("rejects a new deployment whose environment does not exist, unless a document has it", async () => {
    const text = deployment("alone").replace("env_demo", "env_alone");
    const refused = await run(["apply", "-f", "a.yaml"], { "a.yaml": text });
    assert.deepEqual(
      [refused.code, refused.stderr],
      [
        1,
        'krane: a.yaml:1: deployment/d_alone: environment is "env_alone", which does not exist; apply a document of kind Environment first\n',
      ],
    );
    assert.equal((await run(["apply", "-f", "a.yaml", "--dry-run"], { "a.yaml": text })).code, 1);
    assert.equal((await run(["get", "deployment", "d_alone"])).code, 3);
    const environment = `apiVersion: krane/v1
kind: Environment
id: env_alone
workspace: ws_demo
project: proj_demo
`;
    const both = { "a.yaml": `${text}---\n${environment}` };
    assert.equal((await run(["apply", "-f", "a.yaml"], both)).code, 0);
  });

  test("changes a deployment whose environment never existed, which older servers accepted", async () => {
    const owner = { workspaceId: "ws_demo", projectId: "proj_demo", environmentId: "env_never" };
    const place = {
      deploymentId: "d_old",
      k8sName: "old",
      k8sNamespace: "demo",
      image: "registry.example/old:1",
    };
    const value = create(ApplyDeploymentSchema, {
      ...owner,
      ...place,
      replicas: 1,
      cpuMillicores: 250n,
      memoryMib: 256n,
    });
    const spec = { spec: { case: "deployment", value } } as const;
    const { client, admin } = server;
    await assert.rejects(
      client().applyObject({ region: "local.dev", spec }),
      /environment_id is "env_never"/,
    );
    // An older server accepted it.
    await admin.setDeployment("local.dev", value);
    const changed = { "a.yaml": deployment("old", "replicas: 2\n").replace("env_demo", "env_never") };
    assert.match((await run(["apply", "-f", "a.yaml"], changed)).stdout, /^deployment\/d_old configured /);
  });

  test("says at once that running pods stay as they are, and names the way", async () => {
    const notice =
      "deployment/d_image: its running pods stay as they are, and only new ones get the change; to replace them, use kind: App, or a new id and name\n";
    const apply = (text: string, ...more: readonly string[]) =>
      run(["apply", "-f", "a.yaml", ...more], { "a.yaml": text });
    const one = deployment("image", "replicas: 1\n");
    const two = one.replace("image:1", "image:2");
    assert.equal((await apply(one)).stderr, "");
    assert.equal((await apply(two, "--dry-run")).stderr, notice);
    assert.equal((await apply(two)).stderr, notice);
    assert.equal((await apply(two)).stderr, "", "nothing changes");
    const scaled = await apply(two.replace("replicas: 1", "replicas: 0"));
    assert.deepEqual([scaled.code, scaled.stderr], [0, ""]);
    const idle = one.replace("image:1", "image:3").replace("replicas: 1", "replicas: 0");
    assert.equal((await apply(idle)).stderr, "", "there are no pods");
  });

  test("names a rejected field as documents do", async () => {
    await run(["apply", "-f", "a.yaml"], { "a.yaml": deployment("kept") });
    const moved = deployment("kept").replace("name: kept", "name: moved");
    const { code, stderr } = await run(["apply", "-f", "a.yaml"], { "a.yaml": moved });
    assert.equal(code, 1);
    assert.equal(
      stderr,
      'krane: a.yaml:1: deployment/d_kept: name must stay "kept" while deployment d_kept exists; use a new id\n',
    );
  });

  test("with --if-version refuses what somebody else has changed meanwhile", async () => {
    const created = await run(["apply", "-f", "a.yaml", "--if-version", "0"], {
      "a.yaml": deployment("guarded"),
    });
    assert.equal(created.code, 0, created.stderr);
    const version = /version (\d+)/.exec(created.stdout)?.[1] ?? "";
    const changed = { "a.yaml": deployment("guarded", "replicas: 2\n") };
    assert.equal((await run(["apply", "-f", "a.yaml", "--if-version", version], changed)).code, 0);
    const late = await run(["apply", "-f", "a.yaml", "--if-version", version], changed);
    assert.equal(late.code, 1);
    assert.match(late.stderr, /deployment\/d_guarded: .*version.*--if-version/);
    const several = { "a.yaml": `${deployment("x")}---\n${deployment("y")}` };
    assert.equal((await run(["apply", "-f", "a.yaml", "--if-version", "1"], several)).code, 64);
  });

  test("goes to the region that a document names, unless a flag names another", async () => {
    const files = { "a.yaml": deployment("elsewhere", "region: other.dev\n") };
    assert.equal((await run(["apply", "-f", "a.yaml"], files)).code, 0);
    assert.equal((await run(["get", "deployment", "d_elsewhere"])).code, 3);
    assert.equal((await run(["get", "deployment", "d_elsewhere", "--region", "other.dev"])).code, 0);
    const { code, stderr } = await run(["apply", "-f", "a.yaml", "--region", "local.dev"], files);
    assert.equal(code, 64);
    assert.match(stderr, /a\.yaml:1: belongs to region other\.dev, not to local\.dev/);
  });

  test("refuses an object that two documents describe, also where only one of them names the region", async () => {
    const text = `${deployment("twice")}---\n${deployment("twice", "region: local.dev\n")}`;
    const { code, stderr } = await run(["apply", "-f", "a.yaml"], { "a.yaml": text });
    assert.equal(code, 1);
    assert.match(stderr, /^krane: a\.yaml:11: id is already used by another document, at a\.yaml:1$/m);
    assert.equal((await run(["get", "deployment", "d_twice"])).code, 3);
  });

  test("with --wait ends when all pods of that version are ready", async () => {
    const files = { "a.yaml": deployment("slow", "replicas: 2\n") };
    const { io, ended } = start(["apply", "-f", "a.yaml", "--wait"], files);
    await eventually("it waits", () =>
      assert.match(io.stderr.text, /^waiting for deployment\/d_slow: the agent has not applied it yet/m),
    );
    await report("slow", 1);
    await eventually("it sees one pod", () => assert.match(io.stderr.text, /: 1\/2 pods ready\n/));
    assert.doesNotMatch(io.stdout.text, /is ready/);
    await report("slow", 2);
    assert.equal(await ended, 0, io.stderr.text);
    assert.match(io.stdout.text, /^deployment\/d_slow created .*\ndeployment\/d_slow is ready, 2\/2 pods\n$/);
  });

  test("with --wait ends with 1 after --timeout, and with 130 at Ctrl-C", async () => {
    const files = { "a.yaml": deployment("never", "replicas: 9\n") };
    const late = await run(["apply", "-f", "a.yaml", "--wait", "--timeout", "1ms"], files);
    assert.equal(late.code, 1);
    assert.match(late.stderr, /krane: not ready after 1ms: deployment\/d_never: /);
    const { io, ended } = start(["apply", "-f", "a.yaml", "--wait"], files);
    await eventually("it waits", () => assert.match(io.stderr.text, /^waiting for /m));
    io.send("SIGINT");
    assert.equal(await ended, 130);
    assert.match(io.stderr.text, /stopped waiting; the change itself continues\n$/);
    assert.equal(io.signalListeners, 0);
  });
});

describe("krane get", () => {
  before(async () => {
    await run(["apply", "-f", "a.yaml"], {
      "a.yaml": deployment("shown", "replicas: 2\n").replace("env_demo", "env_get"),
    });
    await report("shown", 2);
  });

  test("prints a table for people", async () => {
    const { code, stdout } = await run(["get", "deployments", "--environment", "env_get"]);
    assert.equal(code, 0);
    const titles = "ID        NAME         READY   PHASE   RESTARTS   AGE   IMAGE\n";
    const row = "d_shown   demo/shown   2/2     Ready              0s    registry.example/shown:1\n";
    assert.equal(stdout.replace(/\d+s /, "0s "), titles + row);
    const wide = await run(["get", "deploy", "--environment", "env_get", "-o", "wide"]);
    assert.match(wide.stdout, /^ID .* VERSION +ENVIRONMENT +REPORTED +REASON\nd_shown .* env_get +0s\n$/);
  });

  test("says what kinds there are to whoever names none", async () => {
    const { code, stderr } = await run(["get"]);
    assert.deepEqual(
      [code, stderr],
      [
        64,
        "krane: which kind? krane get apps, deployments, sentinels, policies, routes, environments, pods or all\n",
      ],
    );
  });

  test("does not take an empty id for all of a kind", async () => {
    const { code, stdout, stderr } = await run(["get", "deployment", ""]);
    assert.deepEqual([code, stdout, stderr], [64, "", "krane: the id is empty\n"]);
  });

  test("finds one object by id, by name, and by namespace and name", async () => {
    for (const argv of [
      ["deployment", "d_shown"],
      ["deployments/d_shown"],
      ["deploy", "shown"],
      ["deployment/demo/shown"],
    ]) {
      const { code, stdout } = await run(["get", ...argv]);
      assert.equal(code, 0, argv.join(" "));
      assert.match(stdout, /\nd_shown /);
    }
  });

  test("prints whole messages for programs", async () => {
    const one = await run(["get", "deployment", "d_shown", "-o", "json"]);
    const object = JSON.parse(one.stdout);
    assert.equal(object.phase, "PHASE_READY");
    assert.equal(object.spec.deployment.replicas, 2);
    assert.equal(object.settled, true);
    assert.deepEqual(object.secretNames, []);
    const yaml = await run(["get", "deployment", "d_shown", "-o", "yaml"]);
    assert.deepEqual(parse(yaml.stdout), object);
    const list = await run(["get", "deployments", "--environment", "env_get", "-o", "json"]);
    assert.deepEqual(JSON.parse(list.stdout).objects, [object]);
  });

  test("prints names that commands accept, and documents that apply accepts", async () => {
    const names = await run(["get", "deployments", "--environment", "env_get", "-o", "name"]);
    assert.equal(names.stdout, "deployment/d_shown\n");
    const { stdout } = await run(["get", "all", "--environment", "env_get", "-o", "document"]);
    assert.match(stdout, /^apiVersion: krane\/v1\nkind: Deployment\nid: d_shown\n/);
    const again = await run(["apply", "-f", "a.yaml"], { "a.yaml": stdout });
    assert.match(again.stdout, /^deployment\/d_shown unchanged /, again.stderr);
    const environment = await run(["get", "env", "env_get", "-o", "document"]);
    const applied = await run(["apply", "-f", "a.yaml"], { "a.yaml": environment.stdout });
    assert.match(applied.stdout, /^environment\/env_get unchanged /, applied.stderr);
  });

  test("sorts by a column, with numbers by their value", async () => {
    const some = ["sort-10", "sort-9"].map((id) => deployment(id).replace("env_demo", "env_past"));
    await run(["apply", "-f", "a.yaml"], { "a.yaml": some.join("---\n") });
    const sorted = await run(["get", "deployments", "--environment", "env_past", "--sort-by", "name"]);
    assert.deepEqual(sorted.stdout.match(/^d_\S+/gm), ["d_sort-9", "d_sort-10"]);
    const wrong = await run(["get", "deployments", "--environment", "env_past", "--sort-by", "colour"]);
    assert.deepEqual(
      [wrong.code, wrong.stderr],
      [64, 'krane: no column "colour"; there are ID, NAME, READY, PHASE, RESTARTS, AGE, IMAGE\n'],
    );
    for (const id of ["d_sort-9", "d_sort-10"]) await run(["delete", "deployment", id, "--yes"]);
  });

  test("says on standard error that there is nothing, and what it does not know", async () => {
    const none = await run(["get", "sentinels"]);
    assert.deepEqual(none, { code: 0, stdout: "", stderr: "no sentinels in region local.dev\n" });
    assert.deepEqual(JSON.parse((await run(["get", "sentinels", "-o", "json"])).stdout).objects, []);
    const missing = await run(["get", "sentinel", "s_x"]);
    assert.equal(missing.code, 3);
    assert.match(missing.stderr, /^krane: no sentinel s_x in region local\.dev; the region has none\n$/);
    const wrong = await run(["get", "deploymnets"]);
    assert.equal(wrong.code, 3);
    assert.match(wrong.stderr, /did you mean deployment\?/);
    assert.equal((await run(["get", "deployment/"])).code, 64);
    assert.equal((await run(["get", "deployment/a", "b"])).code, 64);
  });

  test("lists environments, and all kinds at once", async () => {
    await run(["apply", "-f", "hello.yaml"], { "hello.yaml": hello });
    const { stdout } = await run(["get", "env", "env_hello"]);
    assert.equal(
      stdout,
      "ID          WORKSPACE   PROJECT      SECRETS\nenv_hello   ws_hello    proj_hello   0\n",
    );
    assert.equal((await run(["get", "env", "env_none"])).code, 3);
    assert.match(
      (await run(["get", "all"])).stdout,
      /^OBJECT .*\n(?:.*\n)*deployment\/d_shown +demo\/shown +2\/2 +Ready\n/,
    );
  });
});

test("krane describe shows what is wanted, what runs and what happened", async () => {
  await run(["apply", "-f", "a.yaml"], { "a.yaml": deployment("told", "command: [node, server.js]\n") });
  await report("told", 1);
  const { code, stdout } = await run(["describe", "deployment/told"]);
  assert.equal(code, 0);
  assert.match(
    stdout,
    /^Object: +deployment\/d_told\nName: +demo\/told\nRegion: +local\.dev\nPhase: +Ready\n/,
  );
  assert.match(stdout, /\nVersion: +\d+, processed by the agent\n/);
  assert.match(stdout, /\nWanted:\n {2}apiVersion: krane\/v1\n {2}kind: Deployment\n {2}id: d_told\n/);
  assert.match(stdout, /\n {2}command:\n {4}- node\n {4}- server\.js\n/);
  assert.match(
    stdout,
    /\nPods:\n {2}NAME +STATUS +RESTARTS +AGE +ADDRESS\n {2}told-0 +Running +told-0\.demo:8080\n/,
  );
  assert.match(
    stdout,
    /\nEvents:\n {2}AGE +EVENT +VERSION +BY +OUTCOME\n {2}\d+s +set +\d+ +ann\n {2}\d+s +reported .*\n$/,
  );
  assert.equal((await run(["describe", "deployment"])).code, 64);
  assert.equal((await run(["describe", "deployment", "none"])).code, 3);
});

describe("krane scale", () => {
  before(() => run(["apply", "-f", "a.yaml"], { "a.yaml": deployment("scaled", "replicas: 2\n") }));

  test("changes the number of pods, and waits for them", async () => {
    const { io, ended } = start(["scale", "deployment", "scaled", "--replicas", "0", "--wait"]);
    await eventually("it is ordered", () => assert.match(io.stdout.text, /scaled/));
    await report("scaled", 0);
    assert.equal(await ended, 0);
    assert.match(
      io.stdout.text,
      /^deployment\/d_scaled scaled from 2 to 0 \(version \d+\)\ndeployment\/d_scaled is paused, 0\/0 pods\n$/,
    );
  });

  test("says that nothing changed where there are that many already", async () => {
    await run(["scale", "deployment", "scaled", "--replicas", "4"]);
    const { code, stdout } = await run(["scale", "deployment", "scaled", "--replicas", "4"]);
    assert.equal(code, 0);
    assert.match(stdout, /^deployment\/d_scaled unchanged at 4 \(version \d+\)\n$/);
  });

  test("refuses what has no pods, what is not there and what is no number", async () => {
    assert.equal((await run(["scale", "policy", "x", "--replicas", "1"])).code, 64);
    assert.equal((await run(["scale", "deployment", "none", "--replicas", "1"])).code, 3);
    assert.equal((await run(["scale", "deployment", "scaled", "--replicas", "-1"])).code, 64);
    const tooMany = await run(["scale", "deployment", "scaled", "--replicas", "2147483647"]);
    assert.deepEqual(
      [tooMany.code, tooMany.stderr.includes("Must be a whole number from 0 to 10000.")],
      [64, true],
    );
    assert.equal((await run(["scale", "deployment", "scaled"])).code, 64);
    assert.equal(
      (await run(["scale", "deployment", "scaled", "--replicas", "1", "--if-version", "1"])).code,
      1,
    );
  });
});

describe("krane delete", () => {
  test("asks first, and takes anything but yes for no", async () => {
    await run(["apply", "-f", "a.yaml"], { "a.yaml": deployment("asked") });
    const questions: string[] = [];
    const answering = (answer: string | undefined) => ({
      ask: async (question: string) => {
        questions.push(question);
        return answer;
      },
    });
    const no = await run(["delete", "deployment", "asked"], {}, answering(""));
    assert.deepEqual([no.code, no.stdout, no.stderr], [1, "", "nothing was deleted\n"]);
    assert.deepEqual(questions, ["Delete deployment/d_asked (demo/asked) in local.dev? [y/N] "]);
    const nobody = await run(["delete", "deployment", "asked"], {}, answering(undefined));
    assert.equal(nobody.code, 64);
    assert.match(nobody.stderr, /--yes/);
    assert.equal((await run(["delete", "deployment", "asked"])).code, 64);
    const yes = await run(["delete", "deployment", "asked"], {}, answering("y"));
    assert.match(yes.stdout, /^deployment\/d_asked is being deleted \(version \d+\)\n$/);
  });

  test("with --wait ends when nothing of it is left", async () => {
    await run(["apply", "-f", "a.yaml"], { "a.yaml": deployment("going") });
    await report("going", 1);
    const { io, ended } = start(["delete", "deployment", "d_going", "--yes", "--wait"]);
    await eventually("it waits", () =>
      assert.match(io.stderr.text, /waiting for deployment\/d_going: being deleted, 1 pod left/),
    );
    await server
      .agentClient()
      .reportDeploymentStatus({ change: { case: "delete", value: { k8sName: "going" } } });
    assert.equal(await ended, 0, io.stderr.text);
    assert.match(io.stdout.text, /is being deleted .*\ndeployment\/d_going is deleted\n$/);
    assert.equal((await run(["scale", "deployment", "d_going", "--replicas", "1"])).code, 3);
  });

  test("leaves what was deleted out of lists, unless it is asked for", async () => {
    await run(["apply", "-f", "a.yaml"], { "a.yaml": deployment("past").replace("env_demo", "env_past") });
    await run(["delete", "deployment", "d_past", "--yes"]);
    await server
      .agentClient()
      .reportDeploymentStatus({ change: { case: "delete", value: { k8sName: "past" } } });
    assert.equal((await run(["get", "deployments", "--environment", "env_past"])).stdout, "");
    const { stdout } = await run(["get", "deployments", "--environment", "env_past", "--deleted"]);
    assert.match(stdout, /\nd_past +demo\/past +0\/0 +Deleted /);
    const described = await run(["describe", "deployment", "d_past"]);
    assert.match(described.stdout, /\nWanted: nothing; it was deleted\n/);
    assert.doesNotMatch(described.stdout, /replicas/);
  });

  test("of files goes backwards, and says what is not there", async () => {
    await run(["apply", "-f", "hello.yaml"], { "hello.yaml": hello });
    const gone = await run(["delete", "-f", "hello.yaml", "--yes"], { "hello.yaml": hello });
    assert.match(
      gone.stdout,
      /^deployment\/d_hello is being deleted .*\nenvironment\/env_hello is deleted\n$/,
    );
    assert.equal(gone.code, 0, gone.stderr);
    const again = await run(["delete", "-f", "hello.yaml", "--yes"], { "hello.yaml": hello });
    assert.equal(again.code, 3);
    assert.match(again.stderr, /environment\/env_hello does not exist/);
    assert.match(again.stdout, /^deployment\/d_hello is being deleted /, "its pods may still run");
    await server
      .agentClient()
      .reportDeploymentStatus({ change: { case: "delete", value: { k8sName: "hello" } } });
    const third = await run(["delete", "-f", "hello.yaml", "--yes", "--wait"], { "hello.yaml": hello });
    assert.equal(third.stdout, "deployment/d_hello is already deleted\n");
  });

  test("of files leaves an environment to the end, wherever it stands", async () => {
    const backwards = hello.split("---\n").reverse().join("\n---\n");
    await run(["apply", "-f", "a.yaml"], { "a.yaml": backwards });
    const { code, stderr } = await run(["delete", "-f", "a.yaml", "--yes"], { "a.yaml": backwards });
    assert.equal(code, 0, stderr);
  });

  test("of files needs kinds and ids, and takes two documents of one id for one deletion", async () => {
    await run(["apply", "-f", "a.yaml"], { "a.yaml": `${deployment("one")}---\n${deployment("two")}` });
    const environment = "apiVersion: krane/v1\nkind: Environment\nid: env_demo\nworkspace: ws_other\n";
    await server.client().applyEnvironment({
      region: "local.dev",
      id: "env_only",
      workspaceId: "ws_demo",
      projectId: "proj_demo",
    });
    const contradictory = [
      deployment("one"),
      deployment("one", "region: local.dev\nreplicas: -1\n").replace("registry", "elsewhere"),
      deployment("two").replace("name: two", "name: one"),
      environment.replace("env_demo", "env_only"),
    ].join("---\n");
    const applied = await run(["apply", "-f", "a.yaml"], { "a.yaml": contradictory });
    assert.equal(applied.code, 1);
    const { code, stdout, stderr } = await run(["delete", "-f", "a.yaml", "--yes"], {
      "a.yaml": contradictory,
    });
    assert.equal(code, 0, stderr);
    assert.deepEqual(stdout.match(/^\S+/gm), [
      "deployment/d_two",
      "deployment/d_one",
      "environment/env_only",
    ]);
  });

  test("of files refuses what could mean something else than the person thinks", async () => {
    await run(["apply", "-f", "a.yaml"], { "a.yaml": deployment("kept") });
    for (const [text, complaint] of [
      [
        deployment("kept", "regoin: other.dev\n"),
        /a\.yaml:10: regoin is not a known field; did you mean region/,
      ],
      [deployment("kept", "region: 7\n"), /region must be text/],
      [deployment("kept").replace("id: d_kept\n", ""), /a\.yaml:1: id /],
      [deployment("kept").replace("id: d_kept", "id: [d_kept]"), /a\.yaml:3: id must be text/],
      [deployment("kept").replace("krane/v1", "apps/v1"), /apiVersion must be krane\/v1/],
      [`${deployment("kept")}---\nkind: [`, /is not valid/],
    ] as const) {
      const { code, stdout, stderr } = await run(["delete", "-f", "a.yaml", "--yes"], { "a.yaml": text });
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, complaint);
    }
    const view = await run(["get", "deployment", "d_kept", "-o", "json"]);
    assert.equal(JSON.parse(view.stdout).desired, "DESIRED_RUNNING");
  });

  test("without being asked takes an id or a namespace with a name, and no name alone", async () => {
    await run(["apply", "-f", "a.yaml"], { "a.yaml": deployment("plain") });
    const { code, stderr } = await run(["delete", "deployment", "plain", "--yes"]);
    assert.equal(code, 64);
    assert.match(
      stderr,
      /^krane: --yes needs an id or NAMESPACE\/NAME, but plain is only a name; to delete it: krane delete deployment d_plain --yes\n$/,
    );
    const view = await run(["get", "deployment", "d_plain", "-o", "json"]);
    assert.equal(JSON.parse(view.stdout).desired, "DESIRED_RUNNING");
    assert.equal((await run(["delete", "deployment", "demo/plain", "--yes"])).code, 0);
  });

  test("needs to know what", async () => {
    assert.equal((await run(["delete", "--yes"])).code, 64);
    assert.equal((await run(["delete", "deployment", "--yes"])).code, 64);
    assert.equal((await run(["delete", "deployment", "none", "--yes"])).code, 3);
    assert.equal((await run(["delete", "deployment", "x", "--yes", "-f", "a.yaml"])).code, 64);
  });
});

describe("krane diff", () => {
  const policy = (port: string) => `apiVersion: krane/v1
kind: Policy
id: p_compared
name: compared
namespace: demo
policy:
  apiVersion: cilium.io/v2
  kind: CiliumNetworkPolicy
  spec: {endpointSelector: {}, ingress: [{toPorts: [{ports: [{port: "${port}", protocol: TCP}]}]}]}
`;

  test("names the fields that differ, and exits with 2", async () => {
    await run(["apply", "-f", "a.yaml"], { "a.yaml": `${deployment("compared")}---\n${policy("80")}` });
    const changed = deployment("compared", "replicas: 3\ncommand: [sh]\ncpu: 500m\n").replace(":1", ":2");
    const { code, stdout } = await run(["diff", "-f", "a.yaml"], {
      "a.yaml": `${changed}---\n${policy("81")}`,
    });
    assert.equal(code, 2);
    assert.equal(
      stdout,
      `deployment/d_compared
  image: "registry.example/compared:1" → "registry.example/compared:2"
  replicas: 1 → 3
  cpu: "250m" → "500m"
  command[0]: none → "sh"
policy/p_compared
  policy.spec.ingress[0].toPorts[0].ports[0].port: "80" → "81"
`,
    );
  });

  test("says nothing and exits with 0 where nothing differs", async () => {
    await run(["apply", "-f", "a.yaml"], { "a.yaml": deployment("same", "replicas: 2\n") });
    const same = await run(["diff", "-f", "a.yaml"], {
      "a.yaml": deployment("same", "replicas: 2\ncpu: 0.25\n"),
    });
    assert.deepEqual(same, { code: 0, stdout: "", stderr: "" });
  });

  test("takes the region for a place and not for a field", async () => {
    const files = { "a.yaml": deployment("placed", "region: local.dev\n") };
    await run(["apply", "-f", "a.yaml"], files);
    assert.deepEqual(await run(["diff", "-f", "a.yaml"], files), { code: 0, stdout: "", stderr: "" });
  });

  test("leaves secrets out, which the control plane does not show", async () => {
    const files = { "a.yaml": deployment("secretive", `encryptedSecrets: {KEY: ${ciphertextOf("KEY")}}\n`) };
    const applied = await run(["apply", "-f", "a.yaml"], files);
    assert.equal(applied.code, 0, applied.stderr);
    assert.deepEqual(await run(["diff", "-f", "a.yaml"], files), { code: 0, stdout: "", stderr: "" });
  });

  test("shows what is not there yet, and what would be there no more", async () => {
    const created = await run(["diff", "-f", "a.yaml"], { "a.yaml": deployment("new") });
    assert.equal(created.code, 2);
    assert.match(created.stdout, /^deployment\/d_new does not exist in local\.dev; apply would create it\n/);
    await run(["apply", "-f", "a.yaml"], { "a.yaml": deployment("less", "shutdownSignal: SIGINT\n") });
    const less = await run(["diff", "-f", "a.yaml"], { "a.yaml": deployment("less") });
    assert.equal(less.stdout, 'deployment/d_less\n  shutdownSignal: "SIGINT" → (removed)\n');
  });
});

test("a path without -f gets the command that has one, before any connection", async () => {
  for (const [argv, said] of [
    [["apply", "hello.yaml"], "krane: hello.yaml needs a -f: krane apply -f hello.yaml\n"],
    [["diff", "a.yaml", "b.yaml"], "krane: a.yaml needs a -f: krane diff -f a.yaml -f b.yaml\n"],
    [["render", "hello.yaml"], "krane: hello.yaml needs a -f: krane render -f hello.yaml\n"],
    [["apply"], "krane: nothing to apply: pass -f FILE\n"],
  ] as const) {
    const io = new FakeIo();
    assert.equal(await main(argv, {}, io), 64);
    assert.equal(io.stderr.text, said);
  }
});
