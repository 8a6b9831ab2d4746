// Environment documents, the only ones that do not describe desired state of a cluster.
import { collectProblems } from "../model/field-problem.ts";
import { parseId } from "../model/message-fields.ts";
import { type DocumentKind, defineDocument, type EnvironmentSpec, problemsOf } from "./document-kind.ts";
import { field } from "./fields.ts";
import { text } from "./formats.ts";

export interface EnvironmentContent {
  readonly kind: "environment";
  readonly spec: EnvironmentSpec;
}

const required = { isRequired: true } as const;

const schema = defineDocument<EnvironmentSpec, EnvironmentContent>({
  word: "Environment",
  kind: "environment",
  holds: "A stage of a project, such as production. It holds the secrets that its deployments get.",
  fields: [
    field("id", "id", text, "Its permanent id; also the name of its keyring.", required),
    field("workspace", "workspaceId", text, "The id of the workspace that owns it.", required),
    field("project", "projectId", text, "The id of the project within the workspace.", required),
  ],
  judge: ({ id = "", workspaceId = "", projectId = "" }) =>
    problemsOf(
      collectProblems((refuse) => [
        parseId("id", id, refuse),
        parseId("workspace_id", workspaceId, refuse),
        parseId("project_id", projectId, refuse),
      ]),
    ),
  documentOf: ({ id = "", workspaceId = "", projectId = "" }) => ({
    kind: "environment",
    spec: { id, workspaceId, projectId },
  }),
  contentOf: ({ spec }) => spec,
});

export const environmentDocument: DocumentKind<EnvironmentContent> = {
  ...schema,
  idOf: ({ spec }) => spec.id,
  environmentOf: ({ spec }) => spec,
};
