// The dashboard in Chromium, against `krane server` on PostgreSQL with a running agent on the embedded cluster.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
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

const pathOf = {
  fleet: "/dashboard/",
  held: "/dashboard/held",
  region: `/dashboard/regions/${regions.live}`,
  silent: `/dashboard/regions/${regions.silent}`,
  empty: `/dashboard/regions/${regions.empty}`,
  broken: `/dashboard/regions/${regions.live}/deployment/d_checkout`,
  worker: `/dashboard/regions/${regions.live}/deployment/d_worker`,
  ready: `/dashboard/regions/${regions.live}/deployment/d_web`,
  app: `/dashboard/regions/${regions.live}/app/app_shop`,
  environment: `/dashboard/regions/${regions.live}/environment/env_shop`,
  apply: `/dashboard/regions/${regions.live}/apply`,
  edit: `/dashboard/regions/${regions.live}/apply?of=deployment/d_web`,
  silentObject: `/dashboard/regions/${regions.silent}/deployment/d_old`,
  missing: `/dashboard/regions/${regions.live}/deployment/d_never`,
  noRegion: "/dashboard/regions/nowhere.aws",
  nowhere: "/dashboard/nowhere",
} as const;

async function open(path: string, on = page): Promise<void> {
  await on.goto(`${world.url}${path}`);
  await on.getByRole("heading", { level: 1 }).waitFor();
}

/** The row of an object, by its name in the cluster. */
const row = (name: string, on = page) =>
  on.getByRole("row").filter({ has: on.getByRole("link", { name, exact: true }) });

describe("signing in", () => {
  test("a wrong token is refused, and a right one leaves a session and nothing else", async () => {
    const visit = await world.visit();
    const visitor = await visit.newPage();
    await visitor.goto(`${world.url}/`);
    await visitor.getByLabel("Token of the admin API").fill("not-a-token-at-all");
    await visitor.keyboard.press("Enter");
    await visitor.getByRole("alert").getByText("The server does not accept this token.").waitFor();
    await signIn(visitor, world);
    const [cookie, ...others] = await visit.cookies();
    assert.deepEqual(
      [cookie?.name, cookie?.httpOnly, cookie?.sameSite, others.length],
      ["krane-session", true, "Strict", 0],
    );
    const kept = await visitor.evaluate(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.cookie])",
    );
    assert.equal(kept, JSON.stringify([{}, {}, `${world.url}/dashboard/`, ""]));
    await visit.close();
  });

  test("after signing out nothing is shown, also not with the back button", async () => {
    const visit = await world.visit();
    const visitor = await visit.newPage();
    await signIn(visitor, world, tokens.bob);
    await visitor.getByText("bob (read-only)").waitFor();
    await visitor.getByRole("rowheader").getByRole("link", { name: regions.live }).click();
    await row("acme/web", visitor).waitFor();
    await visitor.getByRole("button", { name: "Sign out" }).click();
    await visitor.getByLabel("Token of the admin API").waitFor();
    await visitor.goBack();
    await visitor.getByLabel("Token of the admin API").waitFor();
    assert.equal(await visitor.getByText("acme/web").count(), 0);
    await visit.close();
  });
});

describe("the fleet", () => {
  test("shows what needs a person first, the most urgent on top", async () => {
    await open(pathOf.fleet);
    const needs = page.getByRole("region", { name: "Needs attention" }).getByRole("listitem");
    await needs.filter({ hasText: "pods that cannot run" }).waitFor();
    const texts = await needs.allInnerTexts();
    const ofRegion = (region: string) => texts.findIndex((text) => text.startsWith(region));
    const order = [regions.silent, regions.empty, regions.held, regions.live].map(ofRegion);
    assert.ok(
      order.every((place) => place >= 0),
      texts.join("; "),
    );
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
      texts.join("; "),
    );
    await needs.filter({ hasText: "3 deletions are held back." }).waitFor();
  });

  test("shows the agent of each region, and no silent one as well", async () => {
    await page
      .getByRole("row", { name: new RegExp(`^${regions.live}`) })
      .getByText(/^Heard /)
      .waitFor();
    const silent = page.getByRole("row", { name: new RegExp(`^${regions.silent}`) });
    await silent.getByText(/^Last heard 2m/).waitFor();
    assert.equal(await silent.locator(".good").count(), 0);
    await page
      .getByRole("row", { name: new RegExp(`^${regions.empty}`) })
      .getByText("No agent has connected")
      .waitFor();
  });
});

