// Signing in with OpenID Connect: three servers on one PostgreSQL and a real provider. Everything that an attacker or a mistake could
// do on the way is tried and refused.
import assert from "node:assert/strict";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { after, before, beforeEach, describe, test } from "node:test";
import { unpackFiles } from "../../../src/dashboard/page-files.ts";
import { AdminService } from "../../../src/gen/krane/admin/v1/admin_pb.ts";
import { methodEffects } from "../../../src/server/admin-service/admin-auth.ts";
import { idOfSecret } from "../../../src/server/admin-service/session-secrets.ts";
import { bundleDashboard } from "../../../tools/bundle-dashboard.ts";
import { type OpenDatabase, openDatabase } from "../../store/store-target.ts";
import { CookieBrowser, type Visit } from "../../support/cookie-browser.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { createKeptLog } from "../../support/kept-log.ts";
import { freePort } from "../../support/krane-process.ts";
import { type IdToken, type RunningProvider, startOidcProvider } from "../../support/oidc-provider.ts";
import { readProjectFile } from "../../support/project-files.ts";
import { type RunningServer, startServer } from "../../support/running-server.ts";

const regions = { eu: "eu.aws", us: "us.aws" } as const;
const client = { clientId: "krane", clientSecret: "secret-of-the-client-krane" };
const tokenOfAnn = "token-of-ann-may-write";
const { log, lines } = createKeptLog();

let target: OpenDatabase;
let provider: RunningProvider;
/** `first` and `second` are alike; `narrower` maps no group but one, and `other` is another client of the provider. */
let servers: Record<"first" | "second" | "narrower" | "other", RunningServer>;
let base = "";

const stops: (() => Promise<void>)[] = [];

before(async () => {
  target = await openDatabase();
  const [port, providerPort] = [await freePort(), await freePort()];
  base = `http://127.0.0.1:${port}`;
  provider = await startOidcProvider(providerPort, { ...client, redirectUri: `${base}/dashboard/signed-in` });
  stops.push(() => provider.stop());
  const { files } = await bundleDashboard();
  const start = async (more: Readonly<Record<string, string>> = {}) => {
    const server = await startServer(
      {
        "database-url": target.url,
        "agent-tokens": Object.values(regions)
          .map((region) => `${region} token-of-${region}-agents`)
          .join(),
        "admin-tokens": `ann read-write ${tokenOfAnn}`,
        listen: "127.0.0.1:0",
        "oidc-issuer": provider.issuer,
        "oidc-client-id": client.clientId,
        "oidc-client-secret": client.clientSecret,
        "oidc-public-url": base,
        "oidc-scopes": "openid,email,groups",
        "oidc-roles": `sre read-write *,viewers read-only *,eu-team read-write ${regions.eu}`,
        ...more,
      },
      {},
      { dashboard: unpackFiles(files), createToken: () => randomBytes(24).toString("hex"), log },
    );
    stops.unshift(() => server.stop());
    return server;
  };
  const first = await start({ listen: `127.0.0.1:${port}` });
  servers = {
    first,
    second: await start(),
    narrower: await start({ "oidc-roles": "viewers read-only *" }),
    other: await start({ "oidc-client-id": "another-client" }),
  };
  for (const region of Object.values(regions))
    await first.admin.setDeployment(region, applyDeployment({ deploymentId: `d_${region}` }));
});
after(async () => {
  for (const stop of stops) await stop();
  await target.close();
});
beforeEach(() => {
  provider.forge = undefined;
  for (const [login, groups] of [
    ["sam", ["sre", "all-hands"]],
    ["vera", ["viewers"]],
    ["emil", ["eu-team", "viewers-of-elsewhere"]],
    ["nora", ["all-hands"]],
  ] as const)
    provider.people.set(login, { email: `${login}@example.com`, email_verified: true, groups });
});

