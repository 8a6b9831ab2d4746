// Keeps orders as ConfigMaps in krane's own namespace, one for each ordered object. Its name is a hash of region, kind
// and key, because keys are too long and have characters that names must not have.
//
// Every write is conditional: a create, or a change of the state that was read. So of two processes that write at the
// same time, the higher number wins in either order.
import { createHash } from "node:crypto";
import type { ConfigMap } from "kubernetes-types/core/v1.js";
import type { KubeApi, ReplaceOperation } from "../kube/api.ts";
import { listAll } from "../kube/list-all.ts";
import { configMaps, namespaces } from "../kube/resources.ts";
import { components, fieldManager, labelKeys, ownLabels } from "../model/labels.ts";
import { isLabelValue } from "../model/names.ts";
import { desiredNamespace } from "../model/namespace.ts";
import type { Log } from "../telemetry/log.ts";
import { isConflict, isNotFound } from "./classify.ts";
import type { OrderRecord, OrderRecords, RecordOutcome } from "./order-records.ts";

export interface OrderRecordsPlace {
  /** krane's own namespace; created with the first record if it is missing. */
  readonly namespace: string;
  readonly region: string;
  /** The controller's name. */
  readonly controller: string;
}

export interface KubeOrderRecordsDeps {
  readonly api: KubeApi;
  readonly log: Log;
}

/** The admission policy of the chart relies on it. */
export const orderRecordPrefix = "krane-order-";

// More collisions in a row mean that two agents fight; the caller retries later.
const attemptsMax = 5;

export function createOrderRecords(place: OrderRecordsPlace, deps: KubeOrderRecordsDeps): OrderRecords {
  return new KubeOrderRecords(place, deps);
}

class KubeOrderRecords implements OrderRecords {
  private readonly place: OrderRecordsPlace;
  private readonly deps: KubeOrderRecordsDeps;

  constructor(place: OrderRecordsPlace, deps: KubeOrderRecordsDeps) {
    this.place = place;
    this.deps = deps;
  }

  async load(signal: AbortSignal): Promise<readonly OrderRecord[]> {
    const { namespace, controller } = this.place;
    const labelSelector = Object.entries(this.labels())
      .map(([key, value]) => `${key}=${value}`)
      .join();
    const read = (object: ConfigMap) => ({ name: object.metadata?.name, record: this.parse(object) });
    const found = await listAll(this.deps.api, configMaps, { namespace, labelSelector }, read, signal);
    return found.items.flatMap(({ name, record }) => {
      if (record !== undefined) return [record];
      this.deps.log.warn("ignored a recorded order that cannot be read", { controller, namespace, name });
      return [];
    });
  }

  put(record: OrderRecord, signal: AbortSignal): Promise<RecordOutcome> {
    const { namespace } = this.place;
    const object = this.configMapOf(record);
    return this.change(record.key, record.number, signal, async (live) => {
      if (live === undefined) return this.create(object, signal);
      const operations: readonly ReplaceOperation[] = [
        { op: "replace", path: "/data", value: object.data },
        { op: "replace", path: "/binaryData", value: object.binaryData },
      ];
      const read = { metadata: { ...live.metadata, namespace } };
      await this.deps.api.patch(configMaps, read, operations, { fieldManager }, signal);
    });
  }

  remove(key: string, number: bigint, signal: AbortSignal): Promise<RecordOutcome> {
    const { api } = this.deps;
    return this.change(key, number, signal, async (live) => {
      if (live === undefined) return;
      const { uid, resourceVersion } = live.metadata ?? {};
      const unchanged = { ...(uid !== undefined && { uid }), ...(resourceVersion && { resourceVersion }) };
      await api.delete(configMaps, this.refOf(key), unchanged, signal);
    });
  }

  /** Makes the change to the record that it has read; reads it again if it has changed meanwhile. */
  private async change(
    key: string,
    number: bigint,
    signal: AbortSignal,
    write: (live: ConfigMap | undefined) => Promise<void>,
  ): Promise<RecordOutcome> {
    for (let attempt = 1; ; attempt += 1) {
      const live = await this.deps.api.get(configMaps, this.refOf(key), {}, signal);
      if (live !== undefined && numberOf(live) > number) return "newer";
      try {
        await write(live);
        return "done";
      } catch (error) {
        if (attempt >= attemptsMax || !(isConflict(error) || isNotFound(error))) throw error;
      }
    }
  }

  private async create(object: ConfigMap, signal: AbortSignal): Promise<void> {
    const { api } = this.deps;
    const options = { fieldManager };
    try {
      await api.create(configMaps, object, options, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await api.create(namespaces, desiredNamespace(this.place.namespace), options, signal);
      await api.create(configMaps, object, options, signal);
    }
  }

  private configMapOf({ key, id, number, state, readinessId }: OrderRecord): ConfigMap {
    const { region, controller } = this.place;
    return {
      metadata: { ...this.refOf(key), labels: { ...this.labels() } },
      data: {
        region,
        controller,
        key,
        id,
        number: number.toString(),
        ...(readinessId !== undefined && { readinessId }),
      },
      binaryData: { state: Buffer.from(state).toString("base64") },
    };
  }

  /** Undefined if it is not a record of this place, or was not written by krane. */
  private parse({ metadata, data = {}, binaryData = {} }: ConfigMap): OrderRecord | undefined {
    const { key = "", id = "", region, controller, readinessId } = data;
    const isHere = region === this.place.region && controller === this.place.controller;
    const state = binaryData["state"];
    const number = parseNumber(data["number"]);
    if (!isHere || metadata?.name !== this.refOf(key).name) return undefined;
    if (state === undefined || number === undefined) return undefined;
    const bytes = Uint8Array.from(Buffer.from(state, "base64"));
    return { key, id, number, state: bytes, ...(readinessId !== undefined && { readinessId }) };
  }

  private refOf(key: string) {
    const { namespace, region, controller } = this.place;
    return { namespace, name: `${orderRecordPrefix}${digestOf(region, controller, key)}` };
  }

  private labels(): Readonly<Record<string, string>> {
    const { region, controller } = this.place;
    return {
      ...ownLabels(components.order),
      [labelKeys.controller]: controller,
      // A region may be longer than the value of a label.
      [labelKeys.region]: isLabelValue(region) ? region : digestOf(region),
    };
  }
}

function numberOf({ data }: ConfigMap): bigint {
  return parseNumber(data?.["number"]) ?? 0n;
}

function parseNumber(text: string | undefined): bigint | undefined {
  return text !== undefined && /^\d{1,30}$/.test(text) ? BigInt(text) : undefined;
}

function digestOf(...parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32);
}
