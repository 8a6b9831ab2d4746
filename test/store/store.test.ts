import { defineStoreContract } from "./store-contract.ts";
import { embeddedTarget, memoryTarget, systemTarget } from "./store-target.ts";

for (const target of [memoryTarget, embeddedTarget, systemTarget]) defineStoreContract(target);
