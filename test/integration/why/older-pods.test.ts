// What `--wait` and `krane why` say of a change in place, which reaches no pod that is there already.
import assert from "node:assert/strict";
import { test } from "node:test";
import { pods } from "../../../src/kube/resources.ts";
import { createWhyWorld } from "./why-world.ts";

const never = new AbortController().signal;

test("an apply waits for pods of the newest description, and a scale for pods", async (t) => {
  const world = await createWhyWorld(t);
  const { krane, becauseOf, cluster } = world;
  const environment = {
    apiVersion: "krane/v1",
    kind: "Environment",
    id: "env_1",
    workspace: "ws_1",
    project: "p_1",
  };
  const files = { "environment.json": JSON.stringify(environment) };
  assert.equal((await world.kraneWith(files, "apply", "-f", "environment.json")).code, 0);
  const apply = (id: string, tag: string, ...flags: readonly string[]) => {
    const owner = { workspace: "ws_1", project: "p_1", environment: "env_1" };
    const image = `registry.example/acme/web:${tag}`;
    const document = {
      apiVersion: "krane/v1",
      kind: "Deployment",
      id,
      name: id,
      namespace: "acme",
      ...owner,
      image,
      replicas: 2,
    };
    const files = { "document.json": JSON.stringify(document) };
    return world.kraneWith(files, "apply", "-f", "document.json", "--wait", ...flags);
  };
  cluster.behaviours.set("missing", { image: "*:missing", behaviour: { image: "missing" } });
  await world.startAgent();
  const first = await apply("one", "1");
  assert.deepEqual([first.code, first.stdout.split("\n")[1]], [0, "deployment/one is ready, 2/2 pods"]);

  await t.test("a new image under the same id does not come true by itself", async () => {
    const { code, stderr } = await apply("one", "2");
    assert.equal(code, 1);
    assert.match(
      stderr,
      /deployment\/one will not become ready: 2 of its pods are from an older version, and krane does not replace running pods\. .* delete pods one-\w+ one-\w+$/m,
    );
    const { remedy } = await becauseOf("older-pods", "one");
    assert.match(remedy, /kubectl -n acme delete pods one-\w+ one-\w+$/);
  });

  await t.test("a scale is about the number of pods alone", async () => {
    const { code, stdout } = await krane("scale", "deployment", "one", "--replicas", "3", "--wait");
    assert.equal(code, 0, stdout);
    assert.match(stdout, /^deployment\/one is running, 3\/3 pods, 2 from an older version$/m);
  });

  await t.test("what the remedy says helps", async () => {
    const { remedy } = await becauseOf("older-pods", "one");
    for (const name of remedy.split(" delete pods ")[1]?.split(" ") ?? [])
      await cluster.api.delete(pods, { namespace: "acme", name }, {}, never);
    await becauseOf("all-well", "one");
    assert.equal((await krane("scale", "deployment", "one", "--replicas", "2", "--wait")).code, 0);
  });

  await t.test("under a new id a new image is a new version", async () => {
    const { code, stdout } = await apply("two", "2");
    assert.equal(code, 0);
    assert.match(stdout, /^deployment\/two is ready, 2\/2 pods$/m);
  });

  await t.test(
    "pods that fail as they were described before are not blamed on the newest description",
    async () => {
      await apply("three", "missing", "--timeout", "1s");
      await becauseOf("image-pull", "three");
      await apply("three", "1", "--timeout", "1s");
      const { reason, remedy } = await becauseOf("older-pods-failing", "three");
      assert.match(reason, /^2 of 2 pods from an older version: (?:ErrImagePull|ImagePullBackOff)/);
      assert.match(remedy, /kubectl -n acme delete pods three-\w+ three-\w+$/);
    },
  );
});
