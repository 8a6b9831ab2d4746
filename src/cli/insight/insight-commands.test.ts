import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type AdminServer, startAdminServer } from "../../../test/support/admin-server.ts";
import { applyDeployment } from "../../../test/support/deployment-messages.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { startFaultProxy } from "../../../test/support/fault-proxy.ts";
import { applySentinel } from "../../../test/support/sentinel-messages.ts";
import {
  BreakerStatus_State as Breaker,
  LeaseStatus_Role,
  ObjectStatus_Outcome as Outcome,
  StreamStatus_State as Stream,
} from "../../gen/krane/v1/agent_pb.ts";
import { main } from "../main.ts";

const region = "local.dev";
let server: AdminServer;
before(async () => {
  server = await startAdminServer({ regions: [region, "silent.dev"] });
  const { admin } = server;
  await admin.setDeployment(region, applyDeployment({ deploymentId: "d_web", port: 99_999 }));
  await admin.setDeployment(region, applyDeployment({ deploymentId: "d_api", k8sName: "api" }));
  await report();
});
/** A command that follows for a test that has failed would go on for ever. */
const started: FakeIo[] = [];
after(() => {
  for (const io of started) io.send("SIGINT");
  return server.stop();
});

const parked = {
  controller: "deployments",
  key: "acme/web",
  id: "d_web",
  desiredVersion: 1n,
  outcome: Outcome.PARKED,
  reason: "port must be from 1 to 65535, but is 99999",
  fieldPath: "port",
};

/** What an agent says that has one object in trouble, one deletion held back and one stream down. */
async function report(): Promise<void> {
  const open = { state: Stream.OPEN, cursor: 2n, settledUpTo: 2n };
  const reason = { lastErrorCode: "unavailable", lastError: "\u001b[31mno route" };
  const down = { state: Stream.BACKING_OFF, ...reason, ignoredResponses: 3n };
  const controllers = [
    {
      name: "deployments",
      stream: open,
      queue: { waiting: 3, inFlight: 1 },
      breaker: { state: Breaker.CLOSED },
      objects: 3,
      parked: 1,
      blockedDeletions: 1,
    },
    { name: "sentinels", stream: down, breaker: { state: Breaker.OPEN } },
    {
      name: "cilium",
      stream: open,
      caches: [{ kind: "cilium.io/CiliumNetworkPolicy", lastError: "404 NotFound" }],
    },
  ];
  const held = { controller: "deployments", key: "acme/old", id: "d_old", reason: "too young" };
  await server.agentClient(region).reportAgentState({
    state: {
      instanceId: "ins_1",
      region,
      version: "1.2.3",
      controllers,
      warnings: ["trusted\u001b code only"],
    },
    troubledObjects: [parked],
    blockedDeletions: [{ ...held, suspectedPasses: 4, firstSuspectedMs: 1n }],
  });
}

function start(...argv: readonly string[]) {
  return startAt(server.url, ...argv);
}

function startAt(url: string, ...argv: readonly string[]) {
  const io = new FakeIo();
  started.push(io);
  const { tokens } = server;
  const env = { KRANE_SERVER: url, KRANE_TOKEN: tokens.readWrite, KRANE_REGION: region };
  return { io, ended: main(argv, env, io) };
}

async function run(...argv: readonly string[]) {
  const { io, ended } = start(...argv);
  const code = await ended;
  assert.equal(io.signalListeners, 0);
  return { code, stdout: io.stdout.text, stderr: io.stderr.text };
}

