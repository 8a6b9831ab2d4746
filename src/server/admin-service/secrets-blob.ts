// The secrets of an environment in the form in which a deployment has them: the JSON of
// ctrl.v1.SecretsConfig, with its names in order, so that the same secrets are the same
// bytes.

export function secretsBlob(secrets: ReadonlyMap<string, string>): Uint8Array {
  if (secrets.size === 0) return new Uint8Array();
  const inOrder = [...secrets].sort(([a], [b]) => (a < b ? -1 : 1));
  return new TextEncoder().encode(JSON.stringify({ secrets: Object.fromEntries(inOrder) }));
}
