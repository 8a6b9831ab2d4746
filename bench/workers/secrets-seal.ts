// The seal that the stub API server's objects carry, and that SecretsService verifies.
import { createSealKey, Seal, sealKeyBytes } from "../../src/model/seal.ts";

export function createBenchSeal(): Seal {
  const key = createSealKey(new Uint8Array(sealKeyBytes));
  return new Seal({ clusterId: "bench", region: "bench", keys: [key] });
}
