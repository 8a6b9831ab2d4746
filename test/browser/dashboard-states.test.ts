// What people forget to look at: the dashboard while it loads, with nothing to show, in a flood of events, and for people who use no
// mouse, want no motion or live in another time zone.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { BrowserContext, Page } from "playwright-core";
import { ReportDeploymentStatusRequest_Update_InstanceSchema as InstanceSchema } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { ObjectStatusSchema } from "../../src/gen/krane/v1/agent_pb.ts";
import { applyDeployment } from "../support/deployment-messages.ts";
import { eventually } from "../support/eventually.ts";
import { endless, stamped } from "../support/printed-logs.ts";
import {
  assertAccessible,
  createWorld,
  markup,
  regions,
  signIn,
  tokens,
  type World,
} from "./dashboard-world.ts";

let world: World;
let context: BrowserContext;
let page: Page;

before(async () => {
  world = await createWorld();
  context = await world.visit();
  page = await context.newPage();
  await signIn(page, world);
});
after(() => world.close());

const regionPath = (region: string, rest = "") => `/dashboard/regions/${region}${rest}`;

async function open(path: string, on = page): Promise<void> {
  await on.goto(`${world.url}${path}`);
  await on.getByRole("heading", { level: 1 }).waitFor();
}

const row = (name: string, on = page) =>
  on.getByRole("row").filter({ has: on.getByRole("link", { name, exact: true }) });

describe("a page", () => {
  test("says that it is loading until there is something to show", async () => {
    let answer: () => void = () => undefined;
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route("**/ListObjects", async (route) => {
      await answered;
      await route.continue();
    });
    await page.goto(`${world.url}${regionPath(regions.live)}`);
    await page.getByRole("status").getByText("Loading…").waitFor();
    answer();
    await row("acme/web").waitFor();
    assert.equal(await page.getByText("Loading…").count(), 0);
    await page.unroute("**/ListObjects");
  });

  test("says what to do while the server has no region", async () => {
    const visit = await world.visit();
    const visitor = await visit.newPage();
    // An empty message: no agents.
    await visitor.route("**/ListAgents", (route) =>
      route.fulfill({ contentType: "application/proto", body: "" }),
    );
    await visitor.goto(`${world.url}/dashboard/`);
    await visitor.getByLabel("Token of the admin API").fill(tokens.ann);
    await visitor.keyboard.press("Enter");
    await visitor.getByRole("heading", { name: "No regions yet" }).waitFor();
    await visitor.getByText("krane agent --config krane.toml").waitFor();
    await visit.close();
  });

  test("about an object whose agent is silent says so, and shows nothing as good", async () => {
    await open(regionPath(regions.silent, "/deployment/d_old"));
    await page
      .getByRole("region", { name: "Why" })
      .getByText(/not been heard|silent|last heard/i)
      .first()
      .waitFor();
    assert.equal(await page.getByRole("main").locator(".good").count(), 0);
  });

  test("shows what changed while the server was gone", async () => {
    await open(regionPath(regions.live));
    await row("acme/paused").waitFor();
    await world.restartServer(async () => {
      await page.getByRole("alert").getByText("The server does not answer.").waitFor();
      assert.match(
        String(await page.evaluate("getComputedStyle(document.querySelector('main')).filter")),
        /grayscale/,
      );
    });
    // Before the page has a new stream, which does not tell about it. No agent reports on it either.
    await world.server().admin.forgetDeployment(regions.live, "d_paused");
    await row("acme/paused").waitFor({ state: "detached" });
  });

  test("shows times in the reader's zone, and the exact one on hover", async () => {
    const visit = await world.visit({ timezoneId: "Asia/Tokyo" });
    const visitor = await visit.newPage();
    await signIn(visitor, world);
    await open(regionPath(regions.live, "/deployment/d_web"), visitor);
    const time = visitor.getByRole("region", { name: "History" }).locator("time").first();
    assert.match((await time.getAttribute("title")) ?? "", /\d{4}.*\d:\d\d:\d\d.*(GMT\+9|JST)/);
    assert.match((await time.getAttribute("datetime")) ?? "", /^\d{4}-\d\d-\d\dT.*Z$/);
    await visit.close();
  });
});

