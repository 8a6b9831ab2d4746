// Converts times to and from RFC 3339 in UTC: whole seconds in metadata, microseconds in leases and events. Nothing here
// reads the clock.

export function formatTimestamp(wallMs: number): string {
  return `${isoText(wallMs).slice(0, 19)}Z`;
}

/** For fields of type MicroTime (leases, events). */
export function formatMicroTimestamp(wallMs: number): string {
  return `${isoText(wallMs).slice(0, 23)}000Z`;
}

/** Milliseconds since 1970, or undefined if the text is not an RFC 3339 time. */
export function parseTimestamp(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/.test(text)) return undefined;
  // biome-ignore lint/style/noRestrictedGlobals: parsing text is pure; it does not read the clock.
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

function isoText(wallMs: number): string {
  // biome-ignore lint/style/noRestrictedGlobals: formatting a given time is pure; it does not read the clock.
  return new Date(wallMs).toISOString();
}
