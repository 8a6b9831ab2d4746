// The same forms of a name in every command that takes an object.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type AdminServer, startAdminServer } from "../../../test/support/admin-server.ts";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { main } from "../main.ts";

const document = (kind: string, id: string, name: string, more = "") => `apiVersion: krane/v1
kind: ${kind}
id: ${id}
name: ${name}
namespace: demo
workspace: ws_demo
project: proj_demo
environment: env_demo
image: registry.example/web:1
${more}`;

const documents = [
  "apiVersion: krane/v1\nkind: Environment\nid: env_demo\nworkspace: ws_demo\nproject: proj_demo\n",
  document("App", "app_web", "web", "replicas: 2\nexpose: cluster\n"),
  document("Deployment", "d_job", "job"),
  document("App", "app_twin", "twin"),
  document("Deployment", "d_twin", "twin"),
].join("---\n");

let server: AdminServer;
before(async () => {
  server = await startAdminServer({ regions: ["local.dev"] });
  assert.equal((await run(["apply", "-f", "all.yaml"])).code, 0);
});
after(() => server.stop());

async function run(argv: readonly string[], more: object = {}) {
  const io = Object.assign(new FakeIo({ "all.yaml": documents }), more);
  const env = {
    KRANE_SERVER: server.url,
    KRANE_TOKEN: server.tokens.readWrite,
    KRANE_REGION: "local.dev",
    KRANE_EDITOR: "true",
  };
  const code = await main(argv, env, io);
  return { code, stdout: io.stdout.text, stderr: io.stderr.text };
}

/** An editor that changes nothing. */
const openEditor = async () => ({
  path: "edited.yaml",
  edit: async (text: string) => text,
  discard: async () => undefined,
});
const commands: Readonly<Record<string, readonly string[]>> = {
  get: [],
  describe: [],
  events: [],
  why: [],
  edit: [],
  delete: [],
  scale: ["--replicas", "2"],
};

for (const [command, flags] of Object.entries(commands))
  test(`krane ${command} takes an app by each form of its name`, async () => {
    const outcomes: { readonly code: number; readonly text: string }[] = [];
    for (const name of [["web"], ["app_web"], ["demo/web"], ["app/web"], ["app", "web"], ["apps/app_web"]]) {
      let asked = "";
      const ask = async (question: string) => {
        asked = question;
        return "no";
      };
      const { code, stdout, stderr } = await run([command, ...name, ...flags], { openEditor, ask });
      outcomes.push({ code, text: `${asked}${stdout}${stderr}`.replace(/\b\d+[sm]\b/g, "") });
    }
    assert.match(outcomes[0]?.text ?? "", /app\/app_web|^app_web/m);
    assert.deepEqual(
      outcomes,
      Array.from(outcomes, () => outcomes[0]),
    );
    if (command !== "delete") assert.equal(outcomes[0]?.code, 0, outcomes[0]?.text);
  });

test("krane release, rollout and get pods take an app by each form of its name", async () => {
  for (const name of [["web"], ["app_web"], ["demo/web"], ["app/web"]]) {
    assert.match((await run(["rollout", "history", ...name])).stdout, /registry\.example\/web:1/);
    assert.equal((await run(["rollout", "pause", ...name])).code, 0);
    assert.equal((await run(["rollout", "resume", ...name])).code, 0);
    assert.equal((await run(["get", "pods", ...name])).code, 0, name.join(" "));
  }
});

test("a name that several objects have is not guessed, and one of another kind says so", async () => {
  const twin = await run(["get", "twin"]);
  assert.deepEqual(
    [twin.code, twin.stderr],
    [64, "krane: twin is ambiguous; use one of app/app_twin, deployment/d_twin\n"],
  );
  const environment = await run(["scale", "env_demo", "--replicas", "1"]);
  assert.equal(environment.code, 64);
  assert.match(
    environment.stderr,
    /environment\/env_demo has a kind that this command does not take; kinds are apps/,
  );
});

test("a word that names nothing may be a mistyped kind", async () => {
  const { code, stderr } = await run(["get", "deploymnets"]);
  assert.equal(code, 3);
  assert.match(
    stderr,
    /^krane: unknown object or kind "deploymnets" in region local\.dev; kinds are .* did you mean deployment\?\n$/,
  );
});

test("delete --yes takes no name alone", async () => {
  const { code, stderr } = await run(["delete", "job", "--yes"]);
  assert.equal(code, 64);
  assert.match(stderr, /unknown kind "job"/);
});

test("krane get all lists apps with everything else", async () => {
  const table = (await run(["get", "all"])).stdout;
  assert.match(table, /^app\/app_web +demo\/web +0\/2 +Releasing$/m);
  assert.match(table, /^deployment\/d_job +demo\/job/m);
  const json: unknown = JSON.parse((await run(["get", "all", "-o", "json"])).stdout);
  assert.ok(typeof json === "object" && json !== null && "apps" in json && "objects" in json);
  assert.ok(Array.isArray(json.apps) && json.apps.length === 2, "two apps");
  const again = (await run(["get", "all", "-o", "document"])).stdout;
  assert.deepEqual(again.match(/^id: \S+/gm), ["id: app_twin", "id: app_web", "id: d_job", "id: d_twin"]);
});

test("krane scale changes an app in place", async () => {
  const { code, stdout } = await run(["scale", "web", "--replicas", "3"]);
  assert.equal(code, 0);
  assert.match(stdout, /^app\/app_web scaled from 2 to 3 \(version \d+\)\n$/);
  assert.match((await run(["rollout", "history", "web"])).stdout, /^1 +Starting/m);
  const stale = await run(["scale", "web", "--replicas", "4", "--if-version", "1"]);
  assert.equal(stale.code, 1);
});
