// Signing in with OpenID Connect in Chromium: `krane server` on PostgreSQL, and a real provider that is another site for the browser,
// so that its rules for cookies apply as they would for people.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { unpackFiles } from "../../src/dashboard/page-files.ts";
import { bundleDashboard } from "../../tools/bundle-dashboard.ts";
import { applyDeployment } from "../support/deployment-messages.ts";
import { freePort } from "../support/krane-process.ts";
import { type RunningProvider, startOidcProvider } from "../support/oidc-provider.ts";
import { type RunningServer, startServer } from "../support/running-server.ts";
import { launch } from "./dashboard-world.ts";

const client = { clientId: "krane", clientSecret: "secret-of-the-client-krane" };
let base = "";
let dataDir = "";
let provider: RunningProvider;
let server: RunningServer;
let browser: Browser;

before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "krane-browser-"));
  const [port, providerPort] = [await freePort(), await freePort()];
  base = `http://127.0.0.1:${port}`;
  provider = await startOidcProvider(providerPort, { ...client, redirectUri: `${base}/dashboard/signed-in` });
  for (const [login, groups] of [
    ["emil", ["eu-team"]],
    ["nora", ["all-hands"]],
  ] as const)
    provider.people.set(login, { email: `${login}@example.com`, email_verified: true, groups });
  const { files } = await bundleDashboard();
  server = await startServer(
    {
      "data-dir": dataDir,
      listen: `127.0.0.1:${port}`,
      "agent-tokens": "eu.aws token-of-the-eu-agents,us.aws token-of-the-us-agents",
      "oidc-issuer": provider.issuer,
      "oidc-client-id": client.clientId,
      "oidc-client-secret": client.clientSecret,
      "oidc-public-url": base,
      "oidc-scopes": "openid,email,groups",
      "oidc-roles": "eu-team read-write eu.aws",
    },
    {},
    { dashboard: unpackFiles(files), createToken: () => randomBytes(24).toString("hex") },
  );
  await server.admin.setDeployment("eu.aws", applyDeployment({ deploymentId: "d_web", k8sName: "web" }));
  browser = await launch();
});
after(async () => {
  await browser.close();
  await server.stop();
  await provider.stop();
  await rm(dataDir, { recursive: true, force: true, maxRetries: 20 });
});

const button = (page: Page) =>
  page.getByRole("link", { name: `Sign in with ${new URL(provider.issuer).host}` });

async function signInAs(page: Page, login: string): Promise<void> {
  await button(page).click();
  await page.getByPlaceholder("Enter any login").fill(login);
  await page.getByPlaceholder("and password").fill("x");
  await page.getByRole("button", { name: "Sign-in" }).click();
}

async function assertAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate("axe.run()")) as axe.AxeResults;
  assert.deepEqual(
    violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]),
    [],
  );
}

test("somebody signs in at the provider, comes back to the view that they wanted, and signs out", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const urls: string[] = [];
  page.on("request", (request) => urls.push(request.url()));
  const wanted = `${base}/dashboard/regions/eu.aws?q=web`;
  await page.goto(wanted);
  await button(page).waitFor();
  await signInAs(page, "emil");
  await page.getByRole("link", { name: "acme/web" }).waitFor();
  await page.getByText("oidc:emil@example.com").waitFor();
  assert.equal(page.url(), wanted);
  const own = (await context.cookies(base)).map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite]);
  assert.deepEqual(own, [["krane-session", true, "Strict"]]);
  const [session] = await context.cookies(base);
  const kept = await page.evaluate(
    "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, document.referrer])",
  );
  assert.equal(kept, JSON.stringify([{}, {}, "", ""]));
  for (const secret of [session?.value ?? "?", client.clientSecret, ...provider.tokens])
    assert.ok(!urls.some((url) => url.includes(secret)));

  // Another region is not theirs.
  await page.goto(`${base}/dashboard/`);
  await page.getByRole("rowheader").getByRole("link", { name: "eu.aws" }).waitFor();
  assert.equal(await page.getByText("us.aws").count(), 0);

  await page.getByRole("button", { name: "Sign out" }).click();
  await button(page).waitFor();
  assert.deepEqual(await context.cookies(base), []);
  // The provider still knows them.
  await button(page).click();
  await page.getByText("oidc:emil@example.com").waitFor();
  await context.close();
});

for (const colorScheme of ["light", "dark"] as const)
  test(`somebody without a role reads why, and what to do (${colorScheme})`, async () => {
    const context = await browser.newContext({ colorScheme });
    const page = await context.newPage();
    await page.goto(`${base}/dashboard/`);
    await signInAs(page, "nora");
    await page.getByRole("alert").getByText("None of your groups may use this server.").waitFor();
    // An effect of the page takes it out of the URL, after the page was drawn.
    await page.waitForURL(`${base}/dashboard/`);
    assert.deepEqual(await context.cookies(base), []);
    await assertAccessible(page);
    await context.close();
  });