/** Signs in at the provider; resolves with its redirect back to krane, which is not followed. */
async function signInAtProvider(
  browser: CookieBrowser,
  login = "sam",
  path = "/dashboard/sign-in",
): Promise<string> {
  const isBack = (url: string) => url.startsWith(base);
  const form = await browser.follow(`${base}${path}`, isBack);
  if (form.location !== undefined) return form.location;
  const action = /action="([^"]+)"/.exec(form.body)?.[1] ?? assert.fail(form.body);
  const sent = await browser.get(action, { form: `prompt=login&login=${login}&password=x` });
  const back = await browser.follow(sent.location ?? assert.fail(sent.body), isBack);
  return back.location ?? assert.fail(`${back.url}: ${back.body}`);
}

/** Signs in; resolves with the browser, which then has a session. */
async function signedIn(login = "sam"): Promise<CookieBrowser> {
  const browser = new CookieBrowser();
  const visit = await browser.get(await signInAtProvider(browser, login));
  assert.equal(visit.location, `${base}/dashboard/`);
  assert.ok(browser.cookies(base).has("krane-session"));
  return browser;
}

async function call(browser: CookieBrowser, method: string, message: object = {}, server = servers.first) {
  const url = `http://127.0.0.1:${server.port}/${AdminService.typeName}/${method}`;
  const cookie = [...browser.cookies(base)].map(([name, value]) => `${name}=${value}`).join("; ");
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "sec-fetch-site": "same-origin", cookie },
    body: JSON.stringify(message),
  });
  const body = (await response.json()) as Record<string, unknown>;
  return { status: response.status, code: body["code"], body };
}

function refused(visit: Visit, browser: CookieBrowser, problem: string): void {
  assert.deepEqual([visit.status, visit.location], [303, `${base}/dashboard/?sign-in=${problem}`]);
  assert.equal(browser.cookies(base).has("krane-session"), false);
}

/** The sign-in is refused because of its ID token, and goes through without the change. */
async function refusesToken(forge: (token: IdToken) => IdToken | undefined): Promise<void> {
  const browser = new CookieBrowser();
  const back = await signInAtProvider(browser);
  provider.forge = forge;
  refused(await browser.get(back), browser, "invalid");
  provider.forge = (token) => token;
  await signedIn();
}

const withClaims =
  (change: object) =>
  ({ header, claims }: IdToken) => ({ header, claims: { ...claims, ...change } });
const nowSeconds = () => Math.trunc(Date.now() / 1_000);

