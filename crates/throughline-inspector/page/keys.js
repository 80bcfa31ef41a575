// The keyboard: which key does what, in one place, so that the help cannot differ from it.

/** What the keys do; each names an action of the page. */
export const keys = [
  ["j", "next", "the next row"],
  ["k", "previous", "the row before"],
  ["g", "first", "the first row"],
  ["G", "last", "the last row"],
  ["Enter", "open", "open the row, or close it"],
  ["Escape", "back", "back"],
  ["e", "failure", "in a timeline, the next failure"],
  ["/", "search", "search all tool history"],
  ["c", "conversations", "conversations"],
  ["r", "runs", "runs"],
  ["b", "backends", "backends"],
  ["t", "theme", "light, dark, or as the system has it"],
  ["?", "help", "these keys"],
];

/** Calls `act` with the action of each key that is pressed outside of fields. */
export function listen(act) {
  const pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.closest?.("input, select, textarea, dialog");
    if (field && event.key !== "Escape") return;
    const found = keys.find(([key]) => key === event.key);
    // A button or a link answers to Enter itself.
    if (!found || (event.key === "Enter" && event.target.closest?.("a, button, summary"))) return;
    event.preventDefault();
    if (field) field.blur();
    act(found[1]);
  };
  addEventListener("keydown", pressed);
  return () => removeEventListener("keydown", pressed);
}

/** Moves to the next or previous row of the page, and returns it. */
export function step(by) {
  const rows = [...document.querySelectorAll("[data-row]")];
  const at = rows.indexOf(document.activeElement?.closest("[data-row]"));
  const from = at < 0 && Number.isFinite(by) ? (by > 0 ? -1 : rows.length) : Math.max(at, 0);
  const row = rows[Math.min(rows.length - 1, Math.max(0, from + by))];
  row?.focus();
  row?.scrollIntoView({ block: "nearest" });
  return row;
}
