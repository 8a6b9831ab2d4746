// The configuration of a sentinel: a TOML document in one variable of its container. Addresses and
// passwords are not in it; the sentinel puts them in itself where a ${...} stands, from the Secrets that
// its pod is given (K7).
//
// The text is written here line by line and not by a library: it is part of the pod template, and a
// library that learned to write the same document in another way would restart every sentinel.
import { sentinelPort } from "./identity.ts";
import type { SentinelSpec } from "./spec.ts";

export const configurationVariable = "UNKEY_CONFIG_DATA";

export function sentinelConfiguration(spec: SentinelSpec, region: string): string {
  return `sentinel_id = ${tomlString(spec.sentinelId)}
workspace_id = ${tomlString(spec.workspaceId)}
environment_id = ${tomlString(spec.environmentId)}
region = ${tomlString(region)}
http_port = ${sentinelPort}

[observability.logging]
sample_rate = 1.0
slow_threshold = "1s"

[database]
primary = "\${UNKEY_DATABASE_PRIMARY}"
readonly_replica = "\${UNKEY_DATABASE_REPLICA}"

[clickhouse]
url = "\${UNKEY_CLICKHOUSE_URL}"

[redis]
url = "\${UNKEY_REDIS_URL}"
`;
}

/**
 * A value that is only a value: besides what would end the string, the dollar is escaped, because
 * Kubernetes expands $(...) and the sentinel ${...} in the text before anybody reads it as TOML.
 */
function tomlString(text: string): string {
  return `"${text.replaceAll(/["\\$\p{Cc}]/gu, escaped)}"`;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
