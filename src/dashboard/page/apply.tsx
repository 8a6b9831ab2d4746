// Documents are written or edited here, and applied after their changes were shown.
import { ConnectError } from "@connectrpc/connect";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import {
  ApplyObjectResponse_Change as Change,
  type DocumentProblem,
  type FieldChange,
  ObjectKind,
  type PlannedDocument,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { Outcome, useAction } from "./action-form.tsx";
import type { Model } from "./model.ts";
import { Link, Loading, Lone, Notice, Section } from "./parts.tsx";
import type { Route } from "./route.ts";
import { type Column, Table } from "./table.tsx";
import { counted } from "./words.ts";

type ApplyRoute = Extract<Route, { view: "apply" }>;

/** What was found about the text as it is now. */
type Plan =
  | { readonly kind: "none" | "busy" }
  | { readonly kind: "failed"; readonly text: string }
  | { readonly kind: "rejected"; readonly problems: readonly DocumentProblem[] }
  | { readonly kind: "planned"; readonly documents: readonly PlannedDocument[] };

export function Apply({ model, route }: { readonly model: Model; readonly route: ApplyRoute }) {
  const { region, of } = route;
  const start = useSignal<string | undefined>(of === undefined ? example : undefined);
  const problem = useSignal("");
  useEffect(() => {
    if (of === undefined) return;
    const ref = { region, kind: model.kindNamed(of.kind), id: of.id };
    model.api.explainObject({ ref }).then(
      ({ document }) => (start.value = document),
      (error: unknown) => {
        if (!model.fail(error)) problem.value = ConnectError.from(error).rawMessage;
      },
    );
  }, []);
  if (!model.canWrite.value)
    return (
      <Lone title="Read-only">
        <p>
          Your token may read only. Applying needs one with the role <code>read-write</code>.
        </p>
      </Lone>
    );
  if (problem.value !== "") return <Notice tone="bad">{problem.value}</Notice>;
  if (start.value === undefined) return <Loading />;
  return (
    <>
      <h1>
        {of === undefined ? "Apply documents" : `Edit ${of.kind} ${of.id}`}{" "}
        <span class="count">in {region}</span>
      </h1>
      <Editor model={model} region={region} start={start.value} />
    </>
  );
}

function Editor({
  model,
  region,
  start,
}: {
  readonly model: Model;
  readonly region: string;
  readonly start: string;
}) {
  const text = useSignal(start);
  const plan = useSignal<Plan>({ kind: "none" });
  const field = useRef<HTMLTextAreaElement>(null);
  const preview = async (event: Event) => {
    event.preventDefault();
    const planned = text.value;
    plan.value = { kind: "busy" };
    const found = await planOf(model, region, planned);
    // What was typed meanwhile was not looked at.
    if (text.value === planned) plan.value = found;
  };
  const showLine = (line: number) => {
    const before = text.value.split("\n").slice(0, line - 1);
    const from = before.reduce((sum, each) => sum + each.length + 1, 0);
    const length = text.value.split("\n")[line - 1]?.length ?? 0;
    field.current?.focus();
    field.current?.setSelectionRange(from, from + length);
  };
  return (
    <form onSubmit={(event) => void preview(event)}>
      <label class="editor">
        Documents, as YAML
        <textarea
          ref={field}
          rows={Math.min(30, Math.max(14, start.split("\n").length + 1))}
          autocomplete="off"
          spellcheck={false}
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
            plan.value = { kind: "none" };
          }}
        />
      </label>
      <div class="toolbar">
        <button
          type="submit"
          class={plan.value.kind === "planned" ? undefined : "primary"}
          disabled={plan.value.kind === "busy"}
        >
          Preview changes
        </button>
        <span class="faint">Nothing changes until you apply what the preview shows.</span>
      </div>
      {plan.value.kind === "failed" && <Notice tone="bad">{plan.value.text}</Notice>}
      {plan.value.kind === "rejected" && <Problems problems={plan.value.problems} showLine={showLine} />}
      {plan.value.kind === "planned" && <Planned model={model} documents={plan.value.documents} />}
    </form>
  );
}