describe("krane why", () => {
  test("shows cause, reason, desired, applied and live state, and what to do", async () => {
    const { code, stdout } = await run("why", "web");
    assert.equal(code, 0);
    assert.equal(
      stdout,
      `deployment/d_web (acme/web): The spec is invalid; nothing is applied until it changes.

Cause:       invalid-spec
Reason:      port must be from 1 to 65535, but is 99999
Desired:     1 pod of registry.example/acme/web:1, each with 250m CPU and 256Mi memory (version 1)
Applied:     rejected; nothing is applied
Live:        no status report yet
What to do:  Fix port and apply it again.
`,
    );
  });

  test("takes a kind and an id, both in one, a name, or a namespace and a name", async () => {
    for (const named of [["deployment", "d_web"], ["deploy/web"], ["d_web"], ["web"], ["acme/web"]]) {
      const { stdout } = await run("why", ...named, "-o", "json");
      const { object, cause } = JSON.parse(stdout);
      assert.deepEqual([object, cause], ["deployment/d_web", "invalid-spec"], named.join(" "));
    }
    assert.equal((await run("why", "deployment")).code, 64);
    assert.equal((await run("why", "pod", "web")).code, 64);
  });

  test("answers for what only the agent knows, and is not found where nobody does", async () => {
    const { code, stdout } = await run("why", "deployment", "d_old");
    assert.equal(code, 0);
    assert.match(stdout, /^Cause: +deletion-blocked$/m);
    const unknown = await run("why", "nobody", "-o", "yaml");
    assert.equal(unknown.code, 3);
    assert.match(unknown.stdout, /^cause: unknown-object$/m);
  });
});

test("krane why explains that no agent manages an environment", async () => {
  const owners = { workspaceId: "ws_1a2B3c4D", projectId: "proj_1a2B3c4D" };
  await server.client().applyEnvironment({ region, id: "env_1a2B3c4D", ...owners });
  const { code, stdout, stderr } = await run("why", "env_1a2B3c4D");
  assert.deepEqual([code, stdout], [64, ""]);
  assert.match(
    stderr,
    /^krane: env_1a2B3c4D is an environment; no agent manages it, .*see krane describe env env_1a2B3c4D\n$/,
  );
});

