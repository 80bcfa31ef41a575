// The entries of a history as rows: what was said, thought, called and returned.

import { html, useEffect, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Blob } from "./blob.js";
import { Arguments } from "./diff.js";
import { clock, count, gist, languageOf, oneLine, several } from "./words.js";

/** Puts the calls of a branch together with their results, in the order of the calls. */
export function rowsOf(entries) {
  const returned = new Map();
  for (const entry of entries) {
    if (entry.kind === "returned" && entry.call_id && !returned.has(entry.call_id)) returned.set(entry.call_id, entry);
  }
  const paired = new Set();
  const rows = [];
  for (const entry of entries) {
    if (entry.kind === "called") {
      const result = returned.get(entry.call_id);
      if (result) paired.add(result.id);
      rows.push({ id: entry.id, kind: "pair", call: entry, result });
    } else if (entry.kind !== "returned" || !paired.has(entry.id)) {
      rows.push({ id: entry.id, kind: entry.kind, entry });
    }
  }
  return rows;
}

/** One row of a timeline. */
export function Row({ row, conversation, isOpen, toggle }) {
  if (row.kind === "pair") return html`<${Pair} ...${{ row, conversation, isOpen, toggle }} />`;
  if (row.kind === "switch") return html`<${Switch} row=${row} />`;
  if (row.kind === "handed over") {
    const { to, reason, at } = row.entry;
    return html`<${Switch} row=${{ to: to.backend, model: to.model, why: reason, at }} />`;
  }
  return html`<${Said} ...${{ row, conversation, isOpen, toggle }} />`;
}

function Switch({ row }) {
  const from = row.from ? html`<b>${row.from}</b> → ` : "";
  return html`<div class="switch" data-row tabindex="-1"><span class="dot"></span>
    <span>${from}<b>${row.to}</b>${row.model ? ` / ${row.model}` : ""}${row.why ? html` <span class="dim">${row.why}</span>` : ""}</span>
    <time class="dim">${clock(row.at)}</time></div>`;
}

function Pair({ row, conversation, isOpen, toggle }) {
  const { call, result } = row;
  const outcome = result ? result.outcome : "open";
  const size = result ? several(result.chars ?? result.text.length, "character") : "no result yet";
  return html`<article class="pair ${outcome}" data-row tabindex="-1" data-id=${row.id}>
    <button class="head" aria-expanded=${isOpen} onClick=${() => toggle(row.id)}>
      <span class="mark ${outcome}" title=${outcome}>${marks[outcome] ?? "•"}</span>
      <b class="tool">${call.tool}</b>
      <code class="gist">${gist(call.input)}</code>
      <span class="size dim">${size}</span>
      <time class="dim">${clock(call.at)}</time>
    </button>
    ${isOpen && html`<div class="body">
      <${Whole} conversation=${conversation} entry=${call}
        show=${(whole) => html`<div class="label">arguments</div><${Arguments} input=${whole.input} />`} />
      ${result && html`<${Whole} conversation=${conversation} entry=${result} show=${(whole) => html`
        <div class="label">result${outcome === "ok" ? "" : html` <span class="mark ${outcome}">${outcome}</span>`}</div>
        <${Pictures} of=${whole} />
        <${Blob} text=${whole.text} language=${languageOf(call.input)} />`} />`}
    </div>`}
  </article>`;
}

const marks = { ok: "✓", error: "✗", denied: "⊘", interrupted: "‖", unknown: "?", open: "…" };

function Said({ row, conversation, isOpen, toggle }) {
  const { entry } = row;
  const who = entry.role ?? entry.kind;
  const folds = entry.chars !== undefined || who === "system" || who === "developer" || entry.kind === "thought" || entry.kind === "returned";
  const text = entry.text ?? entry.type ?? entry.item ?? "";
  return html`<article class="said ${who}" data-row tabindex="-1" data-id=${row.id}>
    <header>
      <b>${who}</b>
      ${entry.origin && html`<span class="dim">${entry.origin.backend}${entry.origin.model ? ` / ${entry.origin.model}` : ""}</span>`}
      ${entry.sealed && html`<span class="chip" title="signed or encrypted by its issuer">sealed</span>`}
      ${entry.covers !== undefined && html`<span class="chip">stands for ${several(entry.covers, "entry", "entries")}</span>`}
      ${folds && html`<button class="quiet" aria-expanded=${isOpen} onClick=${() => toggle(row.id)}>${isOpen ? "less" : `all ${count(entry.chars ?? text.length)} characters`}</button>`}
      <time class="dim">${clock(entry.at)}</time>
    </header>
    ${isOpen && folds
      ? html`<${Whole} conversation=${conversation} entry=${entry} show=${(whole) => html`<${Pictures} of=${whole} /><${Blob} text=${whole.text ?? text} />`} />`
      : html`<div class="talk">${folds && entry.role !== "user" && entry.role !== "assistant" ? oneLine(text) || html`<i class="dim">nothing readable</i>` : text}${entry.chars !== undefined ? "…" : ""}</div>`}
    ${/\[image: /.test(text) && !isOpen && html`<${Whole} conversation=${conversation} entry=${{ ...entry, images: 1 }} show=${(whole) => html`<${Pictures} of=${whole} />`} />`}
  </article>`;
}

/** Shows an entry once all of it is here; most of the time it is already. */
function Whole({ conversation, entry, show }) {
  const isCut = entry.chars !== undefined || entry.images !== undefined;
  const [whole, setWhole] = useState(isCut ? null : entry);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (!isCut) return undefined;
    const stop = new AbortController();
    api.entry(conversation, entry.id, stop.signal).then(setWhole, (error) => {
      if (!stop.signal.aborted) setProblem(error.message);
    });
    return () => stop.abort();
  }, [entry.id]);
  if (problem) return html`<p class="problem">${problem}</p>`;
  return whole ? show(whole) : html`<p class="dim">reading…</p>`;
}

function Pictures({ of }) {
  const shown = (of.pictures ?? []).filter(Boolean);
  // Pictures at other addresses are named and not fetched: this page asks nobody but its gateway.
  return shown.map((picture) => (picture.startsWith("data:")
    ? html`<img class="picture" src=${picture} alt="a picture in the history" loading="lazy" />`
    : html`<p class="dim">a picture at <code>${picture}</code></p>`));
}
