// The call that explains an object, with everything that a page about it shows.
import { create } from "@bufbuild/protobuf";
import {
  AgentViewSchema,
  type AppView,
  type ExplainObjectRequest,
  GetAppRequestSchema,
  GetObjectRequestSchema,
  ObjectKind,
  type ObjectView,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import type { AnyContent } from "../../kinds/documents.ts";
import { explain } from "../../why/explain.ts";
import { explainApp } from "../../why/explain-app.ts";
import type { Explanation } from "../../why/explanation.ts";
import type { Store } from "../store.ts";
import { getApp } from "./apps.ts";
import { getObject } from "./object-reads.ts";

export async function explainObject(store: Store, { ref }: ExplainObjectRequest, nowMs: number) {
  const region = ref?.region ?? "";
  const now = { nowMs: BigInt(Math.trunc(nowMs)) };
  if (ref?.kind === ObjectKind.APP) {
    const { app, agent = create(AgentViewSchema, { region }) } = await getApp(
      store,
      create(GetAppRequestSchema, { region, id: ref.id }),
    );
    const explanation = shown(explainApp(app, agent, nowMs));
    return { explanation, document: await documentText(app), app, agent, ...now };
  }
  const { object, agent = create(AgentViewSchema, { region }) } = await getObject(
    store,
    create(GetObjectRequestSchema, ref && { ref }),
  );
  const asked = { kind: object.ref?.kind ?? ObjectKind.UNSPECIFIED, name: object.ref?.id ?? "" };
  const explanation = shown(explain({ asked, object, agent }, nowMs));
  return { explanation, document: await documentText(object), object, agent, ...now };
}

function shown({ differences, ...answer }: Explanation) {
  return {
    ...answer,
    differences: differences.map(({ field, desired, live }) => ({ field, desired, live })),
  };
}

/** The code for documents is loaded on demand: a server that nobody looks at needs no YAML. */
async function documentText(view: ObjectView | AppView): Promise<string> {
  const { contentOfView, loadDocumentKinds } = await import("../../kinds/documents.ts");
  const content = view.$typeName === "krane.admin.v1.ObjectView" ? contentOfView(view) : contentOfApp(view);
  if (content === undefined) return "";
  const { documentOf, renderYaml } = await import("../../documents/document-of.ts");
  return renderYaml([documentOf(content, await loadDocumentKinds())]);
}

function contentOfApp({ app }: AppView): AnyContent | undefined {
  return app?.spec && { kind: "app", spec: app.spec };
}
