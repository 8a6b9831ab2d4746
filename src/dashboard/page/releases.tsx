// The releases of an app, newest first, and the way back to each that has been current.
import type { AppView } from "../../gen/krane/admin/v1/admin_pb.ts";
import { Release_Phase as Phase, type Release } from "../../gen/krane/admin/v1/app_pb.ts";
import { RollBack } from "./actions.tsx";
import type { Model } from "./model.ts";
import { Age, Link, Section, State } from "./parts.tsx";
import { type Column, Table } from "./table.tsx";
import { releaseWord } from "./words.ts";

export function Releases(props: { readonly model: Model; readonly region: string; readonly view: AppView }) {
  const { model, region, view } = props;
  const releases = (view.app?.releases ?? []).toReversed();
  const columns: readonly Column<Release>[] = [
    {
      title: "Release",
      cell: ({ number, template }) => (
        <Link
          model={model}
          to={{ view: "object", region, kind: "deployment", id: template?.deploymentId ?? "" }}
        >
          {number}
        </Link>
      ),
    },
    { title: "State", isPlain: true, cell: ({ phase }) => <State word={releaseWord(phase)} /> },
    { title: "Image", class: () => "image", cell: ({ template }) => template?.image },
    { title: "Made", cell: ({ createdAtMs }) => <Age model={model} atMs={createdAtMs} suffix=" ago" /> },
    { title: "By", cell: ({ createdBy, cause }) => `${createdBy} (${cause})` },
    {
      title: "Reason",
      isPlain: true,
      class: () => "reason",
      cell: ({ reason, olderSecrets }) =>
        `${reason}${olderSecrets ? " Its environment has other secrets now." : ""}`,
    },
  ];
  const rollingBack: Column<Release> = {
    title: "Go back",
    isPlain: true,
    cell: (release) =>
      canGoBackTo(view, release) && <RollBack model={model} region={region} view={view} release={release} />,
  };
  const mayRollBack = model.canWrite.value && releases.some((release) => canGoBackTo(view, release));
  return (
    <Section title="Releases">
      <Table
        rows={releases}
        columns={mayRollBack ? [...columns, rollingBack] : columns}
        keyOf={({ number }) => String(number)}
      />
    </Section>
  );
}

/** To the current one while another starts. One that never ran says nothing about what works. */
function canGoBackTo({ app }: AppView, { phase, currentAtMs }: Release): boolean {
  if (app === undefined || app.paused || currentAtMs === 0n) return false;
  return phase !== Phase.CURRENT || app.releases.some((each) => each.phase === Phase.STARTING);
}