describe("krane status", () => {
  test("shows each controller in a line, and below what is wrong", async () => {
    const { stdout } = await run("status");
    assert.match(stdout, /^Region local\.dev: agent 1\.2\.3, last heard \d+s ago, newest version 2$/m);
    assert.match(stdout, /^ {2}deployments +open +2 +0 +0 +4 +sent +3 +1 +0 +0 +0 +1$/m);
    assert.match(stdout, /^ {2}sentinels +down +0 +0 +0 +0 +held back/m);
    assert.match(stdout, /^ {2}sentinels: stream: unavailable: +\[31mno route$/m);
    assert.match(stdout, /^ {2}sentinels: a server on an old database still answers: 3 responses ignored/m);
    assert.match(stdout, /^ {2}cilium: cilium\.io\/CiliumNetworkPolicy: not loaded yet: 404 NotFound$/m);
    assert.match(stdout, /^ {2}warning: trusted +code only$/m);
    assert.match(stdout, /^ {2}1 held-back deletion: krane deletions list --region local\.dev$/m);
    assert.match(stdout, /^Region silent\.dev: no agent has ever connected; newest version 0$/m);
  });

  test("warns of two clusters that claim one region, and so does krane why", async (t) => {
    const claimed = "claimed.dev";
    const { agentClient, url, tokens, stop } = await startAdminServer({ regions: [claimed] });
    t.after(stop);
    for (const [clusterId, instanceId] of [
      ["uid-a", "ins_a"],
      ["uid-b", "ins_b"],
    ] as const)
      await agentClient(claimed).reportAgentState({ state: { instanceId, clusterId, region: claimed } });
    const expected =
      /^ *warning: two clusters claim region claimed\.dev: cluster uid-b \(agent ins_b\) and cluster uid-a \(agent ins_a, last heard \d+s ago\); their reports overwrite each other$/m;
    const io = new FakeIo();
    const env = { KRANE_SERVER: url, KRANE_TOKEN: tokens.readWrite, KRANE_REGION: claimed };
    await main(["status"], env, io);
    await main(["why", "nothing"], env, io);
    assert.match(io.stdout.text, expected);
    assert.match(io.stderr.text, expected);
  });

  test("says that the state of an agent of the original is inferred", async (t) => {
    const { agentClient, url, tokens, stop } = await startAdminServer({ regions: [region] });
    const ending = new AbortController();
    t.after(async () => {
      ending.abort();
      await stop();
    });
    // It sends no RegionKey, and never its state.
    const stream = agentClient().watchDeployments({ region }, { signal: ending.signal });
    const reading = stream[Symbol.asyncIterator]().next();
    reading.catch(() => undefined);
    await eventually("its stream is shown", async () => {
      const io = new FakeIo();
      await main(["status"], { KRANE_SERVER: url, KRANE_TOKEN: tokens.readWrite }, io);
      assert.match(
        io.stdout.text,
        /^Region local\.dev: agent of the original \(state inferred from its streams\), last heard \d+s ago/m,
      );
      assert.match(io.stdout.text, /^ {2}deployments +open/m);
    });
  });

  test("names the leader, and the standbys that were heard", async (t) => {
    const { agentClient, url, tokens, stop } = await startAdminServer({ regions: [region] });
    t.after(stop);
    const client = agentClient(region);
    const status = async () => {
      const io = new FakeIo();
      await main(["status"], { KRANE_SERVER: url, KRANE_TOKEN: tokens.readWrite }, io);
      return io.stdout.text;
    };
    const lease = { role: LeaseStatus_Role.LEADER, leader: "ins_1" };
    await client.reportAgentState({ state: { instanceId: "ins_1", region, lease } });
    assert.match(await status(), /^ {2}leader: ins_1 for .*\n {2}standbys: none heard$/m);
    await client.reportStandby({ instanceId: "ins_2", version: "1.2.3" });
    assert.match(await status(), /^ {2}standbys: ins_2 \(last heard \d+s ago\)$/m);
  });

  test("shows one region where it is asked for, and everything to programs", async () => {
    assert.doesNotMatch((await run("status", "--region", "silent.dev")).stdout, /local\.dev/);
    const { agents } = JSON.parse((await run("status", "-o", "json")).stdout);
    assert.equal(agents[0].state.controllers[0].stream.cursor, "2");
  });

  test("says that reports are held back only while none is let through", async () => {
    const controllers = [{ name: "deployments", breaker: { state: Breaker.HALF_OPEN } }];
    await server.agentClient("silent.dev").reportAgentState({ state: { version: "1", controllers } });
    const { stdout } = await run("status", "--region", "silent.dev");
    assert.match(stdout, /^ {2}deployments +not started +0 +0 +0 +0 +sent/m);
  });

  test("shows the seals while there is something to do about them, summed by kind", async () => {
    const policies = { kind: "cilium.io/CiliumNetworkPolicy", synced: true, current: 2 };
    const seals = [
      {
        kind: "apps/ReplicaSet",
        synced: true,
        current: 5,
        adopted: 1,
        older: [{ keyId: "0ld", objects: 3 }],
      },
      { ...policies, older: [{ keyId: "0ld", objects: 0 }], unknownKey: 4 },
    ];
    const others = [{ ...policies, older: [{ keyId: "0ld", objects: 1 }], otherRegion: 6 }];
    const report = (controllers: object[]) =>
      server.agentClient("silent.dev").reportAgentState({ state: { version: "1", controllers } });
    await report([
      { name: "deployments", seals, sealKeyId: "n3w", resync: {} },
      { name: "cilium", seals: others, sealKeyId: "n3w", resync: {} },
    ]);
    const { stdout } = await run("status", "--region", "silent.dev");
    assert.match(
      stdout,
      /^ {2}SEALED +KEY n3w +OLDER KEY 0ld +ADOPTED +UNSEALED +OTHER REGION +UNKNOWN KEY/m,
    );
    assert.match(stdout, /^ {2}apps\/ReplicaSet +5 +3 +1 +0 +0 +0 +0$/m);
    assert.match(stdout, /^ {2}cilium\.io\/CiliumNetworkPolicy +4 +1 +0 +0 +6 +4 +0$/m);
    assert.match(stdout, /^ {2}keep the key 0ld: 4 objects are sealed with it$/m);
    const done = { ...policies, older: [{ keyId: "0ld", objects: 0 }] };
    await report([{ name: "cilium", seals: [done], sealKeyId: "n3w", resync: {} }]);
    assert.match(
      (await run("status", "--region", "silent.dev")).stdout,
      /^ {2}the key 0ld can be removed: no object is sealed with it$/m,
    );
    for (const controller of [
      { seals: [done] },
      { seals: [done], resync: {}, queue: { waiting: 1 } },
      { seals: [{ ...done, synced: false }], resync: {} },
    ]) {
      await report([{ name: "cilium", sealKeyId: "n3w", ...controller }]);
      assert.match(
        (await run("status", "--region", "silent.dev")).stdout,
        /keep the key 0ld: not all objects/,
      );
    }
    await report([{ name: "cilium", seals: [policies], sealKeyId: "n3w", resync: {} }]);
    assert.doesNotMatch((await run("status", "--region", "silent.dev")).stdout, /SEALED/);
  });

  test("shows how many versions a controller is behind, of its own kind alone", async () => {
    const controllers = ["deployments", "sentinels"].map((name) => ({ name }));
    await server.agentClient("silent.dev").reportAgentState({ state: { version: "1", controllers } });
    const spec = applyDeployment({ deploymentId: "d_new", k8sName: "new" });
    await server.store.put("silent.dev", "deployment", spec, { by: "ann", atMs: 0 });
    const { stdout } = await run("status", "--region", "silent.dev");
    assert.match(stdout, /^ {2}deployments +not started +0 +1 +0 /m);
    assert.match(stdout, /^ {2}sentinels +not started +0 +0 +0 /m);
  });
});

test("a region that is not known is not found, with those that are", async () => {
  for (const argv of [
    ["status"],
    ["status", "-o", "json"],
    ["deletions", "list"],
    ["deletions", "release", "deployments", "acme/old"],
    ["events"],
    ["events", "deployment", "d_web"],
    ["why", "web"],
    ["get", "deployments"],
    ["get", "deployment", "d_web"],
    ["get", "environments"],
    ["secrets", "list", "env_1"],
  ]) {
    const { code, stdout, stderr } = await run(...argv, "--region", "nope.x");
    assert.equal(stderr, "krane: unknown region nope.x; there are local.dev, silent.dev\n", argv.join(" "));
    assert.deepEqual([code, stdout], [3, ""], argv.join(" "));
  }
});

describe("krane events", () => {
  test("shows what happened, the newest last, of everything or of one object", async () => {
    const all = await run("events");
    assert.match(
      all.stdout,
      /^TIME.*\n.*deployment\/d_web +set +1 .*\n.*deployment\/d_api +set +2 .*\n.*troubled/,
    );
    const one = await run("events", "deployment", "api");
    assert.doesNotMatch(one.stdout, /d_web/);
    assert.match(one.stdout, /d_api +set/);
    const { events } = JSON.parse((await run("events", "deployments", "--limit", "1", "-o", "json")).stdout);
    assert.deepEqual([events.length, events[0].event], [1, "troubled"]);
    assert.equal((await run("events", "--limit", "0")).code, 64);
  });

  test("has a history of environments too, and finds one that is not there in no other", async () => {
    await server.client().applyEnvironment({ region, id: "env_7", workspaceId: "ws_7", projectId: "p_7" });
    const { stdout } = await run("events", "environment", "env_7");
    assert.match(stdout, /environment\/env_7 +set/);
    assert.match((await run("events", "environments")).stdout, /environment\/env_7 +set/);
    assert.match((await run("describe", "env", "env_7")).stdout, /Events:\n.*\n.*set .*ann/);
    const none = await run("events", "environment", "env_8");
    assert.deepEqual([none.code, none.stdout], [3, ""]);
    assert.match(none.stderr, /no environment env_8 .*env_7/);
    await server.client().deleteEnvironment({ region, id: "env_7" });
    assert.match((await run("events", "environment", "env_7")).stdout, /removed/);
  });

  test("has the newest last for programs too", async () => {
    const { events } = JSON.parse((await run("events", "deployments", "-o", "json")).stdout) as {
      events: { event: string }[];
    };
    assert.deepEqual(
      events.map(({ event }) => event),
      ["set", "set", "troubled"],
    );
  });

  test("does not find what is not there and never was", async () => {
    const { code, stdout, stderr } = await run("events", "deployment", "nope");
    assert.deepEqual([code, stdout], [3, ""]);
    assert.match(stderr, /no deployment nope in region local\.dev; there are/);
  });

  test("--follow prints new events, and ends with Ctrl-C", async () => {
    const { io, ended } = start("events", "deployment", "d_api", "--follow", "--limit", "1", "-o", "json");
    await eventually("the backlog is there", () => assert.match(io.stdout.text, /"set"/));
    await server.admin.deleteDeployment(region, "d_api");
    await eventually("the deletion is told", () => assert.match(io.stdout.text, /"stopped"/));
    io.send("SIGINT");
    assert.equal(await ended, 130);
    const lines = io.stdout.text.trimEnd().split("\n");
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).event),
      ["set", "stopped"],
    );
    assert.equal(io.stderr.text, "");
  });
});