describe("a region", () => {
  test("lists everything, what is in trouble first, and is searched as you type", async () => {
    await open(pathOf.region);
    await row("acme/checkout").getByText("Failed", { exact: true }).waitFor();
    await row("acme/web").getByText("Ready", { exact: true }).waitFor();
    await row("acme/web").getByText("2/2").waitFor();
    await row("acme/paused").getByText("Paused", { exact: true }).waitFor();
    const names = await page.getByRole("rowheader").locator("a").allInnerTexts();
    assert.ok(names.indexOf("acme/checkout") < names.indexOf("acme/web"), names.join(", "));
    await page.getByRole("searchbox").fill("worker");
    await row("acme/web").waitFor({ state: "detached" });
    assert.equal(await page.getByRole("row").count(), 2);
    assert.match(page.url(), /\?q=worker$/);
    await page.getByRole("searchbox").fill("registry");
    await row("acme/web").waitFor();
    await page.getByRole("searchbox").fill("worker");
    await page.reload();
    await row("acme/worker").waitFor();
    assert.equal(await page.getByRole("row").count(), 2);
    await page.getByRole("searchbox").fill("");
    await page.getByLabel("Not ready only").check();
    await row("acme/web").waitFor({ state: "detached" });
    await row("acme/checkout").waitFor();
  });

  test("lists its environments, which show their secrets and history", async () => {
    await open(`${pathOf.region}?kind=environments`);
    await row("env_shop").getByText("2 objects").waitFor();
    await row("env_shop").getByText("1 secret", { exact: true }).waitFor();
    await row("env_shop").getByRole("link").click();
    await page.getByRole("heading", { name: "env_shop environment" }).waitFor();
    await page.getByText("DATABASE_URL", { exact: true }).first().waitFor();
    await page.getByRole("region", { name: "History" }).getByText("set the secret").waitFor();
    await page.getByRole("link", { name: "Its objects" }).click();
    await row("acme/shop").waitFor();
  });

  test("follows changes without being loaded again", async () => {
    await open(pathOf.region);
    await row("acme/worker").getByText("3/3").waitFor();
    await page.evaluate(() => Reflect.set(globalThis, "isSamePage", true));
    await world.server().admin.scale(regions.live, "d_worker", 5);
    await row("acme/worker").getByText("5/5").waitFor();
    assert.equal(await page.evaluate(() => Reflect.get(globalThis, "isSamePage")), true);
  });

  test("whose agent is silent says since when, and shows nothing as good", async () => {
    await open(pathOf.silent);
    await page
      .getByRole("alert")
      .getByText(/^Last heard 2m/)
      .waitFor();
    await row("acme/old").waitFor();
    assert.equal(await page.getByRole("main").locator(".good").count(), 0);
  });

  test("without anything says how to make something", async () => {
    await open(pathOf.empty);
    await page.getByText("Nothing here yet").waitFor();
    await page.getByText("krane apply -f examples/hello.yaml").waitFor();
  });
});

describe("an object", () => {
  test("begins with why it is as it is, and then shows both sides, pods, history and document", async () => {
    await open(pathOf.broken);
    const why = page.getByRole("region", { name: "Why" });
    await why.getByText("image-pull").waitFor();
    const sections = page.getByRole("main").locator("section");
    assert.equal(await sections.first().getAttribute("aria-label"), "Why");
    await page
      .getByRole("row", { name: /ready pods/ })
      .locator("td")
      .getByText("0", { exact: true })
      .waitFor();
    await page.getByRole("region", { name: "Pods" }).getByText("Failed").first().waitFor();
    const history = page.getByRole("region", { name: "History" });
    await history.getByText("changed the desired state").waitFor();
    await history.getByText("test", { exact: true }).waitFor();
    await page.getByText("kind: Deployment").waitFor();
  });

  test("shows the manifests that an agent makes of it", async () => {
    await open(pathOf.ready);
    await page.getByRole("button", { name: "Show the manifests" }).click();
    await page.getByText("kind: ReplicaSet").waitFor();
    await page.getByText("runtimeClassName: gvisor").waitFor();
  });

  test("follows changes, and says who made them", async () => {
    await open(pathOf.ready);
    await page.getByText("2 of 2 ready").waitFor();
    await world.server().admin.scale(regions.live, "d_web", 1);
    await page.getByText("1 of 1 ready").waitFor();
    await page
      .getByRole("region", { name: "History" })
      .getByText("changed the desired state")
      .nth(1)
      .waitFor();
  });

  test("tells who changed it behind krane's back, and that krane put it back", async () => {
    await open(pathOf.ready);
    await page.getByText("1 of 1 ready").waitFor();
    await world.editByHand("web", 7);
    const history = page.getByRole("region", { name: "History" });
    const repair = history.getByRole("listitem").filter({ hasText: "put back" });
    await repair.getByText(/ReplicaSet web: spec\.replicas: 7 -> 1, changed by .*"kubectl-edit"/).waitFor();
  });

  test("shows what tenants wrote as text", async () => {
    await open(`/dashboard/regions/${regions.live}/deployment/d_markup`);
    await page.getByText(markup).first().waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0);
    await open(pathOf.region);
    await row("acme/markup").getByText(markup).first().waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0);
    assert.doesNotMatch(await page.title(), /owned/);
  });
});

