// Requests the desired state of a number of deployments over bare HTTP/2: the raw limit of a resync. The requests are
// those of the agent; the responses are read to their end and dropped. Everything is requested a few times and the
// last time counts, because the agent is warmed up too.
import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { ClusterService } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { finish, takeTask } from "./parent.ts";
import { cpuSeconds } from "./resources.ts";

export interface QuestionTask {
  readonly url: string;
  readonly token: string;
  readonly region: { readonly platform: string; readonly name: string; readonly label: string };
  readonly ids: readonly string[];
  readonly inFlight: number;
}

export interface QuestionResult {
  readonly cpuSeconds: number;
}

const passes = 3;
const task = takeTask<QuestionTask>();
const method = ClusterService.method.getDesiredDeploymentState;
const { platform, name, label } = task.region;
const headers = {
  ":method": "POST",
  ":path": `/${method.parent.typeName}/${method.name}`,
  "content-type": "application/proto",
  "connect-protocol-version": "1",
  "connect-timeout-ms": "10000",
  "accept-encoding": "gzip",
  "user-agent": "connect-es",
  authorization: `Bearer ${task.token}`,
  "x-krane-region": label,
};
const bodies = task.ids.map((deploymentId) =>
  toBinary(method.input, create(method.input, { deploymentId, regionKey: { platform, name } })),
);

function ask(session: ClientHttp2Session, body: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = session.request(headers);
    let status = 0;
    stream.on("response", (answer) => {
      status = Number(answer[":status"]);
    });
    stream.on("data", () => undefined);
    stream.on("end", () => (status === 200 ? resolve() : reject(new Error(`the server returned ${status}`))));
    stream.on("error", reject);
    stream.end(body);
  });
}

const session = connect(task.url);
await once(session, "connect");
async function askAll(): Promise<number> {
  const before = cpuSeconds();
  const waiting = bodies.values();
  const caller = async () => {
    for (const body of waiting) await ask(session, body);
  };
  await Promise.all(Array.from({ length: task.inFlight }, caller));
  return cpuSeconds() - before;
}

for (let pass = 1; pass < passes; pass++) await askAll();
const result: QuestionResult = { cpuSeconds: await askAll() };
session.close();
finish(result);
