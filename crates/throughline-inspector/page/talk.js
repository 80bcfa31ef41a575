// What was said: Markdown as models write it, set as such. Only elements are made, never markup: nothing in it can run.

import { html } from "./vendor/htm-preact.js";
import { Blob } from "./blob.js";

const named = { js: "script", ts: "script", javascript: "script", typescript: "script", sh: "shell", bash: "shell", py: "python", rs: "rust", yml: "yaml", cpp: "c" };

/** Shows words. Fenced code is in its colours; addresses are told and do not become links. */
export function Talk({ text }) {
  return html`<div class="talk">${blocks(text).map((block) => (block.code === undefined
    ? paragraphs(block.words)
    : html`<${Blob} text=${block.code} language=${block.language} />`))}</div>`;
}

/** Cuts a text at its fences. */
export function blocks(text) {
  const all = [];
  let words = [];
  let open = null;
  for (const line of text.split("\n")) {
    const fence = /^\s{0,3}(`{3,}|~{3,})\s*([\w+-]*)\s*$/.exec(line);
    if (open && fence && fence[1].startsWith(open.fence) && !fence[2]) {
      all.push({ code: open.lines.join("\n"), language: open.language });
      open = null;
    } else if (open) {
      open.lines.push(line);
    } else if (fence) {
      if (words.length > 0) all.push({ words: words.join("\n") });
      words = [];
      open = { fence: fence[1], language: named[fence[2]] ?? fence[2], lines: [] };
    } else {
      words.push(line);
    }
  }
  // A fence that was never closed is no fence.
  if (open) words.push(`${open.fence}${open.language}`, ...open.lines);
  if (words.length > 0) all.push({ words: words.join("\n") });
  return all;
}

const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const HEADING = /^\s{0,3}(#{1,6})\s+(.+?)\s*#*\s*$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const DIVIDER = /^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$/;

/** Sets headings, lists, tables, quotes and paragraphs. */
function paragraphs(words) {
  const lines = words.split("\n");
  const all = [];
  let at = 0;
  const take = (fits) => {
    const from = at;
    while (at < lines.length && fits(lines[at])) at += 1;
    return lines.slice(from, at);
  };
  const isPlain = (line) => line.trim() !== "" && !HEADING.test(line) && !RULE.test(line) && !ITEM.test(line) && !line.startsWith(">");
  while (at < lines.length) {
    const line = lines[at];
    const heading = HEADING.exec(line);
    if (line.trim() === "") {
      at += 1;
    } else if (heading) {
      all.push(html`<p class="heading level-${heading[1].length}" role="heading" aria-level=${Math.min(6, heading[1].length + 2)}>${spans(heading[2])}</p>`);
      at += 1;
    } else if (RULE.test(line)) {
      all.push(html`<hr />`);
      at += 1;
    } else if (line.includes("|") && DIVIDER.test(lines[at + 1] ?? "")) {
      all.push(table(take((each) => each.includes("|"))));
    } else if (ITEM.test(line)) {
      all.push(list(take((each) => ITEM.test(each) || (/^\s{2,}\S/.test(each) && each.trim() !== ""))));
    } else if (line.startsWith(">")) {
      all.push(html`<blockquote>${paragraphs(take((each) => each.startsWith(">")).map((each) => each.replace(/^>\s?/, "")).join("\n"))}</blockquote>`);
    } else {
      all.push(html`<p>${spans(take(isPlain).join("\n"))}</p>`);
    }
  }
  return all;
}

/** A list; what is indented further stands further in, and lines that go on belong to their item. */
function list(lines) {
  const items = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item) items.push({ depth: Math.floor(item[1].replaceAll("\t", "  ").length / 2), mark: /\d/.test(item[2]) ? item[2] : "•", words: item[3] });
    else items.at(-1).words += `\n${line.trim()}`;
  }
  return html`<div class="items" role="list">${items.map(({ depth, mark, words }) => html`<div role="listitem" class="item" style=${{ marginLeft: `${Math.min(depth, 8) * 1.2}rem` }}><span class="dim" aria-hidden="true">${mark}</span><span>${spans(words)}</span></div>`)}</div>`;
}

function table([head, , ...rows]) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
  return html`<div class="table"><table><thead><tr>${cells(head).map((cell) => html`<th>${spans(cell)}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${cells(row).map((cell) => html`<td>${spans(cell)}</td>`)}</tr>`)}</tbody></table></div>`;
}

const MARKED = /(`[^`\n]+`|\*\*[^*\n]+\*\*|(?<![\w*])\*[^*\s](?:[^*\n]*[^*\s])?\*(?![\w*])|~~[^~\n]+~~|\[[^\]\n]+\]\([^()\s]+\))/;

/** Sets what is marked within a line. */
function spans(words) {
  return words.split(MARKED).map((piece, at) => {
    if (at % 2 === 0) return piece;
    if (piece.startsWith("`")) return html`<code>${piece.slice(1, -1)}</code>`;
    if (piece.startsWith("**")) return html`<b>${spans(piece.slice(2, -2))}</b>`;
    if (piece.startsWith("~~")) return html`<s>${piece.slice(2, -2)}</s>`;
    if (piece.startsWith("*")) return html`<i>${piece.slice(1, -1)}</i>`;
    const [, label, address] = /^\[([^\]]+)\]\(([^)]+)\)$/.exec(piece);
    return html`${label} <code class="address">${address}</code>`;
  });
}
