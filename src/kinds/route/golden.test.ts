// Compares the manifests of routes with the golden files in testdata/route.
import assert from "node:assert/strict";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { testGoldenManifests } from "../../../test/support/golden-manifests.ts";
import { ApplyRouteSchema } from "../../gen/ctrl/v1/route_pb.ts";
import { describeProblems } from "../../model/field-problem.ts";
import { routeDocument } from "./document.ts";
import { parseApplyRoute } from "./spec.ts";

interface GoldenInput {
  readonly about: string;
  readonly apply: JsonValue;
}

function manifestsOf({ apply }: GoldenInput): readonly unknown[] {
  const parsed = parseApplyRoute(fromJson(ApplyRouteSchema, apply), {});
  assert.ok(parsed.kind === "valid", parsed.kind === "invalid" ? describeProblems(parsed.problems) : "");
  const gateway = { namespace: "gateway", name: "public", proxies: { namespace: "gateway" } };
  const settings = {
    ...{ region: "local.dev", secrets: { audience: "krane" }, gateway },
    runtimeClass: "gvisor",
  } as const;
  return routeDocument.manifestsOf([parsed.spec], settings).flat();
}

testGoldenManifests("route", 7, manifestsOf);
