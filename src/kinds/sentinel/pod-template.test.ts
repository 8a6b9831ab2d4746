import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parse } from "smol-toml";
import { sentinelSpec } from "../../../test/support/sentinel-messages.ts";
import { sentinelConfiguration } from "./pod-template.ts";

const spec = sentinelSpec();

test("the document says what the sentinel has to know, with its placeholders intact", () => {
  const read = parse(sentinelConfiguration(spec, "us-east-1.aws"));
  assert.deepEqual(JSON.parse(JSON.stringify(read)), {
    sentinel_id: "se_1a2B3c4D",
    workspace_id: "ws_1a2B3c4D",
    environment_id: "env_1a2B3c4D",
    region: "us-east-1.aws",
    http_port: 8040,
    observability: { logging: { sample_rate: 1, slow_threshold: "1s" } },
    database: {
      primary: placeholder("UNKEY_DATABASE_PRIMARY"),
      readonly_replica: placeholder("UNKEY_DATABASE_REPLICA"),
    },
    clickhouse: { url: placeholder("UNKEY_CLICKHOUSE_URL") },
    redis: { url: placeholder("UNKEY_REDIS_URL") },
  });
});

// The sentinel reads it as a floating-point number, and not every TOML parser accepts an integer there.
test("the sample rate is written as a floating-point number", () => {
  assert.match(sentinelConfiguration(spec, "local.dev"), /^sample_rate = 1\.0$/m);
});

test("a value can neither end its string nor be a placeholder", () => {
  const dollars = (text: string) => [...text.matchAll(/\$/g)].length;
  const normal = dollars(sentinelConfiguration(spec, "local.dev"));
  const value = fc.oneof(
    fc.string({ unit: "binary" }).filter((text) => !/\p{Surrogate}/u.test(text)),
    fc.constantFrom(
      '"\nhttp_port = 1\n',
      "\\",
      '\\"',
      placeholder("HOME"),
      "$(HOME)",
      "$$",
      "\0\u007f\u0085",
    ),
  );
  fc.assert(
    fc.property(value, value, (region, sentinelId) => {
      const text = sentinelConfiguration({ ...spec, sentinelId }, region);
      const read = parse(text);
      assert.deepEqual([read["region"], read["sentinel_id"]], [region, sentinelId]);
      assert.equal(Object.keys(read).length, 9);
      assert.equal(dollars(text), normal);
    }),
  );
});

function placeholder(name: string): string {
  return `$\{${name}}`;
}
