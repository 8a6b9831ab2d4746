// A ready-made context for the command line: whoever starts a control plane can talk to
// it at once. It holds a token, so the file is for its owner alone.
import type { Secret } from "../config/secret.ts";

export interface CliContext {
  readonly name: string;
  readonly server: string;
  readonly region: string;
  readonly token: Secret;
  /** Certificates to trust instead of the system's. */
  readonly caFile?: string | undefined;
}

/** The text of a contexts file with this one in it. */
export function renderCliContext({ name, server, region, token, caFile }: CliContext): string {
  const fields = { server, region, token: token.reveal(), ...(caFile !== undefined && { ca_file: caFile }) };
  const lines = Object.entries(fields).map(([key, value]) => `${key} = ${tomlText(value)}`);
  return `# Written at each start. Use it with: export KRANE_CONFIG=<this file>
current = ${tomlText(name)}

[contexts.${name}]
${lines.join("\n")}
`;
}

/** TOML takes the escapes of JSON, and wants one more character escaped. */
function tomlText(text: string): string {
  return JSON.stringify(text).replaceAll("\u007f", "\\u007f");
}