const attempts: Readonly<Record<string, () => Promise<void>>> = {
  "a response that nobody asked for": async () => {
    const back = await signInAtProvider(new CookieBrowser());
    const browser = new CookieBrowser();
    refused(await browser.get(back), browser, "expired");
  },
  "a response to another browser (state)": async () => {
    const [attacker, victim] = [new CookieBrowser(), new CookieBrowser()];
    const back = await signInAtProvider(attacker, "nora");
    await victim.get(`${base}/dashboard/sign-in`);
    refused(await victim.get(back), victim, "invalid");
  },
  "a response without state, or with another": async () => {
    for (const state of ["", "x".repeat(43)]) {
      const browser = new CookieBrowser();
      const back = new URL(await signInAtProvider(browser));
      if (state === "") back.searchParams.delete("state");
      else back.searchParams.set("state", state);
      refused(await browser.get(back.href), browser, "invalid");
    }
  },
  "a code that another browser got (PKCE)": async () => {
    const [attacker, victim] = [new CookieBrowser(), new CookieBrowser()];
    const stolen = new URL(await signInAtProvider(victim)).searchParams.get("code") ?? assert.fail("no code");
    const own = new URL(await signInAtProvider(attacker, "nora"));
    own.searchParams.set("code", stolen);
    refused(await attacker.get(own.href), attacker, "invalid");
  },
  "a response that was used before": async () => {
    const browser = new CookieBrowser();
    const back = await signInAtProvider(browser);
    const cookies = new Map(browser.cookies(base));
    await browser.get(back);
    const thief = new CookieBrowser();
    for (const [name, value] of cookies) thief.cookies(base).set(name, value);
    refused(await thief.get(back), thief, "expired");
  },
  "a code that was used before": async () => {
    const browser = new CookieBrowser();
    const back = await signInAtProvider(browser);
    await browser.get(back);
    const again = new CookieBrowser();
    const own = new URL(await signInAtProvider(again));
    own.searchParams.set("code", new URL(back).searchParams.get("code") ?? "");
    refused(await again.get(own.href), again, "invalid");
  },
  "a sign-in that took too long": async () => {
    const browser = new CookieBrowser();
    const back = await signInAtProvider(browser);
    const id = idOfSecret(browser.cookies(base).get("krane-sign-in") ?? "");
    const { sessions } = servers.first.store;
    const begun = (await sessions.takeSignIn(id)) ?? assert.fail("not stored");
    await sessions.beginSignIn({ ...begun, expiresAtMs: Date.now() - 1 }, 0);
    refused(await browser.get(back), browser, "expired");
  },
  "a second sign-in cookie from a neighbour": async () => {
    const browser = new CookieBrowser();
    const back = await signInAtProvider(browser);
    const own = browser.cookies(base).get("krane-sign-in");
    const cookie = `krane-sign-in=planted; krane-sign-in=${own}`;
    refused(await browser.get(back, { headers: { cookie } }), browser, "expired");
  },
  "a response of another provider (iss)": async () => {
    const browser = new CookieBrowser();
    const back = new URL(await signInAtProvider(browser));
    assert.equal(back.searchParams.get("iss"), provider.issuer);
    back.searchParams.set("iss", "https://evil.example");
    refused(await browser.get(back.href), browser, "invalid");
  },
  "an ID token for another client (aud)": () => refusesToken(withClaims({ aud: "another-client" })),
  "an ID token for several clients, made for another (azp)": () =>
    refusesToken(withClaims({ aud: [client.clientId, "another-client"], azp: "another-client" })),
  "an ID token of another provider (iss)": () => refusesToken(withClaims({ iss: "https://evil.example" })),
  "an ID token that has expired": () =>
    refusesToken(withClaims({ iat: nowSeconds() - 7_200, exp: nowSeconds() - 3_600 })),
  "an ID token of another sign-in (nonce)": () => refusesToken(withClaims({ nonce: "x".repeat(43) })),
  "an ID token without a nonce": () => refusesToken(withClaims({ nonce: undefined })),
  "an ID token that another key signed": () =>
    refusesToken((token) => ({
      ...token,
      key: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey,
    })),
  "an ID token without a signature (alg none)": () =>
    refusesToken(({ claims }) => ({ header: { alg: "none" }, claims })),
  "an ID token with a signature of another kind (HS256)": () =>
    refusesToken(({ claims }) => ({ header: { alg: "HS256" }, claims })),
  "an answer without an ID token": () => refusesToken(() => undefined),
  "a person whose groups have no role": async () => {
    const browser = new CookieBrowser();
    refused(await browser.get(await signInAtProvider(browser, "nora")), browser, "access");
  },
  "groups that only look like one": async () => {
    for (const groups of [["SRE"], ["sre "], ["sre,viewers"], "sreX", { sre: true }, null]) {
      provider.people.set("mia", { email: "mia@example.com", email_verified: true, groups: groups as never });
      const browser = new CookieBrowser();
      refused(await browser.get(await signInAtProvider(browser, "mia")), browser, "access");
    }
  },
  "a group that the provider took away": async () => {
    await signedIn("sam");
    provider.people.set("sam", { email: "sam@example.com", email_verified: true, groups: ["all-hands"] });
    const browser = new CookieBrowser();
    refused(await browser.get(await signInAtProvider(browser, "sam")), browser, "access");
  },
  "a session after its hour": async () => {
    const browser = await signedIn();
    const id = idOfSecret(browser.cookies(base).get("krane-session") ?? "");
    const { sessions } = servers.first.store;
    const stored = (await sessions.find(id)) ?? assert.fail("not stored");
    assert.equal(stored.expiresAtMs - stored.createdAtMs, 3_600_000);
    await sessions.end({ id });
    await sessions.add({ ...stored, createdAtMs: 0, expiresAtMs: Date.now() - 1 });
    assert.equal((await call(browser, "GetSession")).code, "unauthenticated");
  },
  "a group that the settings took away": async () => {
    const browser = await signedIn("sam");
    assert.equal((await call(browser, "GetSession")).status, 200);
    assert.equal((await call(browser, "GetSession", {}, servers.narrower)).code, "unauthenticated");
  },
  "a session of another provider or client": async () => {
    const browser = await signedIn("sam");
    assert.equal((await call(browser, "GetSession", {}, servers.other)).code, "unauthenticated");
  },
  "a session after signing out on another server": async () => {
    const browser = await signedIn();
    const copy = new CookieBrowser();
    copy.cookies(base).set("krane-session", browser.cookies(base).get("krane-session") ?? "");
    assert.equal((await call(browser, "EndSession", {}, servers.second)).status, 200);
    assert.equal((await call(copy, "GetSession")).code, "unauthenticated");
  },
  "a session that somebody planted before": async () => {
    const browser = new CookieBrowser();
    const planted = "a".repeat(48);
    browser.cookies(base).set("krane-session", planted);
    await browser.get(await signInAtProvider(browser));
    assert.notEqual(browser.cookies(base).get("krane-session"), planted);
    browser.cookies(base).set("krane-session", planted);
    assert.equal((await call(browser, "GetSession")).code, "unauthenticated");
  },
  "each change, by somebody who may only read": async () => {
    const browser = await signedIn("vera");
    for (const { name, localName } of Object.values(AdminService.method))
      if (methodEffects[localName as keyof typeof methodEffects] === "writes")
        assert.equal((await call(browser, name, { region: regions.eu })).code, "permission_denied", name);
  },
  "each call about a region that no group allows": async () => {
    const browser = await signedIn("emil");
    const ref = (region: string) => ({ region, kind: "OBJECT_KIND_DEPLOYMENT", id: `d_${region}` });
    assert.equal((await call(browser, "GetObject", { ref: ref(regions.eu) })).status, 200);
    const ofCaller = ["CreateSession", "GetSession", "EndSession"];
    for (const { name, methodKind } of Object.values(AdminService.method)) {
      if (methodKind !== "unary" || ofCaller.includes(name)) continue;
      const { input } =
        AdminService.method[`${name[0]?.toLowerCase()}${name.slice(1)}` as keyof typeof AdminService.method];
      const message = input.fields.some((field) => field.name === "ref")
        ? { ref: ref(regions.us) }
        : { region: regions.us };
      const { code, body } = await call(browser, name, message);
      if (name === "ListAgents") assert.deepEqual(body["agents"] ?? [], []);
      else assert.equal(code, "permission_denied", name);
    }
    const { body } = await call(browser, "ListAgents");
    assert.deepEqual(
      (body["agents"] as { region: string }[]).map(({ region }) => region),
      [regions.eu],
    );
    const text = (region: string) =>
      `apiVersion: krane/v1\nkind: Environment\nregion: ${region}\nid: env_1\nworkspace: ws_1\nproject: prj_1\n`;
    const plan = async (region: string) =>
      JSON.stringify((await call(browser, "PlanDocuments", { region: regions.eu, text: text(region) })).body);
    assert.match(await plan(regions.us), /us\.aws is unknown to this server/);
    assert.match(await plan(regions.eu), /CHANGE_CREATED/);
    const events = await stream(browser, "WatchEvents", { region: regions.us, backlog: 10 });
    assert.match(events, /permission_denied/);
    for (const region of Object.values(regions)) {
      const logs = await stream(browser, "StreamLogs", { region, deploymentId: `d_${region}` });
      assert.match(logs, /permission_denied/);
    }
    const fleet = await stream(browser, "WatchFleet", {});
    assert.ok(fleet.includes(regions.eu) && !fleet.includes(regions.us), fleet);
  },
  "a return to another site": async () => {
    for (const to of [
      "//evil.example",
      "https://evil.example/dashboard/",
      "/\\evil.example",
      "/dashboard//evil.example",
      "/dashboard/../..//evil.example",
      "/dashboard/%0d%0aset-cookie:x=1",
      "/dashboard/x\r\nset-cookie: krane-session=1",
      "javascript:alert(1)",
      "/dashboard/sign-in",
    ]) {
      const browser = new CookieBrowser();
      const path = `/dashboard/sign-in?to=${encodeURIComponent(to)}`;
      const visit = await browser.get(await signInAtProvider(browser, "sam", path));
      const { origin, pathname } = new URL(visit.location ?? "");
      assert.deepEqual(
        [origin, pathname.startsWith("/dashboard/"), pathname.includes("//")],
        [base, true, false],
        to,
      );
      // The session of this sign-in has a long secret, which may begin with a 1 too.
      assert.ok(!visit.headers.getSetCookie().some((line) => /^krane-session=1(;|$)/.test(line)));
    }
  },
  "a redirect URI of the caller's choice": async () => {
    const headers = { "x-forwarded-host": "evil.example", "x-forwarded-proto": "http" };
    const { location = "" } = await new CookieBrowser().get(
      `${base}/dashboard/sign-in?redirect_uri=https://evil.example`,
      { headers },
    );
    assert.equal(new URL(location).searchParams.get("redirect_uri"), `${base}/dashboard/signed-in`);
  },
  "a link on another site that signs somebody in": async () => {
    const browser = new CookieBrowser();
    const visit = await browser.get(`${base}/dashboard/sign-in`, {
      headers: { "sec-fetch-site": "cross-site" },
    });
    assert.equal(visit.location, `${base}/dashboard/`);
    assert.equal(browser.cookies(base).size, 0);
  },
  "a name that is none": async () => {
    for (const email of ["", "<script>@example.com", "two words", "a\r\nb", "x".repeat(129)]) {
      provider.people.set("mia", { email, email_verified: true, groups: ["sre"] });
      const browser = new CookieBrowser();
      refused(await browser.get(await signInAtProvider(browser, "mia")), browser, "name");
    }
  },
  "an address that the provider has not verified": async () => {
    provider.people.set("mia", { email: "sam@example.com", email_verified: false, groups: ["sre"] });
    const browser = new CookieBrowser();
    refused(await browser.get(await signInAtProvider(browser, "mia")), browser, "name");
  },
  "a name that a token has": async () => {
    provider.people.set("mia", { email: "ann", email_verified: true, groups: ["sre"] });
    const { body } = await call(await signedIn("mia"), "GetSession");
    assert.equal((body["session"] as { name: string }).name, "oidc:ann");
  },
  "a sign-in that the provider refuses": async () => {
    const browser = new CookieBrowser();
    const form = await browser.follow(`${base}/dashboard/sign-in`, () => false);
    const abort = /href="([^"]*abort)"/.exec(form.body)?.[1] ?? assert.fail(form.body);
    const back = await browser.follow(abort, (url) => url.startsWith(base));
    refused(await browser.get(back.location ?? ""), browser, "denied");
  },
  "another method": async () => {
    for (const path of ["/dashboard/sign-in", "/dashboard/signed-in", "/dashboard/provider"])
      assert.equal((await new CookieBrowser().get(`${base}${path}`, { form: "code=x" })).status, 405, path);
  },
  "secrets in a log, a URL or the database": async () => {
    const browser = new CookieBrowser();
    const back = await signInAtProvider(browser);
    const signIn = browser.cookies(base).get("krane-sign-in") ?? assert.fail("no cookie");
    const visit = await browser.get(back);
    const session = browser.cookies(base).get("krane-session") ?? assert.fail("no session");
    const code = new URL(back).searchParams.get("code") ?? "";
    const stored = JSON.stringify(await servers.first.store.sessions.find(idOfSecret(session)));
    assert.ok(stored.includes("all-hands"));
    const seen = [JSON.stringify(lines), back, visit.location, stored].join("\n");
    const secrets = [signIn, session, client.clientSecret, ...provider.tokens];
    for (const secret of secrets) assert.ok(secret.length > 16 && !seen.includes(secret));
    assert.ok(!JSON.stringify(lines).includes(code));
    assert.ok(lines.length > 10);
  },
  "too many attempts": async () => {
    const browser = new CookieBrowser();
    let last: Visit | undefined;
    for (let count = 0; count < 200 && !last?.location?.endsWith("=busy"); count += 1)
      last = await browser.get(`${base}/dashboard/sign-in`);
    assert.match(last?.location ?? "", /sign-in=busy$/);
  },
};

