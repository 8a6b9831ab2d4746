// What somebody may try against a signed-in browser, or with one; each attempt is refused. SECURITY.md has the same table.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { AdminService } from "../../src/gen/krane/admin/v1/admin_pb.ts";
import { methodEffects } from "../../src/server/admin-service/admin-auth.ts";
import {
  idOfSecret,
  isOwnPage,
  renderCookie,
  secretInCookies,
  sessionCookie,
  sessionLifetimeMs,
} from "../../src/server/admin-service/session-secrets.ts";
import {
  browserTokens,
  type DashboardServer,
  ownPage,
  type Reply,
  startDashboardServer,
} from "../support/dashboard-server.ts";
import { applyDeployment } from "../support/deployment-messages.ts";
import { eventually } from "../support/eventually.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { createKeptLog } from "../support/kept-log.ts";
import { readProjectFile } from "../support/project-files.ts";
import { createStoreAdmin } from "../support/store-admin.ts";

const clock = new FakeClock();
const { log, lines } = createKeptLog();
let server: DashboardServer;

before(async () => {
  server = await startDashboardServer({ clock, log });
  await createStoreAdmin(server.store, { clock, by: "test" }).setDeployment("local.dev", web);
});
after(() => server.stop());

const page = "/dashboard/";
const unauthenticated = (reply: Reply) =>
  assert.deepEqual([reply.status, reply.code], [401, "unauthenticated"]);
const denied = (reply: Reply) => assert.deepEqual([reply.status, reply.code], [403, "permission_denied"]);
const asPage = (cookie: string) => ({ cookie, ...ownPage });

const web = applyDeployment({ deploymentId: "d_web" });
const followedLog = { region: "local.dev", deploymentId: "d_web", follow: true };

/** A stream to its end, which comes as time passes. */
async function whenOver(stream: Promise<string>): Promise<string> {
  let isOver = false;
  const rest = stream.finally(() => {
    isOver = true;
  });
  await eventually("the stream has ended", async () => {
    await clock.advance(1_000);
    assert.ok(isOver, "not yet");
  });
  return rest;
}

/** A call in the name of somebody who is signed in, with the headers of a request that another page made. */
async function forged(headers: Readonly<Record<string, string>>): Promise<Reply> {
  const cookie = await server.signIn();
  return server.call("ListAgents", { cookie, ...headers });
}

