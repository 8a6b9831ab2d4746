// The media types of the client. JSON only: V8 parses it fastest, and protobuf would need the schema of every kind.
import type { Detail } from "./api.ts";

export const json = "application/json";

// JSON is valid YAML, and this is the one apply media type that every supported server accepts.
export const applyPatch = "application/apply-patch+yaml";

export const jsonPatch = "application/json-patch+json";

export function acceptObject(detail: Detail | undefined): string {
  return detail === "metadata" ? `${json};as=PartialObjectMetadata;g=meta.k8s.io;v=v1` : json;
}

export function acceptList(detail: Detail | undefined): string {
  return detail === "metadata" ? `${json};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1` : json;
}
