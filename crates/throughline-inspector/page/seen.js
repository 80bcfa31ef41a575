// What a backend saw: kept and sent side by side, with the reason for each difference.

import { html, useEffect, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Blob } from "./blob.js";
import { Kinds } from "./chart.js";
import { Lazy } from "./lazy.js";
import { count, gist, several, took } from "./words.js";

const PREVIEW = 500;

const meaning = {
  same: "sent as it was kept",
  changed: "the same in another form, or by another id",
  shortened: "a part was sent; the handle fetches the rest",
  retold: "told as text",
  joined: "in one message with what was said beside it",
  summarised: "went into a summary",
  "left out": "not sent",
  held: "the backend has it already",
  added: "made for the backend",
};

/** The comparison for one exchange. */
export function Seen({ id, number, exchanges, fail }) {
  const [data, setData] = useState(null);
  const [only, setOnly] = useState(false);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    setProblem("");
    api.seen(id, number, PREVIEW, stop.signal).then(setData, (error) => {
      if (stop.signal.aborted) return;
      setData(null);
      if (error.status === 404) setProblem(error.message);
      else fail(error);
    });
    return () => stop.abort();
  }, [id, number, exchanges.length]);
  const to = (other) => `#/c/${encodeURIComponent(id)}/seen/${other}`;
  const pager = html`<div class="pager">
    <a class="button" aria-disabled=${number <= 1} href=${to(Math.max(1, number - 1))} aria-label="the exchange before">←</a>
    <span>exchange <b>${number}</b> of ${exchanges.length}</span>
    <a class="button" aria-disabled=${number >= exchanges.length} href=${to(Math.min(exchanges.length, number + 1))} aria-label="the next exchange">→</a>
  </div>`;
  if (!data) return html`${pager}<p class="dim wait">${problem || "reading…"}</p>`;
  const rows = only ? data.rows.filter(({ mark }) => mark !== "same") : data.rows;
  const row = (each, at) => html`<${Pair} key=${at} row=${each} />`;
  return html`<div class="compare">
    ${pager}
    <${Head} exchange=${data.exchange} />
    <div class="two"><${Kinds} tokens=${data.tokens} /><${Marks} rows=${data.rows} only=${only} setOnly=${setOnly} /></div>
    <div class="rows"><div class="row heads"><b>kept</b><b>sent</b></div>
      <${Lazy} items=${rows} row=${row} size=${40} height=${84} /></div>
    <${Changes} exchange=${data.exchange} />
    <${Body} id=${id} number=${number} fail=${fail} />
  </div>`;
}

function Head({ exchange }) {
  const last = exchange.attempts.at(-1);
  if (!last) return null;
  return html`<p class="summary"><b>${last.backend}</b> (${last.dialect}${last.model ? `, ${last.model}` : ""})
    ${exchange.attempts.length > 1 && html` after ${several(exchange.attempts.length - 1, "attempt")} elsewhere or in another form`}
    <code>${last.report?.summary ?? `strategy=${last.strategy}`}</code>
    <span class="dim">${last.status ?? ""} ${took(last.started, last.ended)}</span>
    ${exchange.attempts.filter(({ failure }) => failure).map(({ backend, failure }) => html`<span class="problem">${backend}: ${failure}</span>`)}</p>`;
}

function Marks({ rows, only, setOnly }) {
  const counts = new Map();
  for (const { mark } of rows) counts.set(mark, (counts.get(mark) ?? 0) + 1);
  return html`<div class="marks">
    ${[...counts].map(([mark, many]) => html`<span title=${meaning[mark]}><span class="chip ${mark.replace(" ", "-")}">${mark}</span> ${count(many)}</span>`)}
    <label><input type="checkbox" checked=${only} onChange=${(event) => setOnly(event.target.checked)} /> only what differs</label>
  </div>`;
}

function Pair({ row }) {
  const { mark, reason, handle, stale, kept, sent } = row;
  const shown = mark === "same" ? kept : sent;
  return html`<div class="row ${mark.replace(" ", "-")}" data-row tabindex="-1">
    <div>${kept ? html`<${Side} of=${kept} tokens=${row.tokens_kept} />` : ""}</div>
    <div>${mark !== "same" && html`<span class="chip ${mark.replace(" ", "-")}" title=${meaning[mark]}>${mark}</span>
        ${reason && html`<span class="why">${reason}</span>`}
        ${stale && html`<span class="chip">stale</span>`}
        ${handle && html`<code class="handle" title="what recall takes">${handle}</code>`}`}
      ${shown && (mark === "same" ? html`<span class="dim">as kept</span>` : html`<${Side} of=${shown} tokens=${row.tokens_sent} />`)}</div>
  </div>`;
}

function Side({ of, tokens }) {
  const label = of.kind === "said" ? of.role : of.kind;
  const text = of.kind === "called" ? `${of.tool} ${gist(of.input)}` : of.text ?? of.type ?? of.item ?? "";
  return html`<div class="side"><span class="dim">${label}${of.outcome && of.outcome !== "ok" ? ` (${of.outcome})` : ""} · ${count(tokens)} tokens</span>
    <div class="excerpt">${text}${of.chars === undefined ? "" : "…"}</div></div>`;
}

function Changes({ exchange }) {
  const changes = exchange.attempts.at(-1)?.report?.changes ?? [];
  if (changes.length === 0) return null;
  return html`<details><summary>${several(changes.length, "change")} in the report</summary>
    <table class="changes"><tbody>${changes.map(({ action, place, reason }) => html`<tr><td>${action}</td><td><code>${place}</code></td><td>${reason}</td></tr>`)}</tbody></table></details>`;
}

function Body({ id, number, fail }) {
  const [body, setBody] = useState(null);
  useEffect(() => setBody(null), [id, number]);
  const read = (event) => {
    if (!event.target.open || body !== null) return;
    api.sent(id, number).then(({ attempts }) => setBody(attempts.map((attempt) => attempt.body).filter(Boolean).at(-1) ?? ""), fail);
  };
  return html`<details onToggle=${read}><summary>the request as it was sent, to the byte</summary>
    ${body === null ? html`<p class="dim">reading…</p>` : html`<${Blob} text=${body} language="json" />`}</details>`;
}