const attempts: Readonly<Record<string, () => Promise<void>>> = {
  "a request from another site": async () => denied(await forged({ "sec-fetch-site": "cross-site" })),
  "a request from another host of the same domain": async () =>
    denied(await forged({ "sec-fetch-site": "same-site" })),
  "a request that no page made": async () => denied(await forged({ "sec-fetch-site": "none" })),
  "a request without any sign of its page": async () => denied(await forged({})),
  "a request from another origin, over plain HTTP": async () =>
    denied(await forged({ origin: "http://evil.example" })),
  "a request from another port of this host": async () =>
    denied(await forged({ origin: "http://127.0.0.1:1" })),
  "a request from a sandboxed frame": async () => denied(await forged({ origin: "null" })),
  "a form that another page sends": async () => {
    const cookie = await server.signIn();
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
    ]) {
      const headers = { ...asPage(cookie), "content-type": type };
      const path = `/${AdminService.typeName}/ListAgents`;
      assert.equal((await server.send({ method: "POST", path, headers, body: "{}" })).status, 415, type);
    }
  },
  "a link to a call": async () => {
    const cookie = await server.signIn();
    const path = `/${AdminService.typeName}/ListAgents?message=%7B%7D&encoding=json&connect=v1`;
    assert.equal((await server.send({ path, headers: asPage(cookie) })).status, 405);
  },
  "a preflight of another site": async () => {
    const headers = { origin: "http://evil.example", "access-control-request-method": "POST" };
    for (const path of [`/${AdminService.typeName}/CreateSession`, page]) {
      const reply = await server.send({ method: "OPTIONS", path, headers });
      assert.ok(reply.status >= 400, path);
      assert.deepEqual(
        Object.keys(reply.headers).filter((name) => name.startsWith("access-control")),
        [],
      );
    }
  },
  "a frame around the page": async () => {
    const { headers } = await server.send({ path: page });
    assert.match(String(headers["content-security-policy"]), /frame-ancestors 'none'/);
    assert.equal(headers["x-frame-options"], "DENY");
  },
  "a script in the page, or from elsewhere": async () => {
    const { headers, body } = await server.send({ path: page });
    const policy = String(headers["content-security-policy"]);
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
    assert.doesNotMatch(policy, /unsafe|https?:|\*|data:/);
    assert.match(policy, /require-trusted-types-for 'script'/);
    // Nothing in the page itself would need an exception.
    assert.doesNotMatch(body, /<script(?![^>]*\bsrc="\/dashboard\/assets\/)|<style|\son\w+=|style=|https?:/);
    assert.equal(headers["x-content-type-options"], "nosniff");
  },
  "a session whose secret somebody else chose": async () => {
    const cookie = `krane-session=${"a".repeat(48)}`;
    unauthenticated(await server.call("GetSession", asPage(cookie)));
    const { headers } = await server.call("CreateSession", {
      authorization: `Bearer ${browserTokens.ann}`,
      ...asPage(cookie),
    });
    assert.ok(!String(headers["set-cookie"]).includes("aaaa"), "signing in makes a new one");
    unauthenticated(await server.call("GetSession", asPage(cookie)));
  },
  "a second cookie from a neighbour": async () => {
    const cookie = await server.signIn();
    unauthenticated(await server.call("GetSession", asPage(`krane-session=${"b".repeat(48)}; ${cookie}`)));
  },
  "a session after signing out": async () => {
    const cookie = await server.signIn();
    assert.equal((await server.call("EndSession", asPage(cookie))).status, 200);
    unauthenticated(await server.call("GetSession", asPage(cookie)));
  },
  "a session after signing out everywhere": async () => {
    const [one, other] = [await server.signIn(), await server.signIn()];
    assert.equal((await server.call("EndSession", asPage(one), { all: true })).status, 200);
    for (const cookie of [one, other]) unauthenticated(await server.call("GetSession", asPage(cookie)));
  },
  "a session after its time": async () => {
    const cookie = await server.signIn();
    await clock.advance(sessionLifetimeMs - 1);
    assert.equal((await server.call("GetSession", asPage(cookie))).status, 200);
    await clock.advance(1);
    unauthenticated(await server.call("GetSession", asPage(cookie)));
  },
  "a session after its token was replaced": async () => {
    const cookie = await server.signIn();
    const { people } = server.lists;
    server.lists.people = people.replace(browserTokens.ann, "another-token-of-ann");
    unauthenticated(await server.call("GetSession", asPage(cookie)));
    server.lists.people = people;
  },
  "a session of a token that agents got as well": async () => {
    const cookie = await server.signIn();
    const { agents } = server.lists;
    server.lists.agents = `${agents}\nus-east-1.aws ${browserTokens.ann}`;
    unauthenticated(await server.call("GetSession", asPage(cookie)));
    server.lists.agents = agents;
  },
  "a right that the token has lost": async () => {
    const cookie = await server.signIn();
    const { people } = server.lists;
    server.lists.people = people.replace("ann read-write", "ann read-only");
    denied(await server.call("DeleteObject", asPage(cookie)));
    server.lists.people = people;
  },
  "a session that is made with a session": async () => {
    denied(await server.call("CreateSession", asPage(await server.signIn())));
  },
  "each call that changes something, by a reader": async () => {
    const cookie = await server.signIn(browserTokens.bob);
    for (const { name, localName } of Object.values(AdminService.method)) {
      if (methodEffects[localName as keyof typeof methodEffects] === "writes")
        denied(await server.call(name, asPage(cookie)));
    }
  },
  "the logs of pods, by somebody who may not read them": async () => {
    for (const token of [browserTokens.ann, browserTokens.bob]) {
      const cookie = await server.signIn(token);
      assert.match(await server.stream("StreamLogs", asPage(cookie), followedLog), /"permission_denied"/);
    }
  },
  "logs that are still read after their reader lost the right": async () => {
    const { people } = server.lists;
    server.lists.people = people.replace("ann read-write", "ann logs");
    const cookie = await server.signIn();
    const leaving = new AbortController();
    const agent = server.logs.requests("local.dev", leaving.signal);
    await agent.next();
    const asked = agent.next();
    const rest = server.stream("StreamLogs", asPage(cookie), followedLog);
    assert.equal((await asked).value?.deploymentId, "d_web");
    server.lists.people = people.replace("ann read-write", "ann read-only");
    assert.match(await whenOver(rest), /"permission_denied".*the token ann may not read logs/);
    server.lists.people = people;
    leaving.abort(new Error("the agent has left"));
  },
  "a session for an agent's token": async () => {
    unauthenticated(await server.call("CreateSession", { authorization: `Bearer ${browserTokens.agent}` }));
  },
  "a token in the URL, in the body or as a cookie": async () => {
    const { ann } = browserTokens;
    const path = `/${AdminService.typeName}/GetSession?token=${ann}&access_token=${ann}`;
    const headers = { "content-type": "application/json", ...ownPage };
    unauthenticated(await server.send({ method: "POST", path, headers, body: "{}" }));
    unauthenticated(await server.call("GetSession", ownPage, { token: ann }));
    unauthenticated(await server.call("GetSession", asPage(`krane-session=${ann}; token=${ann}`)));
  },
  "what the database has of a session": async () => {
    const cookie = await server.signIn();
    const id = idOfSecret(cookie.split("=")[1] ?? "");
    const stored = await server.store.sessions.find(id);
    assert.ok(stored !== undefined);
    const known = JSON.stringify(stored);
    for (const secret of [cookie.split("=")[1] ?? "?", browserTokens.ann]) assert.ok(!known.includes(secret));
    for (const value of [stored.id, stored.binding])
      unauthenticated(await server.call("GetSession", asPage(`krane-session=${value}`)));
  },
  "a path out of the assets": async () => {
    for (const path of [
      "../index",
      "..%2f..%2fetc/passwd",
      "%2e%2e/%2e%2e/package.json",
      "",
      "constructor",
      "main",
    ])
      assert.equal((await server.send({ path: `${page}assets/${path}` })).status, 404, path);
  },
  "a redirect to elsewhere": async () => {
    assert.equal((await server.send({ path: "/" })).headers.location, page);
    for (const path of [
      "//evil.example",
      "//evil.example/dashboard/",
      "/\\evil.example",
      "/dashboard//evil.example",
    ])
      assert.equal((await server.send({ path })).headers.location, undefined, path);
  },
  "a header in a path": async () => {
    const reply = await server.send({ path: `${page}x%0d%0aset-cookie:%20krane-session=1` });
    assert.equal(reply.headers["set-cookie"], undefined);
  },
  "headers that never end": async () => {
    const reply = await server.send({ path: page, headers: { cookie: "x=".padEnd(20_000, "y") } });
    assert.equal(reply.status, 431);
  },
  "another method on the page": async () => {
    for (const method of ["POST", "PUT", "DELETE", "PATCH", "TRACE"])
      assert.equal((await server.send({ method, path: page })).status, 405, method);
  },
  "guessing tokens": async () => {
    await clock.advance(10 * 60_000);
    const guess = () => server.call("CreateSession", { authorization: "Bearer not-the-right-one" });
    for (let count = 0; count < 20; count += 1) unauthenticated(await guess());
    const { status, code } = await guess();
    assert.deepEqual([status, code], [429, "resource_exhausted"]);
    // Nor the right one, until a while has passed.
    const right = () => server.call("CreateSession", { authorization: `Bearer ${browserTokens.ann}` });
    assert.equal((await right()).status, 429);
    await clock.advance(60_000);
    assert.equal((await right()).status, 200);
  },
  "secrets in the log": async () => {
    const cookie = await server.signIn();
    await server.call("GetSession", asPage(`${cookie}x`));
    const written = JSON.stringify(lines);
    for (const secret of [...Object.values(browserTokens), cookie.split("=")[1] ?? "?"])
      assert.ok(!written.includes(secret));
  },
};

describe("is refused:", () => {
  for (const [name, attempt] of Object.entries(attempts)) test(name, attempt);
});

test("SECURITY.md has every attempt, and no other", () => {
  const [, table = ""] =
    /<!-- attempts:begin -->([\s\S]*)<!-- attempts:end -->/.exec(readProjectFile("SECURITY.md")) ?? [];
  const listed = [...table.matchAll(/^- (.*)$/gm)].map(([, name]) => name);
  assert.deepEqual(listed, Object.keys(attempts));
});

test("the page of this server is let in, over TLS and over plain HTTP", () => {
  assert.equal(isOwnPage(new Headers({ "sec-fetch-site": "same-origin" })), true);
  assert.equal(isOwnPage(new Headers({ origin: "http://10.0.0.1:7091", host: "10.0.0.1:7091" })), true);
});

test("the cookie is for this host alone, for no script, and over TLS for TLS alone", async () => {
  const { headers } = await server.call("CreateSession", { authorization: `Bearer ${browserTokens.ann}` });
  assert.match(
    String(headers["set-cookie"]),
    /^krane-session=\w{48}; Path=\/; Max-Age=28800; HttpOnly; SameSite=Strict$/,
  );
  const cookie = renderCookie("s", sessionCookie(true));
  assert.equal(cookie, "__Host-krane-session=s; Path=/; Max-Age=28800; HttpOnly; SameSite=Strict; Secure");
  assert.equal(secretInCookies(cookie.split(";")[0] ?? "", sessionCookie(true)), "s");
  // Over TLS, one that came over plain HTTP is not accepted.
  assert.equal(secretInCookies("krane-session=s", sessionCookie(true)), undefined);
  const proxied = await server.call("CreateSession", {
    authorization: `Bearer ${browserTokens.ann}`,
    "x-forwarded-proto": "https",
  });
  assert.match(String(proxied.headers["set-cookie"]), /^__Host-.*; Secure$/);
});

test("a stream ends soon after its session", async () => {
  const cookie = await server.signIn();
  const rest = server.stream("WatchFleet", asPage(cookie));
  await server.call("EndSession", asPage(cookie));
  assert.match(await whenOver(rest), /"unauthenticated"/);
});
