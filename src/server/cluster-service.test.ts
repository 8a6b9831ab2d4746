import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { RegionKeySchema } from "../gen/ctrl/v1/region_pb.ts";
import { resolveRegion } from "./cluster-service.ts";

const key = (name: string, platform: string) => create(RegionKeySchema, { name, platform });
const isInvalid = (error: unknown) => error instanceof ConnectError && error.code === Code.InvalidArgument;

test("any source names the region, and all that are there may", () => {
  const cases = [
    { field: "a.b", header: null, key: undefined },
    { field: "", header: "a.b", key: undefined },
    { header: null, key: key("a", "b") },
    { field: "a.b", header: "a.b", key: key("a", "b") },
    { field: "", header: "a.b", key: key("", "") },
    { header: "a.b", key: key("a.b", "c") },
  ];
  for (const sources of cases) assert.equal(resolveRegion(sources), "a.b");
  assert.equal(resolveRegion({ header: null, key: key("a", "") }), "a");
});

test("none, or two that differ, are refused", () => {
  const cases = [
    { header: null, key: undefined },
    { field: "", header: "", key: key("", "b") },
    { field: "a.b", header: "a.c", key: undefined },
    { header: "a.b", key: key("a", "c") },
    { header: "a.b, c.d", key: key("a", "b") },
    { header: "a", key: key("a.b", "") },
  ];
  for (const sources of cases) assert.throws(() => resolveRegion(sources), isInvalid);
});
