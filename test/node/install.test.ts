// krane's image and chart on a real node, installed as the page says.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type InstalledKrane, installedKrane } from "../support/node/installed-krane.ts";

let krane: InstalledKrane;

before(
  async () => {
    krane = await installedKrane();
  },
  { timeout: 600_000 },
);

/** Runs a command in the agent's container. */
function inAgent(...command: readonly string[]): Promise<string> {
  return krane.cluster.kubectl(["-n", "krane", "exec", "deployment/krane", "--", ...command]);
}

test("the chart gives two agents, two servers and a vault, all Ready and none restarted", async () => {
  const { items } = JSON.parse(await krane.cluster.kubectl(["-n", "krane", "get", "pods", "-o", "json"]));
  const found = (items as readonly ListedPod[]).map(({ metadata, status }) => {
    const [container] = status.containerStatuses;
    return `${metadata.labels["app.kubernetes.io/component"]} ${container?.ready} ${container?.restartCount}`;
  });
  const components = ["agent", "agent", "server", "server", "vault"];
  assert.deepEqual(
    found.sort(),
    components.map((component) => `${component} true 0`),
  );
});

interface ListedPod {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly status: {
    readonly containerStatuses: readonly { readonly ready: boolean; readonly restartCount: number }[];
  };
}

test("krane doctor in the agent's pod finds no problem", async () => {
  const printed = await inAgent("krane", "doctor", "--config", "/etc/krane/krane.toml", "-o", "json");
  const { problems, findings } = JSON.parse(printed) as {
    readonly problems: number;
    readonly findings: readonly { readonly name: string; readonly state: string }[];
  };
  assert.equal(problems, 0, printed);
  const states = new Map(findings.map(({ name, state }) => [name, state]));
  for (const name of ["cluster", "rights", "token reviews", "control plane", "vault"])
    assert.equal(states.get(name), "ok", name);
  assert.ok(![...states.values()].includes("warning"), printed);
});

test("the container has no shell, no root, and nothing to write to", async () => {
  await assert.rejects(inAgent("sh", "-c", "true"), /"sh": executable file not found/);
  const code = `
    const { writeFileSync } = require("node:fs");
    const tried = ["/krane/x", "/tmp/x", "/etc/x", "/home/nonroot/x"].map((path) => {
      try { writeFileSync(path, ""); return path; } catch (error) { return error.code; }
    });
    console.log(JSON.stringify({ uid: process.getuid(), tried: [...new Set(tried)] }))`;
  const found = JSON.parse(await inAgent("/nodejs/bin/node", "-e", code));
  assert.deepEqual(found, { uid: 65532, tried: ["EROFS"] });
});

test("the program in the image is the one that was built", async () => {
  const [inside, outside] = await Promise.all([inAgent("krane", "version"), krane.type("krane version")]);
  const withoutNode = (text: string) => text.replace(/, Node \S+/, "");
  assert.equal(withoutNode(inside), withoutNode(outside));
});

test("the servers use a database whose owner is no superuser, with a password", async () => {
  const url = await krane.type("cat secrets/server/database-url");
  assert.match(url, /^postgres:\/\/krane:[\w-]{20,}@172\.30\.0\.1:5432\/krane\n$/);
  assert.match(await krane.type("krane status"), /local\.dev/);
});
