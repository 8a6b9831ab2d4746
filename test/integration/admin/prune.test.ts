// krane apply --prune through the command line and the admin API: nothing is deleted that was not in the set and confirmed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { main } from "../../../src/cli/main.ts";
import { type AdminServer, startAdminServer } from "../../support/admin-server.ts";
import { FakeIo } from "../../support/fake-io.ts";

const region = "local.dev";

const environment = `apiVersion: krane/v1
kind: Environment
id: env_demo
workspace: ws_demo
project: proj_demo
`;
const named = (kind: "App" | "Deployment", id: string) => `apiVersion: krane/v1
kind: ${kind}
id: ${id}
name: ${id.replace("_", "-")}
namespace: demo
workspace: ws_demo
project: proj_demo
environment: env_demo
image: web:1
`;
const all = [environment, named("App", "app_web"), named("Deployment", "d_a"), named("Deployment", "d_b")];

class World {
  readonly server: AdminServer;

  constructor(server: AdminServer) {
    this.server = server;
  }

  async apply(documents: readonly string[], args: readonly string[], answer?: string) {
    const { url, tokens } = this.server;
    const io = new FakeIo({ "all.yaml": documents.join("---\n") });
    const asked: string[] = [];
    if (answer !== undefined)
      Object.assign(io, {
        async ask(question: string) {
          asked.push(question);
          return answer;
        },
      });
    const env = { KRANE_SERVER: url, KRANE_TOKEN: tokens.readWrite, KRANE_REGION: region };
    const code = await main(["apply", "-f", "all.yaml", ...args], env, io);
    return { code, stdout: io.stdout.text, stderr: io.stderr.text, asked };
  }

  /** What is desired. */
  async ids(): Promise<readonly string[]> {
    const { objects } = await this.server.client().listObjects({ region });
    const { apps } = await this.server.client().listApps({ region });
    const running = objects.filter(({ desired }) => desired === 1).map(({ ref }) => ref?.id ?? "");
    return [...running, ...apps.map(({ app }) => app?.spec?.template?.deploymentId ?? "")].sort();
  }
}

async function withWorld(t: { after(work: () => Promise<void>): void }): Promise<World> {
  const server = await startAdminServer({ regions: [region] });
  t.after(() => server.stop());
  return new World(server);
}

test("what is no longer in the files is shown, and deleted only after a yes", async (t) => {
  const world = await withWorld(t);
  const first = await world.apply(all, ["--prune", "shop"], "no");
  assert.equal(first.code, 0, first.stderr);
  assert.deepEqual(first.asked, [], "nothing is missing from the files");
  await world.apply([environment, named("Deployment", "d_other")], [], "no");
  const rest = all.slice(0, 2);
  const dry = await world.apply(rest, ["--prune", "shop", "--dry-run"]);
  assert.match(
    dry.stdout,
    /^deployment\/d_a would be deleted \(dry run\)\ndeployment\/d_b would be deleted/m,
  );
  const before = ["app_web", "app_web-1", "d_a", "d_b", "d_other"];
  assert.deepEqual(await world.ids(), before);

  const declined = await world.apply(rest, ["--prune", "shop"], "n");
  assert.deepEqual(declined.asked, ["Delete deployment/d_b, deployment/d_a in local.dev? [y/N] "]);
  assert.match(declined.stderr, /^set shop has 2 objects that are not in these files$/m);
  assert.match(declined.stderr, /^nothing was deleted$/m);
  assert.equal(declined.code, 1);
  assert.deepEqual(await world.ids(), before);

  const agreed = await world.apply(rest, ["--prune", "shop"], "y");
  assert.equal(agreed.code, 0, agreed.stderr);
  assert.match(agreed.stdout, /^deployment\/d_a is being deleted/m);
  assert.deepEqual(await world.ids(), ["app_web", "app_web-1", "d_other"]);
  assert.deepEqual((await world.apply(rest, ["--prune", "shop"], "n")).asked, []);
});

test("without a terminal it takes --yes, and an app goes with its releases", async (t) => {
  const world = await withWorld(t);
  await world.apply(all, ["--prune", "shop"]);
  const rest = all.filter((each) => !each.includes("app_web"));
  const alone = await world.apply(rest, ["--prune", "shop"]);
  assert.equal(alone.code, 64);
  assert.match(alone.stderr, /no terminal to confirm on; pass --yes/);
  assert.deepEqual(await world.ids(), ["app_web", "app_web-1", "d_a", "d_b"]);
  const sure = await world.apply(rest, ["--prune", "shop", "--yes"]);
  assert.equal(sure.code, 0, sure.stderr);
  assert.deepEqual(await world.ids(), ["d_a", "d_b"]);
});

test("the wrong files, or a wrong name of a set, delete and apply nothing", async (t) => {
  const world = await withWorld(t);
  await world.apply(all, ["--prune", "shop"]);
  const wrong = await world.apply([named("Deployment", "d_z")], ["--prune", "shop", "--yes"]);
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /none of the 4 objects in set shop is in these files/);
  assert.match(wrong.stderr, /nothing was applied/);
  assert.equal((await world.apply(all.slice(0, 1), ["--prune", "sohp", "--yes"])).code, 0);
  assert.equal((await world.apply(all, ["--prune", "No Name"])).code, 64);
  assert.equal((await world.apply(all, ["--yes"])).code, 64, "--yes alone says nothing");
  assert.deepEqual(await world.ids(), ["app_web", "app_web-1", "d_a", "d_b"]);
});

test("a document that is rejected keeps everything", async (t) => {
  const world = await withWorld(t);
  await world.apply(all, ["--prune", "shop"]);
  const bad = named("Deployment", "d_a").replace("image: web:1", "image: web:1\nreplicas: 2\nport: 99999");
  const { code } = await world.apply([environment, bad], ["--prune", "shop", "--yes"]);
  assert.equal(code, 1);
  assert.deepEqual(await world.ids(), ["app_web", "app_web-1", "d_a", "d_b"]);
});
