// The manifests that an agent applies for an object; only read when somebody wants to see them.
import { ConnectError } from "@connectrpc/connect";
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ObjectRef } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Model } from "./model.ts";
import { Loading, Notice, Section } from "./parts.tsx";

export function Manifests(props: {
  readonly model: Model;
  readonly of: ObjectRef;
  /** They are read again when it grows. */
  readonly version: bigint;
}) {
  const { model, of, version } = props;
  const isOpen = useSignal(false);
  const text = useSignal("");
  const problem = useSignal("");
  useEffect(() => {
    if (!isOpen.value) return;
    model.api.renderObject({ ref: of }).then(
      ({ manifests }) => {
        text.value = manifests;
        problem.value = "";
      },
      (error: unknown) => {
        if (!model.fail(error)) problem.value = ConnectError.from(error).rawMessage;
      },
    );
  }, [isOpen.value, version]);
  return (
    <Section
      title="Manifests"
      extra={
        <button
          type="button"
          class="link"
          aria-label={isOpen.value ? "Hide the manifests" : "Show the manifests"}
          aria-expanded={isOpen.value}
          onClick={() => (isOpen.value = !isOpen.value)}
        >
          {isOpen.value ? "Hide" : "Show"}
        </button>
      }
    >
      {isOpen.value && (
        <>
          <p class="lead">
            What an agent with default settings applies to its cluster. Its own settings may add to it: a
            registry, another runtime class, the endpoint of secrets. The policy of an environment also admits
            the ports of its other deployments.
          </p>
          {problem.value !== "" && <Notice tone="bad">{problem.value}</Notice>}
          {problem.value === "" && (text.value === "" ? <Loading /> : <pre>{text.value}</pre>)}
        </>
      )}
    </Section>
  );
}
