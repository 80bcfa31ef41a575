// What a backend saw: kept and sent side by side, with the reason for each difference.

import { html, useEffect, useMemo, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Blob } from "./blob.js";
import { Kinds } from "./chart.js";
import { Lazy } from "./lazy.js";
import { Copy, Reading } from "./shared.js";
import { count, gist, money, several, tokens, took } from "./words.js";

const PREVIEW = 2000;

/** A stretch of so many entries that were sent as they were kept is folded into one row. */
const STRETCH = 4;

const meaning = {
  same: "sent as it was kept",
  changed: "the same in another form, or by another id",
  shortened: "a part was sent; the handle fetches the rest",
  retold: "told as text",
  joined: "in one message with what was said beside it",
  summarised: "went into a summary",
  "left out": "not sent",
  held: "the backend has it already",
  internal: "a note in the record, for no backend",
  added: "made for the backend, or came with this request alone",
  unknown: "nothing was noted about it",
};

/** What stands on the left where no entry of the record does. */
const origins = { request: "came with this request", added: "added for this backend", above: "belongs to an entry above", unknown: "" };

const strategies = { native: "tool history as tool items", "text-embed": "tool history told as text", brief: "told by a brief", summary: "asked for a summary", retell: "asked to retell the past" };

/** The comparison for one exchange. */
export function Seen({ id, number, exchanges, fail }) {
  const [data, setData] = useState(null);
  const [only, setOnly] = useState("");
  const [unfolded, setUnfolded] = useState(() => new Set());
  const [problem, setProblem] = useState("");
  const isOver = exchanges[number - 1]?.ended;
  useEffect(() => {
    const stop = new AbortController();
    setProblem("");
    setUnfolded(new Set());
    api.seen(id, number, PREVIEW, stop.signal).then(setData, (error) => {
      if (stop.signal.aborted) return;
      setData(null);
      if (error.status === 404) setProblem(error.message);
      else fail(error);
    });
    return () => stop.abort();
  }, [id, number, isOver]);
  const rows = useMemo(() => (data ? folded(data.rows, only, unfolded) : []), [data, only, unfolded]);
  const to = (other) => `#/c/${encodeURIComponent(id)}/seen/${other}`;
  const pager = html`<div class="pager">
    <a class="button" aria-disabled=${number <= 1} href=${to(Math.max(1, number - 1))} aria-label="the exchange before">←</a>
    <span>exchange <b>${number}</b> of ${count(exchanges.length)}</span>
    <a class="button" aria-disabled=${number >= exchanges.length} href=${to(Math.min(exchanges.length, number + 1))} aria-label="the next exchange">→</a>
  </div>`;
  if (!data) return problem ? html`${pager}<p class="dim wait">${exchanges.length === 0 ? "This conversation was imported: no backend was sent anything." : `${problem[0].toUpperCase()}${problem.slice(1)}.`}</p>` : html`${pager}<${Reading} />`;
  const unfold = (at) => setUnfolded((before) => new Set(before).add(at));
  const row = (each, at) => (each.stretch
    ? html`<button key=${`fold ${each.at}`} class="stretch" data-row onClick=${() => unfold(each.at)}>${several(each.stretch, "entry", "entries")} sent as kept · ${count(each.tokens)} tokens</button>`
    : html`<${Pair} key=${at} row=${each} />`);
  return html`<div class="compare">
    <div class="over">${pager}<${Head} exchange=${data.exchange} /></div>
    <${Attempts} exchange=${data.exchange} />
    <div class="two"><${Kinds} tokens=${data.tokens} /><${Marks} rows=${data.rows} only=${only} setOnly=${setOnly} /></div>
    ${data.known === false && html`<p class="dim">No provenance was kept with this request (older releases kept none): what was sent is shown, and nothing is said about where it comes from.</p>`}
    <div class="rows"><div class="row heads"><b>kept</b><b>sent</b></div>
      ${rows.length === 0 ? html`<p class="dim wait">Nothing of that kind.</p>` : html`<${Lazy} items=${rows} row=${row} size=${40} height=${84} />`}</div>
    <${Changes} exchange=${data.exchange} />
    <${Body} id=${id} number=${number} fail=${fail} />
  </div>`;
}

/** The rows to show: those of one mark, those that differ, or all with long stretches of the same folded. */
function folded(rows, only, unfolded) {
  if (only) return rows.filter(({ mark }) => (only === "differs" ? mark !== "same" : mark === only));
  const shown = [];
  for (let at = 0; at < rows.length;) {
    let end = at;
    while (end < rows.length && rows[end].mark === "same") end += 1;
    if (end - at >= STRETCH && !unfolded.has(at)) {
      shown.push({ stretch: end - at, at, tokens: rows.slice(at, end).reduce((sum, row) => sum + row.tokens_kept, 0) });
    } else {
      shown.push(...rows.slice(at, Math.max(end, at + 1)));
    }
    at = Math.max(end, at + 1);
  }
  return shown;
}

