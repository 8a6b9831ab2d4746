// Handles reviews, which are answered but not stored.

import type { TokenReview } from "kubernetes-types/authentication/v1.js";
import type {
  ResourceAttributes,
  SelfSubjectAccessReview,
  SubjectAccessReview,
} from "kubernetes-types/authorization/v1.js";
import { isAllowed } from "./access.ts";
import { recordUpdate } from "./apply/field-manager.ts";
import { decodeBody } from "./body.ts";
import { contextOf, type Scope } from "./core.ts";
import type { JsonObject } from "./json.ts";
import { parseWriteQuery } from "./query.ts";
import type { User } from "./resource.ts";
import { invalid } from "./status-error.ts";
import type { StoredObject } from "./store.ts";
import { identityOf } from "./write-identity.ts";

export function handleReview(scope: Scope, body: unknown): StoredObject {
  const write = parseWriteQuery(scope.request, "CreateOptions");
  const asked = decodeBody(scope, body, write);
  scope.resource.admit?.(asked, undefined, contextOf(scope));
  const causes = scope.resource.validate?.(asked) ?? [];
  if (causes.length > 0) throw invalid(scope.resource.kind, "", causes);
  const recorded = recordUpdate(identityOf(scope, write), undefined, asked) as StoredObject;
  return { ...recorded, status: reviewStatus(scope, recorded) };
}

function reviewStatus(scope: Scope, review: StoredObject): JsonObject {
  if (review.kind === "TokenReview") return reviewToken(scope, review as unknown as TokenReview);
  if (review.kind === "SelfSubjectAccessReview") {
    const { spec } = review as unknown as SelfSubjectAccessReview;
    return { allowed: allows(scope, scope.request.user, spec.resourceAttributes) };
  }
  const { spec } = review as unknown as SubjectAccessReview;
  const user = { username: spec.user ?? "", groups: spec.groups ?? [] };
  return { allowed: allows(scope, user, spec.resourceAttributes) };
}

function reviewToken({ core }: Scope, { spec }: TokenReview): JsonObject {
  const verdict = core.tokens.review(spec.token ?? "", spec.audiences ?? []);
  if (verdict.kind === "refused") return { user: {}, error: verdict.error };
  const { username, uid, groups, extra } = verdict.user;
  return {
    authenticated: true,
    user: {
      username,
      ...(uid === undefined ? {} : { uid }),
      groups: [...groups],
      ...(extra === undefined
        ? {}
        : { extra: Object.fromEntries(Object.entries(extra).map(([key, list]) => [key, [...list]])) }),
    },
    audiences: [...verdict.audiences],
  };
}

function allows({ core }: Scope, user: User, attributes: ResourceAttributes | undefined): boolean {
  if (attributes === undefined) return user.groups.includes("system:masters");
  const { verb = "", group = "", resource = "", subresource = "", namespace = "", name = "" } = attributes;
  const place = subresource === "" ? resource : `${resource}/${subresource}`;
  return isAllowed(core.rules, { user, verb, group, resource: place, namespace, name });
}
