// Who gets no logs, and what they are told.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { eventually } from "../../support/eventually.ts";
import { endless, finite, stamped } from "../../support/printed-logs.ts";
import { createLogWorld } from "./log-world.ts";

describe("krane logs is refused", () => {
  test("to a token without the role, and granted to one with it", async (t) => {
    const world = await createLogWorld(t);
    await world.startAgent();
    await world.deploy();
    world.run(finite([stamped(1, 1, "one")]));
    for (const token of [world.server.tokens.readOnly, world.server.tokens.readWrite]) {
      const { io, ended } = world.logs(["web"], { token });
      assert.equal(await ended, 77);
      assert.match(io.stderr.text, /may not read logs; use one with the role logs or read-write\+logs/);
    }
    assert.deepEqual(world.asked, []);
    assert.equal(await world.logs(["web"]).ended, 0);
    const change = world.server
      .client(world.server.tokens.logs)
      .deleteApp({ region: "local.dev", id: "web" });
    await assert.rejects(change, (error) => ConnectError.from(error).code === Code.PermissionDenied);
  });

  test("by an agent that does not serve them, with the name of the option", async (t) => {
    const world = await createLogWorld(t);
    await world.startAgent("");
    await world.deploy();
    const { io, ended } = world.logs(["web"]);
    assert.equal(await ended, 1);
    assert.match(io.stderr.text, /does not serve logs; set agent\.logs\.enabled=true in its chart/);
  });

  test("by an agent that is too old for it", async (t) => {
    const world = await createLogWorld(t);
    await world.deploy("d_web", 0);
    await world.server.agentClient().reportAgentState({ state: { instanceId: "ins_old", version: "0.1.0" } });
    const { io, ended } = world.logs(["deployment/d_web"]);
    assert.equal(await ended, 1);
    assert.match(io.stderr.text, /the agent of region local\.dev \(version 0\.1\.0\) is too old for logs/);
  });

  test("while no agent is connected", async (t) => {
    const world = await createLogWorld(t);
    await world.deploy("d_web", 0);
    const { io, ended } = world.logs(["-f", "deployment/d_web"]);
    assert.equal(await ended, 69);
    assert.match(io.stderr.text, /the agent of region local\.dev does not answer, or is not connected/);
  });

  test("when Kubernetes does not let the agent read them, with the name of the option", async (t) => {
    const world = await createLogWorld(t);
    await world.startAgent();
    await world.deploy();
    world.cluster.server.faults.intercept(({ path }) => {
      const message = 'pods "x" is forbidden: User "krane" cannot get resource "pods/log"';
      const body = {
        kind: "Status",
        apiVersion: "v1",
        status: "Failure",
        code: 403,
        reason: "Forbidden",
        message,
      };
      return path.endsWith("/log") ? { kind: "whole", status: 403, body } : undefined;
    });
    const { io, ended } = world.logs(["-f", "web"]);
    assert.equal(await ended, 77);
    assert.match(io.stderr.text, /may not get pods\/log in this cluster; set agent\.logs\.enabled=true/);
  });

  test("in part if the log of a pod cannot be read, with the reason and after the lines of the others", async (t) => {
    const world = await createLogWorld(t);
    await world.startAgent();
    const [first = "", second = "", third = ""] = await world.deploy("d_web", 3);
    world.run(finite([stamped(1, 1, "one")]));
    world.cluster.server.faults.intercept(({ path }) => {
      const message = 'container "app" in pod is waiting to start: ContainerCreating';
      const body = { kind: "Status", apiVersion: "v1", status: "Failure", code: 400, message };
      const isBroken = path.endsWith(`/${first}/log`) || path.endsWith(`/${third}/log`);
      return isBroken ? { kind: "whole", status: 400, body } : undefined;
    });
    const { io, ended, lines } = world.logs(["web"]);
    assert.equal(await ended, 1, io.stderr.text);
    assert.deepEqual(lines(), [`${second} | one`]);
    for (const pod of [first, third]) {
      const said = new RegExp(
        `pod ${pod}: the log cannot be read: .*waiting to start: ContainerCreating`,
        "g",
      );
      assert.equal(io.stderr.text.match(said)?.length, 1, io.stderr.text);
    }
    assert.ok(!io.stderr.text.includes(second));
  });

  test("for what does not exist", async (t) => {
    const world = await createLogWorld(t);
    await world.startAgent();
    await world.deploy();
    for (const [name, said] of [
      ["pod/none", /no pod none in region local\.dev; see krane get pods/],
      ["deployment/none", /no deployment none in region local\.dev/],
      ["app/none", /no app none in region local\.dev/],
    ] as const) {
      const { io, ended } = world.logs([name]);
      assert.equal(await ended, 3, name);
      assert.match(io.stderr.text, said);
    }
  });

  test("to a thousand readers in order, each with a later time to come back", async (t) => {
    const world = await createLogWorld(t);
    await world.startAgent();
    await world.deploy();
    world.run(endless([stamped(1, 1, "one")]));
    const client = world.server.client(world.server.tokens.logs);
    const target = { case: "deploymentId", value: "d_web" } as const;
    const hints: number[] = [];
    const readers: AbortController[] = [];
    const read = async () => {
      const leaving = new AbortController();
      const request = { region: "local.dev", target, follow: true };
      const stream = client.streamLogs(request, { signal: leaving.signal })[Symbol.asyncIterator]();
      try {
        const { value } = await stream.next();
        assert.equal(value?.entry?.text, "one");
        readers.push(leaving);
      } catch (error) {
        const refused = ConnectError.from(error);
        assert.equal(refused.code, Code.ResourceExhausted, refused.message);
        assert.match(refused.rawMessage, /^lea is reading 10 logs, which is the limit; retry in \d+ s$/);
        hints.push(Number(refused.metadata.get("retry-after")));
      }
    };
    for (let wave = 0; wave < 20; wave++) await Promise.all(Array.from({ length: 50 }, read));
    assert.deepEqual([readers.length, hints.length], [10, 990]);
    assert.ok(new Set(hints).size > 20, "they are spread");
    for (const reader of readers) reader.abort();
    await eventually("nothing is read any more", async () => assert.equal(world.openLogs(), 0));
    world.run(finite([stamped(1, 1, "again")]));
    const again = world.logs(["web"]);
    assert.equal(await again.ended, 0, again.io.stderr.text);
  });
});
