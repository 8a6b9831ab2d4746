// Seals for tests: that of the krane under test, and those of others.
import { createSealKey, Seal, type SealOptions } from "../../src/model/seal.ts";

const testClusterId = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
export const testSealKey = createSealKey(new Uint8Array(32).fill(1));
export const otherSealKey = createSealKey(new Uint8Array(32).fill(2));

export function createTestSeal(options: Partial<SealOptions> = {}): Seal {
  return new Seal({ clusterId: testClusterId, region: "local.dev", keys: [testSealKey], ...options });
}

export const testSeal = createTestSeal();

/** Sealed with the current key. */
export const oursSealed = { kind: "ours", isOutdated: false, isAdopted: false } as const;
