import assert from "node:assert/strict";
import { test } from "node:test";
import { format, inspect } from "node:util";
import { Secret } from "./secret.ts";

const value = "CANARY-value";

test("reveal returns the secret", () => {
  assert.equal(new Secret(value).reveal(), value);
});

test("no way of printing or copying a secret shows its value", () => {
  const secret = new Secret(value);
  const error = new Error(`failed with ${secret}`, { cause: { secret } });
  const everything = { depth: Number.POSITIVE_INFINITY, showHidden: true, getters: true, showProxy: true };
  const views: Record<string, string> = {
    template: `${secret}`,
    // biome-ignore lint/style/useTemplate: concatenation takes another path than a template.
    concatenation: "" + secret,
    string: String(secret),
    json: JSON.stringify({ secret }),
    inspect: inspect({ secret }, everything),
    "inspect without custom functions": inspect({ secret }, { ...everything, customInspect: false }),
    "inspect of the prototype": inspect(Secret.prototype, everything),
    format: format("%s %o %O %j", secret, secret, secret, secret),
    error: inspect(error, everything),
    keys: Reflect.ownKeys(secret).map(String).join(),
    values: Object.values(secret).join(),
    entries: JSON.stringify(Object.entries(secret)),
    spread: JSON.stringify({ ...secret }),
    assign: inspect(Object.assign({}, secret), everything),
    clone: inspect(structuredClone(secret), everything),
    locale: secret.toLocaleString(),
    join: [secret, secret].join(),
  };
  for (const [name, view] of Object.entries(views)) assert.ok(!view.includes("CANARY"), `${name}: ${view}`);
  assert.equal(views["template"], "[redacted]");
  assert.equal(views["json"], '{"secret":"[redacted]"}');
  assert.equal(views["inspect"], "{ secret: [redacted] }");
});

test("a secret is frozen", () => {
  assert.ok(Object.isFrozen(new Secret(value)));
});
