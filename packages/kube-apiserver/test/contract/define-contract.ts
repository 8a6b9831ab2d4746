// Registers every case of the contract as a test of one target.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { acceptedDifferences } from "./accepted-differences.ts";
import { type ContractCase, runCase } from "./contract-case.ts";
import { contractCases } from "./contract-cases.ts";
import type { ContractTarget } from "./target.ts";

// Most of a case's time is waiting for a server or its controllers.
const casesAtOnce = 8;
const caseTimeoutMs = 90_000;

export function defineContract(target: ContractTarget, cases: readonly ContractCase[] = contractCases): void {
  const together = cases.filter((one) => one.alone !== true);
  const alone = cases.filter((one) => one.alone === true);
  describe(`${target.name} keeps the contract`, { concurrency: casesAtOnce }, () => {
    for (const one of together) defineCase(target, one);
  });
  describe(`${target.name} keeps the contract, one case at a time`, { concurrency: 1 }, () => {
    for (const one of alone) defineCase(target, one);
  });
}

function defineCase(target: ContractTarget, one: ContractCase): void {
  test(one.name, { timeout: caseTimeoutMs }, async () => {
    const reason = acceptedDifferences[target.name]?.[one.name];
    if (reason === undefined) return runCase(target, one);
    await assert.rejects(
      runCase(target, one),
      `the accepted difference is gone (${reason}): take it off the list`,
    );
  });
}