async function planOf(model: Model, region: string, text: string): Promise<Plan> {
  try {
    const { documents, problems } = await model.api.planDocuments({ region, text });
    return problems.length > 0 ? { kind: "rejected", problems } : { kind: "planned", documents };
  } catch (error) {
    if (model.fail(error)) return { kind: "none" };
    return { kind: "failed", text: ConnectError.from(error).rawMessage };
  }
}

function Problems(props: { readonly problems: readonly DocumentProblem[]; showLine(line: number): void }) {
  const { problems, showLine } = props;
  return (
    <section class="why bad" role="alert" aria-label="Problems">
      <p class="answer">{counted(problems.length, "problem")}. Nothing can be applied.</p>
      <ul class="problems">
        {problems.map(({ line, path, problem }) => (
          <li key={`${line} ${path} ${problem}`}>
            <button type="button" class="link" onClick={() => showLine(line)}>
              line {line}
            </button>{" "}
            {path !== "" && <code>{path}</code>} {problem}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Planned({
  model,
  documents,
}: {
  readonly model: Model;
  readonly documents: readonly PlannedDocument[];
}) {
  const { progress, run } = useAction(model);
  const changing = documents.filter(({ change, release }) => change !== Change.UNCHANGED || release > 0);
  const apply = () =>
    void run(async () => {
      for (const document of changing) await applied(model, document);
      return `Applied ${counted(changing.length, "change")}.`;
    });
  return (
    <>
      {documents.map((document) => (
        <PlannedOne key={`${document.ref?.kind} ${document.ref?.id}`} model={model} document={document} />
      ))}
      <div class="toolbar">
        {changing.length > 0 && progress.kind !== "done" && (
          <button type="button" class="primary" disabled={progress.kind === "busy"} onClick={apply}>
            Apply {counted(changing.length, "change")}
          </button>
        )}
        {changing.length === 0 && (
          <span class="faint">All of it is already so: there is nothing to apply.</span>
        )}
        <Outcome progress={progress} />
      </div>
    </>
  );
}

async function applied({ api }: Model, { call }: PlannedDocument): Promise<void> {
  if (call.case === "object") await api.applyObject(call.value);
  else if (call.case === "app") await api.applyApp(call.value);
  else if (call.case === "environment") await api.applyEnvironment(call.value);
}

function PlannedOne({ model, document }: { readonly model: Model; readonly document: PlannedDocument }) {
  const { ref, change, fields, release, forNewPodsOnly } = document;
  if (ref === undefined) return null;
  const kind = model.nameOfKind(ref.kind);
  const isNew = change === Change.CREATED;
  const { region, id } = ref;
  const columns: readonly Column<FieldChange>[] = [
    { title: "Field", cell: ({ field }) => <code>{field}</code> },
    { title: "Now", class: () => "image before", cell: ({ before }) => before ?? <i>not set</i> },
    { title: "Then", class: () => "image after", cell: ({ after }) => after ?? <i>not set</i> },
  ];
  const [field, , then] = columns;
  return (
    <Section
      title={`${kind} ${id}`}
      extra={
        <span class="count">
          {region}
          {!isNew && ref.kind !== ObjectKind.ENVIRONMENT && (
            <>
              {", "}
              <Link model={model} to={{ view: "object", region, kind, id }}>
                show
              </Link>
            </>
          )}
        </span>
      }
    >
      <p>
        {changeText(change)}
        {release > 0 && ` Release ${release} starts.`}
        {forNewPodsOnly &&
          " Its running pods stay as they are, and only new ones get the change; to replace them, use kind: App, or a new id and name."}
      </p>
      {fields.length > 0 && field && then && (
        <Table
          rows={fields}
          columns={isNew ? [field, { ...then, title: "Value" }] : columns}
          keyOf={(row) => row.field}
        />
      )}
    </Section>
  );
}

function changeText(change: Change): string {
  if (change === Change.CREATED) return "It does not exist and would be created.";
  return change === Change.UNCHANGED ? "Nothing in it would be different." : "It would be changed.";
}

const example = `apiVersion: krane/v1
kind: Environment
id: env_demo
workspace: ws_demo
project: proj_demo
---
apiVersion: krane/v1
kind: App
id: app_hello
name: hello
namespace: demo
workspace: ws_demo
project: proj_demo
environment: env_demo
image: registry.example/hello:1
replicas: 2
`;