describe("an object", () => {
  test("shows its pods by zone, with restarts and ages", async () => {
    await open(regionPath(regions.live, "/deployment/d_web"));
    const pods = page.getByRole("region", { name: "Pods" });
    await pods
      .getByText(/^.+: \d of \d running/)
      .first()
      .waitFor();
    const titles = await pods.getByRole("columnheader").allInnerTexts();
    assert.deepEqual(titles, ["Pod", "State", "Zone", "Restarts", "Age", "Version", "Address"]);
    const zones = await pods.locator('td[data-label="Zone"]').allInnerTexts();
    assert.equal(zones.length, 2);
    assert.ok(
      zones.every((zone) => zone !== "" && zone !== "unknown"),
      zones.join(", "),
    );
  });

  test("that reported a hundred times still says who changed it", async () => {
    for (let time = 0; time < 110; time += 1) {
      const report = { exists: true, instances: [], atMs: Date.now() };
      const rank = undefined;
      await world
        .server()
        .store.reportMany(regions.silent, "deployment", [
          { name: "old", id: "", report: { ...report, instances: instancesOf(time % 2) }, rank },
        ]);
    }
    await open(regionPath(regions.silent, "/deployment/d_old"));
    const history = page.getByRole("region", { name: "History" });
    const changed = history.getByRole("listitem").filter({ hasText: "changed the desired state" });
    await changed.getByText("test", { exact: true }).waitFor();
    assert.equal(await history.getByRole("listitem").count(), 2);
    await history.getByRole("button", { name: /^Show \d+ older reports$/ }).click();
    assert.ok((await history.getByRole("listitem").count()) > 90);
  });
});

describe("logs", () => {
  const logs = (on = page) => on.getByRole("region", { name: "Logs" });
  const openLogs = (count: number) =>
    eventually(`${count} logs are read`, async () => assert.equal(world.logs.openLogs(), count));

  test("are read only while they are shown, with the keyboard alone, and by nobody without the role", async () => {
    const asked = world.logs.asked.length;
    world.logs.run(({ pod }, closed) =>
      endless([stamped(1, 1, `hello from ${pod}`)])({ pod, query: {} }, closed),
    );
    await open(regionPath(regions.live, "/deployment/d_worker"));
    await page.getByText("3 of 3 ready").waitFor();
    assert.equal(world.logs.asked.length, asked);
    await logs().getByRole("button", { name: "Show logs" }).focus();
    await page.keyboard.press("Enter");
    await logs()
      .getByText(/hello from worker-/)
      .nth(2)
      .waitFor();
    await openLogs(3);
    await assertAccessible(page, "logs");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate("document.activeElement.textContent"), "Pause");
    await page.keyboard.press("Enter");
    await openLogs(0);
    await logs().getByText("Paused: nothing is read.").waitFor();
    await page.keyboard.press("Enter");
    await openLogs(3);
    const [pod = ""] = await logs().getByLabel("Pod").locator("option:not([value=''])").allInnerTexts();
    await logs().getByLabel("Pod").selectOption(pod);
    await openLogs(1);
    assert.equal(
      await logs()
        .getByText(/hello from/)
        .count(),
      1,
    );
    await logs().getByRole("button", { name: "Hide logs" }).click();
    await openLogs(0);
    await logs().getByRole("button", { name: "Show logs" }).click();
    await openLogs(1);
    await page.getByRole("link", { name: "Fleet" }).click();
    await openLogs(0);
    const visit = await world.visit();
    const reader = await visit.newPage();
    await signIn(reader, world, tokens.bob);
    await open(regionPath(regions.live, "/deployment/d_worker"), reader);
    await reader.getByRole("region", { name: "History" }).waitFor();
    assert.equal(await logs(reader).count(), 0);
    await visit.close();
  });

  test("of an app are those of its releases, and lines are text", async () => {
    const hostile = `\u001b[31m${markup}\u001b[0m\u202e\u0007end`;
    world.logs.run(endless([stamped(1, 1, hostile)]));
    await open(regionPath(regions.live, "/app/app_shop"));
    await logs().getByRole("button", { name: "Show logs" }).click();
    await logs().getByText(`${markup}\ufffd\ufffdend`).first().waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0);
    assert.doesNotMatch(await page.title(), /^owned$/);
    await logs().getByRole("button", { name: "Hide logs" }).click();
  });

  test("that cannot be read say why", async () => {
    await open(regionPath(regions.silent, "/deployment/d_old"));
    await logs().getByRole("button", { name: "Show logs" }).click();
    const refusal = logs().getByRole("alert");
    await refusal
      .getByText("the agent of region ap-south-1.aws (version 0.1.0) is too old for logs; update it")
      .waitFor();
    await logs().getByRole("button", { name: "Try again" }).click();
    await refusal.waitFor();
  });

  test("keep the newest lines of a flood, and say how many are not there", async () => {
    const flood = Array.from({ length: 2_500 }, (_, n) => stamped(1, n, `line ${n}`));
    world.logs.run(endless(flood));
    await open(regionPath(regions.live, "/deployment/d_spare"));
    await logs().getByRole("button", { name: "Show logs" }).click();
    await logs()
      .getByText(/ line 2499$/)
      .waitFor();
    await logs().getByText("500 older lines left out: the page keeps 2,000 lines.").waitFor();
    assert.ok(Number(await page.evaluate("document.querySelectorAll('.log div').length")) <= 2_001);
  });
});

