// The contract suite on a real kube-apiserver: what the suite says is true.
import { after } from "node:test";
import { defineContract } from "../../packages/kube-apiserver/test/contract/define-contract.ts";
import { realServerTarget } from "../support/cluster/contract-target.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";

const target = realServerTarget(clusterUnderTest());
after(() => target.close());
defineContract(target);
