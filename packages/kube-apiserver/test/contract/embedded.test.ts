// The contract suite on the embedded API server, both ways in.
import { after } from "node:test";
import { defineContract } from "./define-contract.ts";
import { startHttpTarget, startInProcessTarget } from "./targets/embedded-server.ts";

for (const start of [startInProcessTarget, startHttpTarget]) {
  const target = await start();
  after(() => target.close());
  defineContract(target);
}
