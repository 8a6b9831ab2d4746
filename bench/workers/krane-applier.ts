// Applies through krane's client, with everything that it does: name checks, a deadline and a signal per request, a
// limit on the response, classified errors.
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { fixedCredential } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { replicaSets } from "../../src/kube/resources.ts";
import { fieldManager } from "../../src/model/labels.ts";
import type { Apply, ApplyTask } from "./apply-task.ts";

export function connectKrane({ url, ca, token, connections }: ApplyTask): Apply {
  const credentials = fixedCredential({ authorization: `Bearer ${token}` });
  const endpoint = { server: url, ca, credentials };
  const api = createKubeApi(createHttpTransport({ endpoint, connections }, { clock: createSystemClock() }));
  const { signal } = new AbortController();
  return async (manifest) => {
    await api.apply(replicaSets, manifest, { fieldManager, fieldValidation: "Ignore", force: true }, signal);
  };
}
