// `krane logs` through a control plane and an agent, on the embedded API server.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pods, replicaSets } from "../../../src/kube/resources.ts";
import { annotationKeys } from "../../../src/model/labels.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeIo } from "../../support/fake-io.ts";
import { endless, finite, stamped } from "../../support/printed-logs.ts";
import { createLogWorld, podsOf } from "./log-world.ts";

const never = new AbortController().signal;

describe("krane logs", () => {
  test("prints the lines of a pod to its end", async (t) => {
    const world = await createLogWorld(t);
    await world.startAgent();
    const [pod = ""] = await world.deploy();
    world.run(finite([stamped(1, 1, "one"), stamped(2, 1, "two"), "no time\n"]));
    const { io, ended, lines } = world.logs(["deploy/d_web", "--tail", "5"]);
    assert.equal(await ended, 0, io.stderr.text);
    assert.deepEqual(lines(), ["one", "two", "no time"]);
    assert.deepEqual(world.asked, [{ pod, query: { timestamps: "true", tailLines: "5" } }]);
    const previous = world.logs(["--previous", `pod/${pod}`, "-c", "app", "--timestamps", "--since", "90s"]);
    assert.equal(await previous.ended, 0);
    assert.equal(previous.lines()[0], "2026-01-01T00:00:01.000000001Z one");
    const query = { timestamps: "true", container: "app", previous: "true", sinceSeconds: "90" };
    assert.deepEqual(world.asked.at(-1), { pod, query });
  });

  test("follows a deployment's pods with their names, and pods that come later", async (t) => {
    const world = await createLogWorld(t);
    await world.startAgent();
    await world.deploy("d_web", 1);
    world.run((asked, closed) => endless([stamped(1, 1, `hello from ${asked.pod}`)])(asked, closed));
    const { io, ended, lines } = world.logs(["-f", "web"]);
    await eventually("the first pod's line", async () => assert.equal(lines().length, 1));
    const names = await world.deploy("d_web", 2);
    await eventually("the second pod's line", async () => assert.equal(lines().length, 2, io.stderr.text));
    const [first, second] = lines();
    assert.ok(names.some((name) => first === `hello from ${name}`));
    assert.ok(names.some((name) => second === `${name} | hello from ${name}`));
    io.send("SIGINT");
    assert.equal(await ended, 130);
    await eventually("nothing is read any more", async () => assert.equal(world.openLogs(), 0));
  });

  test("names the pod of every line, also of the first ones, if there are several pods", async (t) => {
    const world = await createLogWorld(t);
    await world.startAgent();
    const names = await world.deploy("d_web", 2);
    world.run((asked, closed) => finite([stamped(1, 1, `hello from ${asked.pod}`)])(asked, closed));
    const { io, ended, lines } = world.logs(["web"]);
    assert.equal(await ended, 0, io.stderr.text);
    assert.deepEqual(lines().toSorted(), names.map((name) => `${name} | hello from ${name}`).toSorted());
  });

  test("passes a thousand lines a second on, in order and without a loss", async (t) => {
    const world = await createLogWorld(t);
    await world.startAgent();
    await world.deploy();
    const count = 5_000;
    world.run(async function* (_, closed) {
      for (let n = 1; n <= count && !closed.aborted; n++) yield stamped(n, 1, `line ${n} ${"x".repeat(80)}`);
    });
    const { io, ended, lines } = world.logs(["web"]);
    assert.equal(await ended, 0, io.stderr.text);
    assert.deepEqual(
      lines().map((line) => Number(line.split(" ")[1])),
      Array.from({ length: count }, (_, index) => index + 1),
    );
    assert.equal(io.stderr.text, "");
  });

  test("goes on behind the last line after the stream was cut, and says so", async (t) => {
    const world = await createLogWorld(t);
    await world.startAgent();
    await world.deploy();
    world.run(endless([stamped(1, 1, "one"), stamped(1, 2, "two")]));
    const { io, lines } = world.logs(["-f", "web"]);
    await eventually("both lines", async () => assert.deepEqual(lines(), ["one", "two"]));
    // Kubernetes starts at the second of the last line.
    world.run(endless([stamped(1, 1, "one"), stamped(1, 2, "two"), stamped(1, 3, "three")]));
    world.front.cut();
    await eventually("the line after the cut", async () => assert.equal(lines().at(-1), "three"));
    assert.deepEqual(lines(), ["one", "two", "three"]);
    assert.match(io.stderr.text, /krane: the stream was cut: .*; reconnecting\n(.*\n)*krane: reconnected\n/);
    assert.equal(world.asked.at(-1)?.query["sinceTime"], "2026-01-01T00:00:01Z");
  });

  test("goes on after the connection of the agent was cut", async (t) => {
    const world = await createLogWorld(t);
    await world.startAgent();
    await world.deploy();
    let goOn: () => void = () => undefined;
    const more = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    world.run(async function* (_, closed) {
      yield stamped(1, 1, "before");
      await more;
      yield stamped(2, 1, "after");
      await new Promise((resolve) => closed.addEventListener("abort", resolve));
    });
    const { io, lines } = world.logs(["-f", "web"]);
    await eventually("the first line", async () => assert.deepEqual(lines(), ["before"]));
    world.link.cut();
    goOn();
    await eventually("the line after the cut", async () =>
      assert.deepEqual(lines(), ["before", "after"], io.stderr.text),
    );
  });

  test("shows nothing of a pod that only has the labels of a deployment", async (t) => {
    const world = await createLogWorld(t);
    await world.startAgent();
    await world.deploy();
    const [own] = (await podsOf(world)).items;
    assert.ok(own?.metadata && own.spec);
    const { labels, annotations, namespace, ownerReferences } = own.metadata;
    const { nodeName: _, ...spec } = own.spec;
    // With a finalizer, because Kubernetes would delete them at once.
    const forge = (name: string, uid: string) =>
      world.cluster.api.create(
        pods,
        {
          metadata: {
            ...{ name, namespace, labels, annotations, finalizers: ["test.example/keep"] },
            ownerReferences: ownerReferences?.map((owner) => ({ ...owner, name: "forged", uid })),
          },
          spec,
        } as typeof own,
        {},
        never,
      );
    // Everything of krane's, except for the seal.
    const honest = await world.cluster.api.get(replicaSets, { namespace: "acme", name: "web" }, {}, never);
    assert.ok(honest?.metadata && honest.spec);
    const { [annotationKeys.seal]: __, ...unsealed } = honest.metadata.annotations ?? {};
    const metadata = { name: "forged", namespace, labels: honest.metadata.labels, annotations: unsealed };
    const forged = await world.cluster.api.create(
      replicaSets,
      { metadata, spec: { ...honest.spec, replicas: 0 } } as typeof honest,
      {},
      never,
    );
    await forge("of-forged-set", forged.metadata?.uid ?? "");
    await forge("of-no-set", "0".repeat(36));
    world.run((asked, closed) => endless([stamped(1, 1, `from ${asked.pod}`)])(asked, closed));
    const { io, lines } = world.logs(["-f", "web"]);
    await eventually("the forged pods are told", async () => {
      assert.match(io.stderr.text, /of-forged-set: not read, because it is not proven .*: \w/);
      assert.match(io.stderr.text, /of-no-set: not read, because it is not proven .*: \w/);
    });
    await eventually("the honest one is read", async () => assert.equal(lines().length, 1));
    assert.deepEqual([...new Set(world.asked.map(({ pod }) => pod))], [own.metadata.name]);
  });

  test("cuts long lines, and tells what was cut", async (t) => {
    const world = await createLogWorld(t);
    await world.startAgent();
    await world.deploy();
    world.run(finite([`${stamped(1, 1, "x".repeat(100_000))}`, stamped(2, 1, "next")]));
    const { ended, lines } = world.logs(["web"]);
    assert.equal(await ended, 0);
    const [long = "", next] = lines();
    const [, text = "", cut] = /^(x+) … \((\d+) bytes cut\)$/.exec(long) ?? assert.fail(long.slice(0, 80));
    assert.equal(text.length + Number(cut), 100_000);
    assert.equal(next, "next");
  });

  test("keeps what a program prints from changing a terminal", async (t) => {
    const world = await createLogWorld(t);
    await world.startAgent();
    await world.deploy();
    const text = "\u001b[31mred\u001b[0m\ttab\u001b]0;title\u0007\u001b[2Jend";
    world.run(finite([stamped(1, 1, text)]));
    const piped = world.logs(["web"]);
    assert.equal(await piped.ended, 0);
    assert.deepEqual(piped.lines(), [text]);
    const io = new FakeIo();
    io.stdout.isTerminal = true;
    const shown = world.logs(["web"], { io });
    await shown.ended;
    assert.deepEqual(shown.lines(), ["\u001b[31mred\u001b[0m\ttab\ufffd]0;title\ufffd\ufffd[2Jend\u001b[0m"]);
  });
});
