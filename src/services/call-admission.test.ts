import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  Code,
  ConnectError,
  createClient,
  createContextKey,
  createContextValues,
  createRouterTransport,
} from "@connectrpc/connect";
import { AgentService } from "../gen/krane/v1/agent_pb.ts";
import { type Admit, admitCall, createAdmission } from "./call-admission.ts";

const { signal } = new AbortController();
const found = createContextKey("nothing");
const refuse: Admit = () => {
  throw new ConnectError("no", Code.PermissionDenied);
};

function incomingCall() {
  const method = AgentService.method.getStatus;
  return { method, header: new Headers(), peer: "10.0.0.1", values: createContextValues(), signal };
}

describe("an admission", () => {
  test("within a process it runs as an interceptor and passes its results on", async () => {
    const admission = createAdmission(({ values, peer }) => void values.set(found, `peer "${peer}"`));
    let seen = "";
    const getStatus = (_: unknown, { values }: { values: ReturnType<typeof createContextValues> }) => {
      seen = values.get(found);
      return {};
    };
    const transport = createRouterTransport(
      ({ service }) => void service(AgentService, { getStatus }, { interceptors: [admission] }),
    );
    await createClient(AgentService, transport).getStatus({});
    assert.equal(seen, 'peer ""');
  });

  test("within a process it rejects calls as at a port", async () => {
    const transport = createRouterTransport(
      ({ service }) =>
        void service(
          AgentService,
          { getStatus: () => assert.fail("it was let in") },
          { interceptors: [createAdmission(refuse)] },
        ),
    );
    await assert.rejects(createClient(AgentService, transport).getStatus({}), {
      code: Code.PermissionDenied,
    });
  });

  test("at a port admissions run in order, and stop at the first that rejects", async () => {
    const asked: string[] = [];
    const named = (name: string, admit: Admit = () => undefined) =>
      createAdmission((call) => {
        asked.push(name);
        return admit(call);
      });
    const interceptors = [named("first"), named("second", refuse), named("third")];
    await assert.rejects(admitCall(interceptors, incomingCall()), { code: Code.PermissionDenied });
    assert.deepEqual(asked, ["first", "second"]);
  });

  test("an admission that ran at the port does not run again as an interceptor, and others do", async () => {
    let atPort = 0;
    let later = 0;
    const asked = createAdmission(() => void atPort++);
    const forgotten = createAdmission(() => void later++);
    const { method, header, values } = incomingCall();
    await admitCall([asked], { method, header, values, peer: "", signal });
    const request = { method, header, contextValues: values, signal } as never;
    const answer = async () => ({}) as never;
    await asked(answer)(request);
    await forgotten(answer)(request);
    assert.deepEqual([atPort, later], [1, 1]);
  });
});
