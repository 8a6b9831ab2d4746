// The raw limit: the same request through node:https with keep-alive and nothing else. Object in,
// object out, as any client has to; no deadline, no limits, no retry, no checks.
import { Agent, request } from "node:https";
import { fieldManager } from "../../src/model/labels.ts";
import type { Apply, ApplyTask } from "./apply-task.ts";

export interface RawPatch {
  /** Including its query. */
  readonly path: string;
  readonly body: string;
  readonly contentType: string;
}

export interface RawConnection {
  /** Resolves when the server has accepted it. */
  patch(patch: RawPatch): Promise<void>;
  close(): void;
}

/** As krane sends it. */
export const applyQuery = `fieldManager=${fieldManager}&fieldValidation=Ignore&force=true`;
export const applyType = "application/apply-patch+yaml";

export function connectRaw(task: ApplyTask): Apply {
  const { patch } = openRawConnection(task);
  return (manifest) => {
    const { namespace, name } = manifest.metadata ?? {};
    const path = `/apis/apps/v1/namespaces/${namespace}/replicasets/${name}?${applyQuery}`;
    return patch({ path, body: JSON.stringify(manifest), contentType: applyType });
  };
}

export function openRawConnection({
  url,
  ca,
  token,
  connections,
}: Pick<ApplyTask, "url" | "ca" | "token" | "connections">): RawConnection {
  const agent = new Agent({ keepAlive: true, maxSockets: connections, ca });
  const { hostname, port } = new URL(url);
  const patch = ({ path, body, contentType }: RawPatch) =>
    new Promise<void>((resolve, reject) => {
      const headers = {
        accept: "application/json",
        "user-agent": "krane",
        "content-type": contentType,
        "content-length": Buffer.byteLength(body),
        authorization: `Bearer ${token}`,
      };
      const outgoing = request({ hostname, port, agent, method: "PATCH", path, headers }, (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
        incoming.on("error", reject);
        incoming.on("end", () => {
          const answer = JSON.parse(Buffer.concat(chunks).toString("utf8"));
          if ((incoming.statusCode ?? 0) < 300) resolve();
          else reject(new Error(`${incoming.statusCode}: ${answer.message}`));
        });
      });
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  return { patch, close: () => agent.destroy() };
}
