// The part of a route that the Gateway needs: its HTTPRoute, and whether one can be had. Without it, the route counts as
// applied and failing: a release must not wait for a Gateway. It says what is missing, and is completed once that is there.
import { ContentHashes } from "../../engine/applied-content.ts";
import { type DefinedKind, defineKind } from "../../engine/controller-definition.ts";
import { type OwnedTarget, ownedObject, ownedTarget, type PlanStep } from "../../engine/plan.ts";
import type { CacheEntry } from "../../kube/object-cache.ts";
import type { CustomObject } from "../../kube/resources.ts";
import type { GatewaySettings } from "../kind-settings.ts";
import { desiredHttpRoute } from "./http-route.ts";
import type { HttpRouteProjection } from "./projections.ts";
import type { RouteSpec } from "./spec.ts";
import { idsOf, judgeRoute, type RouteDeps, refOf, routeKeys, watchHttpRoutes } from "./watched-kinds.ts";

const notConfigured = "no Gateway is configured for this cluster ([gateway] of the agent)";

export class RouteGateway {
  readonly settings: GatewaySettings | undefined;
  private readonly watched: ReturnType<typeof watchHttpRoutes> | undefined;
  private readonly hashes = new ContentHashes<RouteSpec>();

  /** Without a Gateway the agent needs no right to HTTPRoutes, and knows of none. */
  constructor(settings: GatewaySettings | undefined, deps: RouteDeps) {
    this.settings = settings;
    this.watched = settings && watchHttpRoutes(deps);
  }

  watchedKinds(waiting: () => Iterable<string>): readonly DefinedKind[] {
    return this.watched === undefined ? [] : [defineKind(this.watched, routeKeys, waiting)];
  }

  /** By the keys of their routes. */
  all(): Iterable<CacheEntry<HttpRouteProjection>> {
    return this.watched?.cache.all() ?? [];
  }

  get(key: string): CacheEntry<HttpRouteProjection> | undefined {
    return this.watched?.get(key);
  }

  /** An HTTPRoute without hostnames would get the requests for all names of the Gateway, so there is none. */
  steps(key: string, spec: RouteSpec): readonly PlanStep[] {
    const { watched, settings } = this;
    if (watched === undefined || settings === undefined || !watched.synced) return [];
    if (spec.hostnames.length === 0) return [];
    const manifest = (): CustomObject => desiredHttpRoute(spec, settings);
    const object = ownedObject(watched, {
      key,
      ref: refOf(key),
      contentHash: () => this.hashes.of(spec, manifest),
      ids: () => idsOf(spec),
      manifest,
      judge: (live) => judgeRoute(live, spec.routeId),
    });
    return [{ kind: "object", object }];
  }

  /** To delete it. None if the cluster has no such kind, or the agent no right to it. */
  targets(key: string): readonly OwnedTarget[] {
    const { watched } = this;
    if (watched === undefined) return [];
    const judge = ({ ownership }: HttpRouteProjection) => ownership;
    return [ownedTarget(watched, { key, ref: refOf(key), judge, isLookedUp: watched.synced })];
  }

  /** Why the Gateway sends no requests to a route that it should expose; empty if it does. */
  problemOf(key: string): string {
    const obstacle = this.obstacle();
    const live = this.get(key)?.value;
    if (obstacle !== "" || this.settings === undefined) return obstacle;
    if (live === undefined) return "its HTTPRoute is not in the cluster yet";
    const { namespace, name } = this.settings;
    const own = live.parents.find((each) => each.namespace === namespace && each.name === name);
    return own?.problem ?? `Gateway ${namespace}/${name} has not accepted it yet`;
  }

  /** Why there can be no HTTPRoute; empty if there can, or if that is not known yet. */
  obstacle(): string {
    const { watched } = this;
    if (watched === undefined) return notConfigured;
    if (watched.synced) return "";
    if (watched.isMissing)
      return "the cluster has no HTTPRoute (gateway.networking.k8s.io/v1); install the Gateway API";
    const { lastError } = watched.status();
    return lastError === "" ? "" : `the HTTPRoutes of the cluster are not known yet: ${lastError}`;
  }
}