describe("krane events --follow", () => {
  const names = (io: FakeIo) =>
    io.stdout.text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line).ref.id]));

  test("goes on where it was after the connection was lost", async (t) => {
    const proxy = await startFaultProxy(t, Number(new URL(server.url).port));
    await server.admin.setSentinel(region, applySentinel({ sentinelId: "s_1", k8sName: "one" }));
    const { io, ended } = startAt(proxy.url, "events", "sentinels", "--follow", "-o", "json");
    await eventually("the backlog is there", () => assert.deepEqual(names(io), ["s_1"]));
    proxy.refuse(true);
    proxy.cut();
    await server.admin.setSentinel(region, applySentinel({ sentinelId: "s_2", k8sName: "two" }));
    await eventually("the loss is told", () => assert.match(io.stderr.text, /does not respond; retrying/));
    proxy.refuse(false);
    await eventually("what happened meanwhile is told", () => assert.deepEqual(names(io), ["s_1", "s_2"]));
    io.send("SIGTERM");
    assert.equal(await ended, 143);
  });

  test("ends when its reader has gone away", async () => {
    const { io, ended } = start("events", "deployments", "--follow");
    io.stdout.backlogBytes = Number.POSITIVE_INFINITY;
    assert.equal(await ended, 0);
  });

  test("says at once that nobody answers where nobody ever did", async (t) => {
    const proxy = await startFaultProxy(t, Number(new URL(server.url).port));
    proxy.refuse(true);
    assert.equal(await startAt(proxy.url, "events", "--follow").ended, 69);
  });
});