test("what tenants and agents write is text everywhere: names, labels, reasons, and who changed it", async () => {
  const { admin, store } = world.server();
  const hostile = applyDeployment({
    deploymentId: "d_hostile",
    k8sName: "hostile",
    image: markup,
    environmentId: markup,
    workspaceId: markup,
    projectId: markup,
    replicas: 0,
  });
  await admin.setDeployment(regions.held, hostile);
  const [agent] = await store.agents(regions.held);
  const report = agent?.state?.report;
  assert.ok(report !== undefined);
  await store.reportAgent(regions.held, {
    atMs: Date.now(),
    report: {
      ...report,
      troubledObjects: [
        create(ObjectStatusSchema, {
          controller: "deployments",
          key: "acme/hostile",
          id: "d_hostile",
          reason: markup,
          failing: markup,
        }),
      ],
      blockedDeletions: report.blockedDeletions.map((one) => ({ ...one, key: markup, reason: markup })),
    },
  });
  for (const path of [
    "/dashboard/held",
    regionPath(regions.held),
    regionPath(regions.held, "/deployment/d_hostile"),
    regionPath(regions.held, `/deployment/${encodeURIComponent(markup)}`),
    regionPath(encodeURIComponent(markup)),
    `/dashboard/${encodeURIComponent(markup)}`,
  ]) {
    await open(path);
    await page.getByText("onerror").first().waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0, path);
    assert.doesNotMatch(await page.title(), /^owned$/, path);
  }
});

test("a flood of events costs few requests, and the newest state is shown in the end", async () => {
  await open(regionPath(regions.live));
  await row("acme/web").waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  const calls: string[] = [];
  page.on("request", (request) => calls.push(request.url()));
  const changes = 500;
  const { admin } = world.server();
  for (let change = 1; change <= changes; change += 1)
    await admin.setDeployment(
      regions.live,
      applyDeployment({
        deploymentId: "d_paused",
        k8sName: "paused",
        image: `registry.example/acme/cron:${change}`,
        replicas: 0,
        environmentId: "env_production",
      }),
    );
  await row("acme/paused").getByText(`registry.example/acme/cron:${changes}`).waitFor();
  assert.ok(calls.length < changes / 5, `${calls.length} requests`);
  assert.equal(await page.getByText("Live", { exact: true }).count(), 1);
});

test("nothing moves for people who want no motion", async () => {
  for (const [reducedMotion, expected] of [
    ["reduce", "none"],
    ["no-preference", "breathe"],
  ] as const) {
    await page.emulateMedia({ reducedMotion });
    const animation = await page.evaluate(`(() => {
      const state = document.body.appendChild(document.createElement("span"));
      state.className = "state busy";
      const mark = state.appendChild(document.createElement("span"));
      mark.className = "mark";
      const { animationName } = getComputedStyle(mark);
      state.remove();
      return animationName;
    })()`);
    assert.equal(animation, expected);
  }
  await page.emulateMedia({ reducedMotion: "reduce" });
});

describe("the keyboard", () => {
  const pages = {
    fleet: "/dashboard/",
    held: "/dashboard/held",
    region: regionPath(regions.live),
    object: regionPath(regions.live, "/deployment/d_web"),
    app: regionPath(regions.live, "/app/app_shop"),
    environment: regionPath(regions.live, "/environment/env_shop"),
    apply: regionPath(regions.live, "/apply"),
  };
  for (const [name, path] of Object.entries(pages))
    test(`reaches everything on the page ${name}, and shows where it is`, async () => {
      await open(path);
      await page.getByText("Loading…").first().waitFor({ state: "detached" });
      const missed = await page.evaluate(`
        [...document.querySelectorAll("a[href], button:enabled, input:enabled, select, textarea")]
          .filter(({ tabIndex }) => tabIndex < 0)
          .map(({ outerHTML }) => outerHTML)`);
      assert.deepEqual(missed, []);
      for (let step = 0; step < 8; step += 1) {
        await page.keyboard.press("Tab");
        const focus = String(
          await page.evaluate(`(() => {
            const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
            return outlineStyle + " " + outlineWidth + " " + document.activeElement.outerHTML;
          })()`),
        );
        // Behind the last one.
        if (focus.includes("<body")) break;
        assert.doesNotMatch(focus, /^none|^\S+ 0px/);
      }
    });

  test("scales a deployment", async () => {
    await open(regionPath(regions.live, "/deployment/d_web"));
    await page.getByText("2 of 2 ready").waitFor();
    await page.getByRole("button", { name: "Sign out" }).focus();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate("document.activeElement.name"), "replicas");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("3");
    await page.keyboard.press("Enter");
    await page.getByText("Scaled from 2 to 3.").waitFor();
  });
});

function instancesOf(count: number) {
  const address = "10-0-0-1.acme.pod.cluster.local:8080";
  return Array.from({ length: count }, () =>
    create(InstanceSchema, { k8sName: "old-a", address, status: 2 }),
  );
}
