// Calls as a person makes them with curl: a path, JSON, and a token.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { DescService } from "@bufbuild/protobuf";

export interface CurlAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

export async function callWithCurl(
  url: string,
  path: string,
  { token, body = {} }: { readonly token?: string; readonly body?: object },
): Promise<CurlAnswer> {
  const authorization = token === undefined ? [] : ["-H", `authorization: Bearer ${token}`];
  const { stdout } = await promisify(execFile)("curl", [
    ...["-sS", "-w", "\n%{http_code}", "-H", "content-type: application/json", ...authorization],
    ...["-d", JSON.stringify(body), `${url}/${path}`],
  ]);
  const lines = stdout.split("\n");
  const status = Number(lines.pop());
  return { status, body: JSON.parse(lines.join("\n")) };
}

/** `package.Service/Method` of everything that is asked and answered once. */
export function unaryPaths(...services: readonly DescService[]): readonly string[] {
  return services.flatMap(({ typeName, methods }) =>
    methods.filter(({ methodKind }) => methodKind === "unary").map(({ name }) => `${typeName}/${name}`),
  );
}
