// What a case works with: the API under test with its namespace and defaults filled in, the verbs
// that ContractApi leaves to others, and a place for whatever must be undone afterwards.
import { randomBytes } from "node:crypto";
import type { ApiRequest } from "../../src/request.ts";
import type { ObjectRef } from "../../src/types.ts";
import type {
  Answer,
  ApplyOptions,
  ApplyResult,
  ContractApi,
  CreateOptions,
  DeleteOptions,
  DeleteOutcome,
  GetOptions,
  ListOptions,
  ListPage,
  WatchOptions,
} from "./api.ts";
import { collectionPath, json, objectPath, refusalOf } from "./client.ts";
import { eventually } from "./eventually.ts";
import { namespaces, serviceAccounts } from "./fixtures.ts";
import type { Kind, Manifest } from "./manifest.ts";
import type { ContractTarget } from "./target.ts";
import { Watcher } from "./watcher.ts";

const patchTypes = {
  merge: "application/merge-patch+json",
  json: "application/json-patch+json",
  strategic: "application/strategic-merge-patch+json",
} as const;

type Query = Readonly<Record<string, string>>;

export class Trial {
  readonly target: ContractTarget;
  readonly api: ContractApi;
  /** Never aborted: a case that runs out of time must still be able to clean up. */
  readonly signal = new AbortController().signal;
  /** Made for this case; gone after it. */
  readonly namespace: string;
  private readonly cleanUps: (() => Promise<unknown>)[] = [];

  constructor(target: ContractTarget) {
    this.target = target;
    this.api = target.api;
    this.namespace = this.unique("contract");
  }

  async open(): Promise<void> {
    await this.create(namespaces, { metadata: { name: this.namespace } });
    // Until its service account exists, a namespace takes no pods.
    await eventually("the namespace has its service account", () => this.read(serviceAccounts, "default"));
  }

  unique(prefix: string): string {
    return `${prefix}-${randomBytes(4).toString("hex")}`;
  }

  /** For when the case is over; whether it succeeds is of no interest. */
  after(cleanUp: () => Promise<unknown>): void {
    this.cleanUps.push(cleanUp);
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.cleanUps.map((cleanUp) => cleanUp()));
    await this.target.removeNamespace(this.namespace);
  }

  find(kind: Kind, name: string, options: GetOptions = {}): Promise<Manifest | undefined> {
    return this.api.get(kind, this.ref(kind, name), options, this.signal);
  }

  async read(kind: Kind, name: string, options: GetOptions = {}): Promise<Manifest> {
    const found = await this.find(kind, name, options);
    if (found === undefined) throw new Error(`there is no ${kind.kind} ${name}`);
    return found;
  }

  list(kind: Kind, options: ListOptions = {}): Promise<ListPage> {
    const place = kind.namespaced ? { namespace: this.namespace } : {};
    return this.api.list(kind, { ...place, ...options }, this.signal);
  }

  async names(kind: Kind, options: ListOptions = {}): Promise<readonly string[]> {
    return (await this.list(kind, options)).items.map((item) => item.metadata?.name ?? "").sort();
  }

  watch(kind: Kind, options: WatchOptions = {}): Watcher {
    const place = kind.namespaced ? { namespace: this.namespace } : {};
    const watcher = new Watcher(this.api, kind, { ...place, ...options }, this.signal);
    this.after(async () => watcher.close());
    return watcher;
  }

  applyResult(kind: Kind, manifest: Manifest, options: Partial<ApplyOptions> = {}): Promise<ApplyResult> {
    const defaults = { fieldManager: "alpha", force: false };
    return this.api.apply(kind, this.placed(kind, manifest), { ...defaults, ...options }, this.signal);
  }

  async apply(kind: Kind, manifest: Manifest, options: Partial<ApplyOptions> = {}): Promise<Manifest> {
    return (await this.applyResult(kind, manifest, options)).object;
  }

  create(kind: Kind, manifest: Manifest, options: CreateOptions = {}): Promise<Manifest> {
    return this.api.create(kind, this.placed(kind, manifest), options, this.signal);
  }

  delete(kind: Kind, name: string, options: DeleteOptions = {}): Promise<DeleteOutcome> {
    return this.api.delete(kind, this.ref(kind, name), options, this.signal);
  }

  async update(kind: Kind, manifest: Manifest, subresource?: string, query: Query = {}): Promise<Manifest> {
    const name = manifest.metadata?.name ?? "";
    const path = objectPath(kind, this.ref(kind, name), subresource);
    return this.answer({ method: "PUT", path, query, contentType: json, body: this.placed(kind, manifest) });
  }

  async patch(
    kind: Kind,
    name: string,
    type: keyof typeof patchTypes,
    body: unknown,
    options: { readonly subresource?: string; readonly query?: Query } = {},
  ): Promise<Manifest> {
    const path = objectPath(kind, this.ref(kind, name), options.subresource);
    return this.answer({
      method: "PATCH",
      path,
      query: options.query ?? {},
      contentType: patchTypes[type],
      body,
    });
  }

  send(request: ApiRequest): Promise<Answer> {
    return this.target.transport.send({ accept: json, ...request }, this.signal);
  }

  /** The body of a success; any other answer is thrown as the client would throw it. */
  async answer(request: ApiRequest): Promise<Manifest> {
    const answer = await this.send(request);
    if (answer.status >= 300) throw refusalOf(answer);
    return answer.body as Manifest;
  }

  path(kind: Kind, name?: string, subresource?: string): string {
    if (name !== undefined) return objectPath(kind, this.ref(kind, name), subresource);
    return collectionPath(kind, kind.namespaced ? this.namespace : undefined);
  }

  ref(kind: Kind, name: string): ObjectRef {
    return kind.namespaced ? { namespace: this.namespace, name } : { name };
  }

  private placed(kind: Kind, manifest: Manifest): Manifest {
    const apiVersion = kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
    const place = kind.namespaced ? { namespace: this.namespace } : {};
    return {
      apiVersion,
      kind: kind.kind,
      ...manifest,
      metadata: { ...place, ...manifest.metadata },
    };
  }
}
