// The table of all views. On a phone, each row is a card, and a cell has the title of its column before it.
import type { ComponentChildren } from "preact";

export interface Column<R> {
  readonly title: string;
  readonly cell: (row: R) => ComponentChildren;
  readonly class?: (row: R) => string | undefined;
  readonly isNumber?: boolean;
  /** It says what it is without its title. */
  readonly isPlain?: boolean;
}

/** The first column names the row. */
export function Table<R>(props: {
  readonly rows: readonly R[];
  readonly columns: readonly Column<R>[];
  readonly keyOf: (row: R) => string;
  readonly rowClass?: (row: R) => string | undefined;
}) {
  const { rows, columns, keyOf, rowClass } = props;
  return (
    <div class="scroll">
      <table class="cards">
        <thead>
          <tr>
            {columns.map(({ title, isNumber }) => (
              <th key={title} scope="col" class={isNumber ? "number" : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} class={rowClass?.(row)}>
              {columns.map((column, index) => (
                <Cell key={column.title} column={column} row={row} isFirst={index === 0} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Cell<R>({
  column,
  row,
  isFirst,
}: {
  readonly column: Column<R>;
  readonly row: R;
  readonly isFirst: boolean;
}) {
  const { title, cell, class: classOf, isNumber, isPlain } = column;
  if (isFirst) return <th scope="row">{cell(row)}</th>;
  const classes = [isNumber && "number", classOf?.(row)].filter(Boolean).join(" ");
  return (
    <td class={classes === "" ? undefined : classes} data-label={isPlain ? undefined : title}>
      {cell(row)}
    </td>
  );
}
