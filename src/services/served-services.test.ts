import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { reflectionRoutes } from "./served-services.ts";

async function* oneQuestionAndSilence() {
  yield { messageRequest: { case: "listServices" as const, value: "*" } };
  await new Promise<never>(() => undefined);
}

test("reflection streams are limited in number and duration, for both versions together", async () => {
  const clock = new FakeClock();
  const transport = createRouterTransport(reflectionRoutes([], { clock }));
  const open = (service: typeof ServerReflection | typeof ServerReflectionAlpha) =>
    createClient(service, transport).serverReflectionInfo(oneQuestionAndSilence())[Symbol.asyncIterator]();
  const streams = Array.from({ length: 50 }, (_, index) =>
    open(index % 2 === 0 ? ServerReflection : ServerReflectionAlpha),
  );
  for (const stream of streams) {
    const { value } = await stream.next();
    assert.equal(value?.messageResponse.case, "listServicesResponse");
  }
  const codeOf = (stream: AsyncIterator<unknown>) =>
    stream.next().then(
      () => "answered",
      (error: unknown) => ConnectError.from(error).code,
    );
  assert.equal(await codeOf(open(ServerReflection)), Code.ResourceExhausted);
  const endings = streams.map(codeOf);
  await clock.advance(50_000);
  assert.deepEqual(new Set(await Promise.all(endings)), new Set([Code.DeadlineExceeded]));
  assert.equal(await codeOf(open(ServerReflection)), "answered");
});