test("held-back deletions are shown with their reason and since when", async () => {
  await open(pathOf.held);
  const gone = page.getByRole("row", { name: /acme\/gone/ });
  await gone.getByText("the control plane has not known it for 3 resyncs").waitFor();
  await gone.getByText("15m ago").waitFor();
  await gone.getByText("3 resyncs", { exact: true }).waitFor();
});

describe("actions", () => {
  test("a reader sees none", async () => {
    const visit = await world.visit();
    const reader = await visit.newPage();
    await signIn(reader, world, tokens.bob);
    for (const path of [pathOf.held, pathOf.ready, pathOf.app]) {
      await open(path, reader);
      await reader
        .getByText(path === pathOf.held ? "acme/lost" : "History")
        .first()
        .waitFor();
      const buttons = await reader.getByRole("button").allInnerTexts();
      assert.deepEqual(
        buttons.filter((text) => !text.startsWith("Show")),
        ["Sign out"],
        path,
      );
      assert.equal(await reader.getByRole("link", { name: /^Edit|^Apply/ }).count(), 0, path);
    }
    await open(pathOf.edit, reader);
    await reader.getByRole("heading", { name: "Read-only" }).waitFor();
    await visit.close();
  });

  test("a deletion is allowed only after its name is typed, and recorded in that person's name", async () => {
    await open(pathOf.held);
    await page.getByRole("button", { name: "Allow the deletion of acme/gone" }).click();
    const allow = page.getByRole("button", { name: "Allow the deletion", exact: true });
    await page.getByLabel("Type acme/gone to confirm").fill("acme/gon");
    assert.equal(await allow.isDisabled(), true);
    await page.keyboard.press("Enter");
    const released = async () =>
      (await world.server().store.history(regions.held, { limit: 10 })).map(
        ({ by, event, id }) => `${by} ${event} ${id}`,
      );
    assert.deepEqual(await released(), []);
    await page.getByLabel("Type acme/gone to confirm").fill("acme/gone");
    await page.keyboard.press("Enter");
    await page.getByText("Allowed. The agent deletes it").waitFor();
    assert.deepEqual(await released(), ["ann released d_gone"]);
  });

  test("a deployment is scaled", async () => {
    await open(pathOf.ready);
    await page.getByRole("spinbutton", { name: "Pods" }).fill("3");
    await page.getByRole("button", { name: "Scale" }).click();
    await page.getByText("3 of 3 ready").waitFor();
    assert.equal((await world.server().store.row(regions.live, "deployment", "d_web"))?.spec.replicas, 3);
  });

  test("several deletions are allowed at once, after the name of the region is typed", async () => {
    await open(pathOf.held);
    for (const key of ["acme/lost", "acme/stray"]) await page.getByLabel(`Choose ${key}`).check();
    await page.getByRole("button", { name: `Allow 2 deletions in ${regions.held}` }).click();
    const allow = page.getByRole("button", { name: "Allow 2 deletions", exact: true });
    assert.equal(await allow.isDisabled(), true);
    await page.getByLabel(`Type ${regions.held} to confirm`).fill(regions.held);
    await page.keyboard.press("Enter");
    await page.getByText("The agent deletes them").waitFor();
    const released = await world.server().store.history(regions.held, { limit: 10 });
    assert.deepEqual(released.map(({ id }) => id).sort(), ["d_gone", "d_lost", "d_stray"]);
  });

  test("a deployment is deleted only after its name is typed", async () => {
    await open(`/dashboard/regions/${regions.live}/deployment/d_spare`);
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByLabel("Type acme/spare to confirm").fill("spare");
    assert.equal(await page.getByRole("button", { name: "Delete", exact: true }).isDisabled(), true);
    await page.keyboard.press("Escape");
    await page.waitForFunction("document.activeElement.textContent === 'Delete…'");
    await page.keyboard.press("Enter");
    await page.getByLabel("Type acme/spare to confirm").fill("acme/spare");
    await page.keyboard.press("Enter");
    await page.getByText("Deleted", { exact: true }).waitFor();
    assert.equal((await world.server().store.row(regions.live, "deployment", "d_spare"))?.desired, "stopped");
  });

  test("an image is released and rolled back, and releases are paused and resumed", async () => {
    await open(pathOf.app);
    const releases = page.getByRole("region", { name: "Releases" });
    const release = (number: number) =>
      releases.getByRole("row").filter({ has: page.getByRole("link", { name: `${number}`, exact: true }) });
    await release(1).getByText("Current").waitFor();
    await page.getByLabel("Image").fill("registry.example/acme/shop:2");
    await page.getByRole("button", { name: "Release", exact: true }).click();
    await page.getByText("Release 2 is starting.").waitFor();
    await release(2).getByText("Current").waitFor();
    await release(1).getByText("Retired").waitFor();
    await page.getByRole("button", { name: "Roll back to release 1" }).click();
    await page.getByRole("button", { name: "Roll back to 1", exact: true }).click();
    await release(3).getByText("Current").waitFor();
    await release(3).getByText("registry.example/acme/shop:1").waitFor();
    await page.getByRole("button", { name: "Pause releases…" }).click();
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await page.getByRole("button", { name: "Resume releases…" }).waitFor();
    assert.equal(await page.getByRole("button", { name: /Roll back|Restart|^Release$/ }).count(), 0);
    await page.getByRole("button", { name: "Resume releases…" }).click();
    await page.getByRole("button", { name: "Resume", exact: true }).click();
    await page.getByRole("button", { name: "Pause releases…" }).waitFor();
    const { app } = await world.server().store.app(regions.live, "app_shop");
    assert.deepEqual([app?.paused, app?.spec?.template?.image], [false, "registry.example/acme/shop:1"]);
    const history = page.getByRole("region", { name: "History" });
    await history.getByText("paused its releases").waitFor();
    await history.getByText("ann", { exact: true }).first().waitFor();
  });

  test("an app is scaled, and deleted after its name is typed", async () => {
    await open(pathOf.app);
    await page.getByRole("spinbutton", { name: "Pods" }).fill("1");
    await page.getByRole("button", { name: "Scale" }).click();
    await page.getByText("Scaled from 2 to 1.").waitFor();
    const { app } = await world.server().store.app(regions.live, "app_shop");
    assert.equal(app?.spec?.template?.replicas, 1);
    await page.getByText("1 pod of registry.example/acme/shop:1").waitFor();
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByLabel("Type acme/shop to confirm").fill("acme/shop");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Not found" }).waitFor();
  });

  test("an object is edited: its changes are shown first, and then applied", async () => {
    await open(pathOf.worker);
    await page.getByRole("link", { name: "Edit" }).click();
    const editor = page.getByLabel("Documents, as YAML");
    await editor.fill((await editor.inputValue()).replace("worker:4", "worker:5"));
    await page.getByRole("button", { name: "Preview changes" }).click();
    const change = page.getByRole("row", { name: /^image/ });
    await change.getByText('"registry.example/acme/worker:4"').waitFor();
    await change.getByText('"registry.example/acme/worker:5"').waitFor();
    await page.getByText("Its running pods stay as they are").waitFor();
    const image = async () =>
      (await world.server().store.row(regions.live, "deployment", "d_worker"))?.spec.image;
    assert.equal(await image(), "registry.example/acme/worker:4");
    await assertAccessible(page, "a plan");
    await page.getByRole("button", { name: "Apply 1 change" }).click();
    await page.getByText("Applied 1 change.").waitFor();
    assert.equal(await image(), "registry.example/acme/worker:5");
  });

  test("new documents are applied in their order, and wrong ones are shown with their lines", async () => {
    await open(pathOf.region);
    await page.getByRole("link", { name: "Apply documents" }).click();
    const editor = page.getByLabel("Documents, as YAML");
    const example = await editor.inputValue();
    await editor.fill(example.replace("replicas: 2", "replicas: many"));
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    const problems = page.getByRole("alert", { name: "Problems" });
    await problems.getByText("replicas", { exact: true }).waitFor();
    await problems.getByRole("button", { name: "line 16" }).click();
    assert.equal(await page.evaluate("getSelection().toString()"), "replicas: many");
    assert.equal(await page.getByRole("button", { name: /^Apply/ }).count(), 0);
    await editor.fill(example);
    await page.getByRole("button", { name: "Preview changes" }).click();
    await page.getByRole("button", { name: "Apply 2 changes" }).click();
    await page.getByText("Applied 2 changes.").waitFor();
    const { app } = await world.server().store.app(regions.live, "app_hello");
    assert.equal(app?.releases[0]?.createdBy, "ann");
  });
});