function Head({ exchange }) {
  const last = exchange.attempts.at(-1);
  if (!last) return null;
  const plan = last.plan;
  return html`<p class="summary"><b>${last.backend}</b><span class="dim">${last.dialect}${last.model ? `, ${last.model}` : ""}</span>
    ${last.strategy && html`<span class="chip" title=${`strategy: ${last.strategy}`}>${strategies[last.strategy] ?? last.strategy}</span>`}
    ${plan && plan.tokens_after < plan.tokens_before && html`<span class="chip shortened">cut from ${count(plan.tokens_before)} to ${count(plan.tokens_after)} tokens</span>`}
    <span class="dim">${[tokens(exchange.usage), money(exchange.cost), last.status, took(last.started, last.ended)].filter(Boolean).join(" · ")}</span></p>`;
}

/** How the answer came about, where it took more than one attempt. */
function Attempts({ exchange }) {
  if (exchange.attempts.length < 2) return null;
  return html`<ol class="attempts">${exchange.attempts.map(({ backend, model, strategy, status, failure, started, ended }) => html`<li>
    <b>${backend}</b> <span class="dim">${model ?? ""} ${strategies[strategy] ?? strategy ?? ""}</span>
    ${failure ? html` <span class="problem">${status ?? ""} ${failure}</span>` : html` <span>${status ?? ""}</span>`} <span class="dim">${took(started, ended)}</span></li>`)}</ol>`;
}

function Marks({ rows, only, setOnly }) {
  const counts = new Map();
  for (const { mark } of rows) counts.set(mark, (counts.get(mark) ?? 0) + 1);
  const differ = rows.length - (counts.get("same") ?? 0);
  const choose = (mark) => setOnly(only === mark ? "" : mark);
  return html`<div class="marks" role="group" aria-label="show only">
    ${[...counts].map(([mark, many]) => html`<button class="chip ${mark.replace(" ", "-")}" aria-pressed=${only === mark} title=${meaning[mark]} onClick=${() => choose(mark)}>${mark} ${count(many)}</button>`)}
    <label><input type="checkbox" checked=${only === "differs"} disabled=${differ === 0} onChange=${() => choose("differs")} /> only what differs</label>
    ${differ === 0 && html`<p class="dim">Everything was sent as it was kept.</p>`}
  </div>`;
}

function Pair({ row }) {
  const [whole, setWhole] = useState(false);
  const { mark, reason, handle, stale, kept, sent } = row;
  const isLong = [kept, sent].some((side) => (side?.text ?? side?.input ?? "").length > 350);
  return html`<div class="row ${mark.replace(" ", "-")} ${whole ? "whole" : ""}" data-row tabindex="-1">
    <div>${kept ? html`<${Side} of=${kept} tokens=${row.tokens_kept} />` : html`<span class="dim">${origins[row.from] ?? ""}</span>`}
      ${isLong && html`<button class="quiet" aria-expanded=${whole} onClick=${() => setWhole(!whole)}>${whole ? "less" : "more"}</button>`}</div>
    <div>${mark === "same" ? html`<span class="dim">as kept</span>` : html`<p class="why"><span class="chip ${mark.replace(" ", "-")}" title=${meaning[mark]}>${mark}</span>
        ${reason && html`<span>${reason}</span>`}
        ${stale && html`<span class="chip" title="the file was written since">stale</span>`}
        ${handle && html`<span class="dim">recall <code class="handle">${handle}</code></span>`}</p>`}
      ${mark !== "same" && sent && html`<${Side} of=${sent} tokens=${row.tokens_sent} />`}</div>
  </div>`;
}

const labels = { called: "call", returned: "result", thought: "reasoning" };

function Side({ of, tokens: size }) {
  const label = of.kind === "said" ? of.role : labels[of.kind] ?? of.kind;
  const text = of.kind === "called" ? `${of.tool} ${gist(of.input)}` : of.kind === "handed over" ? `${of.from?.backend ?? ""} → ${of.to.backend}: ${of.reason}` : of.text ?? of.type ?? of.item ?? "";
  return html`<div class="side"><span class="dim">${label}${of.outcome && of.outcome !== "ok" ? ` (${of.outcome})` : ""} · ${count(size)} tokens</span>
    <div class="excerpt">${text}${of.chars === undefined ? "" : "…"}</div></div>`;
}

function Changes({ exchange }) {
  const changes = exchange.attempts.at(-1)?.report?.changes ?? [];
  if (changes.length === 0) return null;
  return html`<details><summary>${several(changes.length, "change")} in the report</summary>
    <table class="changes"><thead><tr><th>what</th><th>where in the client's request</th><th>why</th></tr></thead>
      <tbody>${changes.map(({ action, place, reason }) => html`<tr><td>${action}</td><td><code>${place}</code></td><td>${reason}</td></tr>`)}</tbody></table></details>`;
}

function Body({ id, number, fail }) {
  const [body, setBody] = useState(null);
  useEffect(() => setBody(null), [id, number]);
  const read = (event) => {
    if (!event.target.open || body !== null) return;
    api.sent(id, number).then(({ attempts }) => setBody(attempts.map((attempt) => attempt.body).filter(Boolean).at(-1) ?? ""), fail);
  };
  return html`<details key=${number} onToggle=${read}><summary>the request as it was sent, to the byte</summary>
    ${body === null ? html`<${Reading} />` : html`<div class="label">${several(bytesOf(body), "byte")} <${Copy} text=${body} what="the request" /></div><${Blob} text=${body} language="json" />`}</details>`;
}

const bytesOf = (text) => new TextEncoder().encode(text).length;
