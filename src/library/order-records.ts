// Records of orders for programs that embed krane.
import { createOrderRecords as createRecords, type OrderRecordsPlace } from "../engine/kube-order-records.ts";
import type { OrderRecords } from "../engine/order-records.ts";
import type { KubeApi } from "../kube/api.ts";
import { completeHostDeps, type HostDeps } from "./host-deps.ts";

/**
 * Records the orders of one controller as ConfigMaps. A record counts as an order, so choose a
 * namespace that tenants cannot write to.
 */
export function createOrderRecords(
  place: OrderRecordsPlace,
  deps: Pick<HostDeps, "log"> & { readonly api: KubeApi },
): OrderRecords {
  const { log } = completeHostDeps(deps);
  return createRecords(place, { api: deps.api, log });
}