describe("krane deletions", () => {
  test("says that there are more than the agent lists", async () => {
    await server.agentClient("silent.dev").reportAgentState({
      state: { instanceId: "ins_2", controllers: [{ name: "deployments", blockedDeletions: 250 }] },
      blockedDeletions: [{ controller: "deployments", key: "acme/one" }],
    });
    const listed = await run("deletions", "list", "--region", "silent.dev");
    assert.match(listed.stderr, /^1 of 250 are shown/m);
    const { stdout } = await run("status", "--region", "silent.dev");
    assert.match(stdout, /^ {2}250 held-back deletions: krane deletions list --region silent\.dev$/m);
    assert.equal((await run("deletions", "list")).stderr, "");
  });

  test("lists what is held back, and releases it once for all", async () => {
    const { stdout } = await run("deletions", "list");
    assert.match(stdout, /^deployments +acme\/old +d_old +4 +\d+d +too young$/m);
    const { blockedDeletions } = JSON.parse((await run("deletions", "list", "-o", "json")).stdout);
    assert.equal(blockedDeletions[0].key, "acme/old");
    const unknown = await run("deletions", "release", "deployments", "acme/other");
    assert.equal(unknown.code, 3);
    const released = await run("deletions", "release", "deployments", "acme/old");
    assert.equal(released.stdout, "the deletion of deployments acme/old is released\n");
    const answer = await server.agentClient(region).reportAgentState({
      state: { instanceId: "ins_1" },
      blockedDeletions: [{ controller: "deployments", key: "acme/old" }],
    });
    assert.deepEqual(
      answer.releasedDeletions.map(({ controller, key }) => [controller, key]),
      [["deployments", "acme/old"]],
    );
  });
});
