import assert from "node:assert/strict";
import { test } from "node:test";
import { ownUrl } from "./own-url.ts";

test("the URL has the address that the server listens on, or localhost if that is included", () => {
  const url = (host?: string) => ownUrl({ scheme: "http", host, port: 7091 });
  for (const host of [undefined, "0.0.0.0", "::", "127.0.0.1", "::1", "localhost"]) {
    assert.equal(url(host), "http://localhost:7091", host);
  }
  assert.equal(url("10.0.0.5"), "http://10.0.0.5:7091");
  assert.equal(url("127.0.0.2"), "http://127.0.0.2:7091");
  assert.equal(url("fd00::5"), "http://[fd00::5]:7091");
  assert.equal(url("krane.internal"), "http://krane.internal:7091");
});
