// Encodes an environment's secrets as a deployment has them: the JSON of
// ctrl.v1.SecretsConfig with sorted names, so that the same secrets give the same bytes.

export function secretsBlob(secrets: ReadonlyMap<string, string>): Uint8Array<ArrayBuffer> {
  if (secrets.size === 0) return new Uint8Array();
  const inOrder = [...secrets].sort(([a], [b]) => (a < b ? -1 : 1));
  return new TextEncoder().encode(JSON.stringify({ secrets: Object.fromEntries(inOrder) }));
}
