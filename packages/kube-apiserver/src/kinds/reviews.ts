// TokenReviews and access reviews, which are answered but not stored.
import type { TokenReview } from "kubernetes-types/authentication/v1.js";
import type {
  ResourceAttributes,
  SelfSubjectAccessReview,
  SubjectAccessReview,
} from "kubernetes-types/authorization/v1.js";
import { invalidValue } from "../causes.ts";
import { defineResource } from "../resource.ts";
import { badRequest } from "../status-error.ts";
import { nameColumn } from "../table-columns.ts";
import type { KubeStatusCause } from "../types.ts";
import type { Causes } from "./field-checks.ts";

const question = {
  shortNames: [],
  categories: [],
  statusSubresource: false,
  virtual: true,
  columns: [nameColumn],
} as const;

export const tokenreviews = defineResource<TokenReview>({
  ...question,
  kind: {
    group: "authentication.k8s.io",
    version: "v1",
    kind: "TokenReview",
    plural: "tokenreviews",
    namespaced: false,
  },
  singular: "tokenreview",
  schema: "io.k8s.api.authentication.v1.TokenReview",
  admit({ spec }) {
    if (!spec?.token) throw badRequest("token is required for TokenReview in authentication");
  },
});

export const subjectaccessreviews = defineResource<SubjectAccessReview>({
  ...question,
  kind: {
    group: "authorization.k8s.io",
    version: "v1",
    kind: "SubjectAccessReview",
    plural: "subjectaccessreviews",
    namespaced: false,
  },
  singular: "subjectaccessreview",
  schema: "io.k8s.api.authorization.v1.SubjectAccessReview",
  validate({ spec = {} }) {
    const found: KubeStatusCause[] = [...checkQuestion(spec)];
    if (!spec.user && (spec.groups ?? []).length === 0)
      found.push(invalidValue("spec.user", "", "at least one of user or group must be specified"));
    return found;
  },
});

export const selfsubjectaccessreviews = defineResource<SelfSubjectAccessReview>({
  ...question,
  kind: {
    group: "authorization.k8s.io",
    version: "v1",
    kind: "SelfSubjectAccessReview",
    plural: "selfsubjectaccessreviews",
    namespaced: false,
  },
  singular: "selfsubjectaccessreview",
  schema: "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
  validate: ({ spec = {} }) => checkQuestion(spec),
});

interface Question {
  readonly resourceAttributes?: ResourceAttributes;
  readonly nonResourceAttributes?: { readonly path?: string; readonly verb?: string };
}

function checkQuestion({ resourceAttributes, nonResourceAttributes }: Question): Causes {
  if (resourceAttributes !== undefined && nonResourceAttributes !== undefined) {
    const { path = "", verb = "" } = nonResourceAttributes;
    const why = "cannot be specified in combination with resourceAttributes";
    return [invalidValue("spec.nonResourceAttributes", { Path: path, Verb: verb }, why)];
  }
  if (resourceAttributes !== undefined || nonResourceAttributes !== undefined) return [];
  const why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
  return [invalidValue("spec.resourceAttributes", null, why)];
}
