// A vault's storage in memory, for `krane dev` and tests.
import { VaultError } from "../vault-error.ts";
import { objectBytesMax, type VaultStorage } from "./storage.ts";

export function createMemoryStorage(): VaultStorage {
  const objects = new Map<string, { readonly bytes: Uint8Array; readonly version: string }>();
  let writes = 0;
  const put = (objectKey: string, bytes: Uint8Array) => {
    writes += 1;
    objects.set(objectKey, { bytes: Uint8Array.from(bytes), version: String(writes) });
  };
  return {
    async read(objectKey, signal) {
      signal.throwIfAborted();
      const found = objects.get(objectKey);
      if (found !== undefined && found.bytes.length > objectBytesMax)
        throw new VaultError("unavailable", `memory: ${objectKey} is too large for a data key`);
      return found && { ...found, bytes: Uint8Array.from(found.bytes) };
    },
    async create(objectKey, bytes, signal) {
      signal.throwIfAborted();
      if (objects.has(objectKey)) return "exists";
      put(objectKey, bytes);
      return "created";
    },
    async replace(objectKey, bytes, version, signal) {
      signal.throwIfAborted();
      if (objects.get(objectKey)?.version !== version) return "changed";
      put(objectKey, bytes);
      return "replaced";
    },
    async *list(prefix, signal) {
      for (const objectKey of [...objects.keys()]) {
        signal.throwIfAborted();
        if (objectKey.startsWith(prefix)) yield objectKey;
      }
    },
    close: async () => undefined,
  };
}