/** The text of a stream until it ends or a second message is there. */
async function stream(browser: CookieBrowser, method: string, message: object): Promise<string> {
  const body = Buffer.from(JSON.stringify(message));
  const frame = Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), body]);
  const cookie = [...browser.cookies(base)].map(([name, value]) => `${name}=${value}`).join("; ");
  const response = await fetch(`${base}/${AdminService.typeName}/${method}`, {
    method: "POST",
    headers: { "content-type": "application/connect+json", "sec-fetch-site": "same-origin", cookie },
    body: frame,
  });
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk as Uint8Array).toString();
    if (text.includes("nowMs")) break;
  }
  return text;
}

describe("is refused:", () => {
  for (const [name, attempt] of Object.entries(attempts)) test(name, attempt);
});

test("SECURITY.md has every attempt, and no other", () => {
  const [, table = ""] =
    /<!-- oidc-attempts:begin -->([\s\S]*)<!-- oidc-attempts:end -->/.exec(readProjectFile("SECURITY.md")) ??
    [];
  const listed = [...table.matchAll(/^- (.*)$/gm)].map(([, name]) => name);
  assert.deepEqual(listed, Object.keys(attempts));
});

test("whoever signs in comes back to the view that they wanted, with the rights of their groups, on every server", async () => {
  const browser = new CookieBrowser();
  const to = "/dashboard/regions/eu.aws?q=web&troubled=1";
  const visit = await browser.get(
    await signInAtProvider(browser, "emil", `/dashboard/sign-in?to=${encodeURIComponent(to)}`),
  );
  assert.equal(visit.location, `${base}${to}`);
  const [session] = visit.headers.getSetCookie();
  assert.match(String(session), /^krane-session=\w{48}; Path=\/; Max-Age=3600; HttpOnly; SameSite=Strict$/);
  assert.equal(browser.cookies(base).has("krane-sign-in"), false);
  for (const server of [servers.first, servers.second]) {
    const { body } = await call(browser, "GetSession", {}, server);
    const { expiresAtMs, ...own } = body["session"] as Record<string, unknown>;
    assert.deepEqual(own, {
      name: "oidc:emil@example.com",
      canWrite: true,
      isLimited: true,
      writableRegions: [regions.eu],
    });
    assert.ok(Number(expiresAtMs) > Date.now());
  }
  const ref = { region: regions.eu, kind: "OBJECT_KIND_DEPLOYMENT", id: `d_${regions.eu}` };
  assert.equal((await call(browser, "ScaleObject", { ref, replicas: 2 })).status, 200);
  const { body } = await call(browser, "ListEvents", { region: regions.eu, limit: 1 });
  assert.deepEqual((body["events"] as { by: string }[])[0]?.by, "oidc:emil@example.com");
});

test("a provider that does not answer is said, and tokens still sign in", async () => {
  await provider.stop();
  const browser = new CookieBrowser();
  const visit = await browser.get(`http://127.0.0.1:${servers.narrower.port}/dashboard/sign-in`);
  assert.match(visit.location ?? "", /sign-in=unavailable$/);
  const response = await fetch(`${base}/${AdminService.typeName}/CreateSession`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${tokenOfAnn}` },
    body: "{}",
  });
  assert.equal(response.status, 200);
  stops.pop();
});