test("what does not exist is said to be missing", async () => {
  await open(pathOf.missing);
  await page.getByRole("heading", { name: "Not found" }).waitFor();
  await open(pathOf.nowhere);
  await page.getByRole("heading", { name: "Page not found" }).waitFor();
  await open("/dashboard/regions/nowhere.aws");
  await page.getByRole("heading", { name: "No such region" }).waitFor();
});

test("the keyboard alone leads from the fleet to an object", async () => {
  await open(pathOf.fleet);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate("document.activeElement.textContent"), "Skip to content");
  await page.getByRole("rowheader").getByRole("link", { name: regions.live }).focus();
  await page.keyboard.press("Enter");
  await row("acme/web").waitFor();
  assert.equal(
    await page.evaluate("document.activeElement.id"),
    "main",
    "a screen reader continues with the view",
  );
  await row("acme/web").getByRole("link").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: /acme\/web/ }).waitFor();
  await page.goBack();
  await row("acme/web").waitFor();
});

test("tabs share one stream, and another tab takes over", async () => {
  const visit = await world.visit();
  const streams: string[] = [];
  visit.on("request", (request) => {
    if (request.url().endsWith("/WatchFleet")) streams.push(request.url());
  });
  const first = await visit.newPage();
  await signIn(first, world);
  await first.getByText("Live", { exact: true }).waitFor();
  const second = await visit.newPage();
  await second.goto(`${world.url}${pathOf.fleet}`);
  await second.getByText("Live", { exact: true }).waitFor();
  assert.equal(streams.length, 1);
  const reopened = visit.waitForEvent("request", (request) => request.url().endsWith("/WatchFleet"));
  await first.close();
  await reopened;
  await second.getByText("Live", { exact: true }).waitFor();
  await visit.close();
});

