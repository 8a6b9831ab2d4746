// Lists in pages, and lists of a state that the caller names.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import { secret, secrets } from "../fixtures.ts";
import type { Manifest } from "../manifest.ts";
import { refused } from "../refusal.ts";
import type { Trial } from "../trial.ts";

async function createMany(trial: Trial, ...names: readonly string[]): Promise<readonly Manifest[]> {
  const made: Manifest[] = [];
  for (const name of names) made.push(await trial.create(secrets, secret(name)));
  return made;
}

function namesOf(page: { readonly items: readonly Manifest[] }): readonly (string | undefined)[] {
  return page.items.map((item) => item.metadata?.name);
}

function versionOf(object: Manifest | undefined): string {
  return object?.metadata?.resourceVersion ?? "";
}

// Far beyond what any server has counted to.
const future = "99999999999";

export const pagingCases = [
  contractCase("pages: limit cuts the list and says how much is left", async (trial) => {
    await createMany(trial, "a", "b", "c", "d", "e");
    const page = await trial.list(secrets, { limit: 2 });
    assert.deepEqual(namesOf(page), ["a", "b"]);
    assert.ok(page.continue);
    assert.equal(page.remainingItemCount, 3);
  }),
  contractCase("pages: following continue gives every object once, in order", async (trial) => {
    await createMany(trial, "a", "b", "c", "d", "e");
    const seen: (string | undefined)[] = [];
    let token: string | undefined;
    do {
      const page = await trial.list(secrets, {
        limit: 2,
        ...(token === undefined ? {} : { continue: token }),
      });
      seen.push(...namesOf(page));
      token = page.continue;
    } while (token !== undefined);
    assert.deepEqual(seen, ["a", "b", "c", "d", "e"]);
  }),
  contractCase("pages: the last page has no continue and no remaining count", async (trial) => {
    await createMany(trial, "a", "b", "c");
    const first = await trial.list(secrets, { limit: 2 });
    const last = await trial.list(secrets, { limit: 2, continue: first.continue ?? "" });
    assert.deepEqual(namesOf(last), ["c"]);
    assert.equal(last.continue, undefined);
    assert.equal(last.remainingItemCount, undefined);
  }),
  contractCase("pages: a limit that is not reached is no page", async (trial) => {
    await createMany(trial, "a", "b");
    const page = await trial.list(secrets, { limit: 2 });
    assert.deepEqual(namesOf(page), ["a", "b"]);
    assert.equal(page.continue, undefined);
  }),
  contractCase("pages: all pages show the state of the first one", async (trial) => {
    await createMany(trial, "a", "b", "c", "d");
    const first = await trial.list(secrets, { limit: 2 });
    await trial.delete(secrets, "d");
    await trial.create(secrets, secret("c-new"));
    await trial.patch(secrets, "c", "merge", { metadata: { labels: { late: "yes" } } });
    const second = await trial.list(secrets, { limit: 9, continue: first.continue ?? "" });
    assert.deepEqual(namesOf(second), ["c", "d"]);
    assert.equal(second.items[0]?.metadata?.labels, undefined);
    assert.equal(second.resourceVersion, first.resourceVersion);
  }),
  contractCase("pages: with a selector, pages are of what matches and nothing is counted", async (trial) => {
    for (const name of ["a", "b", "c", "d", "e"]) {
      const labels = { odd: "ace".includes(name) ? "yes" : "no" };
      await trial.create(secrets, secret(name, {}, { labels }));
    }
    const page = await trial.list(secrets, { limit: 2, labelSelector: "odd=yes" });
    assert.deepEqual(namesOf(page), ["a", "c"]);
    assert.equal(page.remainingItemCount, undefined);
    const rest = { limit: 2, labelSelector: "odd=yes", continue: page.continue ?? "" };
    assert.deepEqual(namesOf(await trial.list(secrets, rest)), ["e"]);
  }),
  contractCase("pages: a token that is none is a bad request", async (trial) => {
    await refused(trial.list(secrets, { limit: 2, continue: "nonsense" }), {
      status: 400,
      reason: "BadRequest",
      message: /continue key is not valid/,
    });
  }),
  contractCase("pages: a token together with a resourceVersion is a bad request", async (trial) => {
    const [, made] = await createMany(trial, "a", "b", "c");
    const first = await trial.list(secrets, { limit: 1 });
    const options = { limit: 1, continue: first.continue ?? "", resourceVersion: versionOf(made) };
    await refused(trial.list(secrets, options), { status: 400, reason: "BadRequest" });
  }),
  contractCase("versions: resourceVersion 0 takes any state that the server has", async (trial) => {
    await createMany(trial, "a");
    const page = await trial.list(secrets, { resourceVersion: "0" });
    assert.match(page.resourceVersion, /^[1-9][0-9]*$/);
  }),
  contractCase("versions: a resourceVersion alone is a lower bound", async (trial) => {
    const [first] = await createMany(trial, "a", "b");
    const page = await trial.list(secrets, { resourceVersion: versionOf(first) });
    assert.ok(namesOf(page).includes("a"));
    assert.ok(BigInt(page.resourceVersion) >= BigInt(versionOf(first)));
  }),
  contractCase("versions: NotOlderThan says the same in words", async (trial) => {
    const made = await createMany(trial, "a", "b");
    const page = await trial.list(secrets, {
      resourceVersion: versionOf(made[1]),
      resourceVersionMatch: "NotOlderThan",
    });
    assert.deepEqual(namesOf(page), ["a", "b"]);
  }),
  contractCase("versions: Exact gives that very state", async (trial) => {
    const [first] = await createMany(trial, "a", "b");
    await trial.delete(secrets, "a");
    const page = await trial.list(secrets, {
      resourceVersion: versionOf(first),
      resourceVersionMatch: "Exact",
    });
    assert.deepEqual(namesOf(page), ["a"]);
    assert.equal(page.resourceVersion, versionOf(first));
  }),
  contractCase("versions: Exact can be paged", async (trial) => {
    const [, , third] = await createMany(trial, "a", "b", "c", "d");
    const page = await trial.list(secrets, {
      resourceVersion: versionOf(third),
      resourceVersionMatch: "Exact",
      limit: 2,
    });
    assert.deepEqual(namesOf(page), ["a", "b"]);
    const rest = await trial.list(secrets, { limit: 9, continue: page.continue ?? "" });
    assert.deepEqual(namesOf(rest), ["c"]);
  }),
  contractCase("versions: a match without a version is refused", async (trial) => {
    await refused(trial.list(secrets, { resourceVersionMatch: "Exact" }), {
      status: 422,
      reason: "Invalid",
      causes: ["FieldValueForbidden resourceVersionMatch"],
    });
  }),
  contractCase("versions: Exact of version 0 is refused", async (trial) => {
    await refused(trial.list(secrets, { resourceVersion: "0", resourceVersionMatch: "Exact" }), {
      status: 422,
      reason: "Invalid",
      causes: ["FieldValueForbidden resourceVersionMatch"],
    });
  }),
  contractCase("versions: one that is no number is refused", async (trial) => {
    await refused(trial.list(secrets, { resourceVersion: "nonsense" }), {
      status: 400,
      reason: "BadRequest",
    });
  }),
  contractCase(
    "versions: one from the future times out with the cause ResourceVersionTooLarge",
    async (trial) => {
      const error = await refused(trial.list(secrets, { resourceVersion: future }), {
        status: 504,
        reason: "Timeout",
        message: /Too large resource version: 99999999999, current: \d+/,
      });
      assert.equal(error.causes[0]?.reason, "ResourceVersionTooLarge");
      assert.equal(error.retryAfterMs, 1000);
    },
  ),
  contractCase("versions: a get from the future times out as well", async (trial) => {
    await trial.create(secrets, secret("a"));
    const error = await refused(trial.read(secrets, "a", { resourceVersion: future }), {
      status: 504,
      reason: "Timeout",
    });
    assert.equal(error.causes[0]?.reason, "ResourceVersionTooLarge");
  }),
];
