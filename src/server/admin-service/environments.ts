// The calls for environments and their secrets. Values arrive encrypted and are never
// returned; see object-changes.ts for how deployments get them.
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type ApplyEnvironmentRequest,
  type DeleteEnvironmentRequest,
  type Environment,
  EnvironmentSchema,
  type ListEnvironmentsRequest,
  type SetSecretRequest,
  type UnsetSecretRequest,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { blobBytesMax, findVariableNameFlaw } from "../../kinds/deployment/secrets-blob.ts";
import type { Refuse } from "../../model/field-problem.ts";
import { parseId } from "../../model/message-fields.ts";
import { parsePage, tokenOf } from "../../services/page-token.ts";
import { checkVersion } from "../row-rules.ts";
import type { Author, Store, StoredEnvironment } from "../store.ts";
import { badRequest, checked } from "./bad-request.ts";
import { parseRegion } from "./object-refs.ts";
import { secretsBlob } from "./secrets-blob.ts";

export async function applyEnvironment(store: Store, request: ApplyEnvironmentRequest, author: Author) {
  const { region, id, workspaceId, projectId } = checked((refuse) => ({
    region: parseRegion(request.region, refuse),
    id: parseId("id", request.id, refuse),
    workspaceId: parseId("workspace_id", request.workspaceId, refuse),
    projectId: parseId("project_id", request.projectId, refuse),
  }));
  const { expectedVersion } = request;
  const after = await store.changeEnvironment(
    region,
    id,
    (before) => {
      checkVersion(before, expectedVersion === undefined ? {} : { expectedVersion });
      return { workspaceId, projectId, secrets: before?.secrets ?? new Map() };
    },
    author,
  );
  return answer(after);
}

export async function deleteEnvironment(store: Store, request: DeleteEnvironmentRequest, author: Author) {
  const { region, id } = checked((refuse) => ({
    region: parseRegion(request.region, refuse),
    id: parseId("id", request.id, refuse),
  }));
  if (!(await store.removeEnvironment(region, id, author))) throw noEnvironment(id, region);
  return {};
}

/** Small batches, because an environment may have 96 KiB of secrets, of which only the names are kept. */
const batchMax = 50;
/** Limits the size of a page; a page has at least one environment. */
const pageBytesMax = 4 * 1024 * 1024;
/** For a response without pages: half of what the command line accepts. */
const answerBytesMax = 16 * 1024 * 1024;

export async function listEnvironments(store: Store, request: ListEnvironmentsRequest, signal: AbortSignal) {
  const region = checked((refuse) => parseRegion(request.region, refuse));
  const { after, size } = parsePage(request);
  const isPaged = request.pageSize > 0;
  const environments: Environment[] = [];
  let bytes = 0;
  for await (const view of viewsBehind(store, region, after?.key ?? "", signal)) {
    const viewBytes = toBinary(EnvironmentSchema, view).length;
    const last = environments.at(-1);
    const isFull = environments.length === size || bytes + viewBytes > pageBytesMax;
    if (isPaged && isFull && last !== undefined) {
      return { environments, nextPageToken: tokenOf({ controller: "", key: last.id }) };
    }
    bytes += viewBytes;
    environments.push(view);
    // A client that does not ask for pages would not ask for the next one either.
    if (!isPaged && bytes > answerBytesMax) {
      const message = `region ${region} has more environments and secret names than fit into one response; set page_size`;
      throw new ConnectError(message, Code.ResourceExhausted);
    }
  }
  return { environments, nextPageToken: "" };
}

async function* viewsBehind(
  store: Store,
  region: string,
  afterId: string,
  signal: AbortSignal,
): AsyncGenerator<Environment> {
  for (let cursor: string | undefined = afterId; cursor !== undefined; ) {
    signal.throwIfAborted();
    const batch: readonly StoredEnvironment[] = await store.environments(region, cursor, batchMax);
    yield* batch.map(environmentView);
    cursor = batch.length < batchMax ? undefined : batch.at(-1)?.id;
  }
}

export async function setSecret(store: Store, request: SetSecretRequest, author: Author) {
  const { region, environmentId, name } = checked((refuse) => {
    if (request.encrypted === "") refuse("encrypted", "is required");
    return parseSecretRef(request, refuse);
  });
  const after = await store.changeEnvironment(
    region,
    environmentId,
    (before) => {
      // If the first secret created it, a mistyped environment would have no owner, and no deployment would use it.
      if (before === undefined) throw noEnvironment(environmentId, region);
      const secrets = new Map(before.secrets).set(name, request.encrypted);
      if (secretsBlob(secrets).length > blobBytesMax) {
        const message = `would make the environment's secrets longer than ${blobBytesMax} bytes, the most a pod can take`;
        throw badRequest([{ path: "encrypted", message }]);
      }
      return { ...before, secrets };
    },
    author,
  );
  return answer(after);
}

export async function unsetSecret(store: Store, request: UnsetSecretRequest, author: Author) {
  const { region, environmentId, name } = checked((refuse) => parseSecretRef(request, refuse));
  const after = await store.changeEnvironment(
    region,
    environmentId,
    (before) => {
      const secrets = new Map(before?.secrets);
      if (before === undefined || !secrets.delete(name)) {
        throw new ConnectError(`environment ${environmentId} has no secret ${name}`, Code.NotFound);
      }
      return { ...before, secrets };
    },
    author,
  );
  return answer(after);
}

function parseSecretRef(
  request: { readonly region: string; readonly environmentId: string; readonly name: string },
  refuse: Refuse,
) {
  const { name } = request;
  const flaw = findVariableNameFlaw(name);
  if (flaw !== undefined) refuse("name", name === "" ? "is required" : flaw);
  return {
    region: parseRegion(request.region, refuse),
    environmentId: parseId("environment_id", request.environmentId, refuse),
    name,
  };
}

function answer(environment: StoredEnvironment | undefined) {
  return environment === undefined ? {} : { environment: environmentView(environment) };
}

function environmentView({ id, workspaceId, projectId, secrets, version }: StoredEnvironment): Environment {
  const secretNames = [...secrets.keys()].sort();
  return create(EnvironmentSchema, { id, workspaceId, projectId, secretNames, version });
}

function noEnvironment(id: string, region: string): ConnectError {
  return new ConnectError(
    `no environment ${id} in region ${region}; apply a document of kind Environment to create it`,
    Code.NotFound,
  );
}