describe("every page", () => {
  for (const colorScheme of ["light", "dark"] as const)
    test(`has no violation that axe finds, and fits a phone, ${colorScheme}`, async () => {
      const visit = await world.visit({ colorScheme });
      const visitor = await visit.newPage();
      await visitor.goto(`${world.url}/dashboard/`);
      await visitor.getByLabel("Token of the admin API").waitFor();
      await assertAccessible(visitor, "sign-in");
      await signIn(visitor, world);
      for (const [name, path] of Object.entries(pathOf)) {
        await visitor.setViewportSize({ width: 1280, height: 800 });
        await open(path, visitor);
        await visitor.getByText("Loading…").first().waitFor({ state: "detached" });
        await assertAccessible(visitor, name);
        await visitor.setViewportSize({ width: 375, height: 700 });
        const overflow = Number(await visitor.evaluate("document.documentElement.scrollWidth - innerWidth"));
        assert.ok(overflow <= 0, `${name} is ${overflow} px wider than a phone`);
      }
      await visitor.setViewportSize({ width: 1280, height: 800 });
      for (const [name, { path, button, shows }] of Object.entries(opened)) {
        await open(path, visitor);
        await visitor.getByRole("button", { name: button }).first().click();
        await visitor.getByText(shows).first().waitFor();
        await assertAccessible(visitor, name);
      }
      await visit.close();
    });
});

/** What a button opens. */
const opened = {
  "a confirmation": { path: pathOf.ready, button: "Delete…", shows: "This cannot be undone." },
  manifests: { path: pathOf.ready, button: "Show the manifests", shows: "kind: ReplicaSet" },
  "a plan": { path: pathOf.apply, button: "Preview changes", shows: /would be/ },
} as const;

// Last, because the server is gone for a while.
test("a page keeps what it has while the server is gone, says so, and goes on when it is back", async () => {
  await open(pathOf.region);
  await row("acme/web").waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  await world.restartServer(async () => {
    await page.getByRole("alert").getByText("The server does not answer.").waitFor();
    await row("acme/web").waitFor();
  });
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByRole("alert").waitFor({ state: "detached" });
});
