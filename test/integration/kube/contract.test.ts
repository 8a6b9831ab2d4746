// The contract suite through krane's own client: it reads the embedded server over HTTP as it reads the real one in
// test/cluster/contract.test.ts.
import { after } from "node:test";
import { defineContract } from "../../../packages/kube-apiserver/test/contract/define-contract.ts";
import {
  adminToken,
  startHttpTarget,
} from "../../../packages/kube-apiserver/test/contract/targets/embedded-server.ts";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { createKubeApi } from "../../../src/kube/client.ts";
import { fixedCredential } from "../../../src/kube/credentials.ts";
import { createHttpTransport } from "../../../src/kube/http-transport.ts";

const target = await startHttpTarget();
const credentials = fixedCredential({ authorization: `Bearer ${adminToken}` });
const transport = createHttpTransport(
  { endpoint: { server: target.url, credentials }, connections: 16 },
  { clock: createSystemClock() },
);
after(async () => {
  await transport.close();
  await target.close();
});
defineContract({
  ...target,
  name: "embedded server, through krane's client",
  api: createKubeApi(transport, { mayQuoteSecrets: true }),
  transport,
  userAgent: "krane",
});
