// Tables whose columns sort.

/**
 * columns: {title, cell: (row) => text or element, order: (row) => number or text, number: bool}; one without `order` does not sort. `sorting`:
 * where a table that is made anew keeps how it was sorted.
 */
function makeTable(columns, rows, caption, sorting = { at: -1, down: false }) {
  const body = make("tbody");
  const heads = columns.map((column, at) => make("th", { scope: "col", class: column.number ? "number" : null },
    column.order ? make("button", { type: "button", onclick: () => {
      sorting.down = sorting.at === at && !sorting.down;
      sorting.at = at;
      layOut();
    } }, column.title) : column.title));
  const layOut = () => {
    const by = columns[sorting.at];
    const ordered = by ? [...rows].sort((a, b) => (sorting.down ? -1 : 1) * compared(by.order(a), by.order(b))) : rows;
    heads.forEach((head, at) => (by && at === sorting.at ? head.setAttribute("aria-sort", sorting.down ? "descending" : "ascending") : head.removeAttribute("aria-sort")));
    fill(body, ordered.map((row) => make("tr", {}, columns.map((column) => make("td", { class: column.number ? "number" : null }, column.cell(row))))));
  };
  layOut();
  return make("div", { class: "scroll card", tabindex: "0", role: "region", "aria-label": caption }, make("table", { class: "plain" }, make("thead", {}, make("tr", {}, heads)), body));
}

/** What is missing comes last, upwards. */
function compared(a, b) {
  if (a === b) {
    return 0;
  }
  if (a === null || a === undefined) {
    return 1;
  }
  if (b === null || b === undefined) {
    return -1;
  }
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}

function nameOf(run) {
  return make("span", { class: "whole" }, swatch(run), run.label);
}
