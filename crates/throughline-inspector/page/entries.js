// The entries of a history as rows: what was said, thought, called and returned.

import { html, useEffect, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Blob } from "./blob.js";
import { Arguments, Result } from "./diff.js";
import { Copy } from "./shared.js";
import { Talk } from "./talk.js";
import { brief, clock, count, ended, gist, moment, oneLine, several } from "./words.js";

/**
 * Puts the calls of a branch together with their results, in the order of the calls.
 *
 * Some clients send their instructions with each request: those that are the same again are counted and not shown.
 */
export function rowsOf(entries) {
  const returned = new Map();
  for (const entry of entries) {
    if (entry.kind === "returned" && entry.call_id && !returned.has(entry.call_id)) returned.set(entry.call_id, entry);
  }
  const paired = new Set();
  const rows = [];
  let instructions = null;
  let handedTo = null;
  for (const entry of entries) {
    if (entry.kind === "called") {
      const result = returned.get(entry.call_id);
      if (result) paired.add(result.id);
      rows.push({ id: entry.id, kind: "pair", call: entry, result });
    } else if (entry.role === "system" && instructions?.entry.text === entry.text && instructions.entry.chars === entry.chars) {
      instructions.stands.push(entry.id);
    } else if (entry.kind === "handed over" && handedTo === `${entry.exchange} ${entry.to.backend}`) {
      // An answer in several rounds notes it in each.
    } else if (entry.kind === "thought" && !entry.text) {
      // Reasoning that nobody can read says nothing; the full record has it.
    } else if (entry.kind !== "returned" || !paired.has(entry.id)) {
      const row = { id: entry.id, kind: entry.kind, entry, stands: [] };
      if (entry.role === "system") instructions = row;
      if (entry.kind === "handed over") handedTo = `${entry.exchange} ${entry.to.backend}`;
      rows.push(row);
    }
  }
  return rows;
}

/** One row of a timeline. `number` is the exchange that it begins, with what that took. */
export function Row({ row, number, conversation, isOpen, toggle }) {
  const more = { row, number, conversation, isOpen, toggle };
  if (row.kind === "pair") return html`<${Pair} ...${more} />`;
  if (row.kind === "switch") return html`<${Switch} ...${more} of=${row} />`;
  if (row.kind === "failure") return html`<${Failed} row=${row} conversation=${conversation} />`;
  if (row.kind === "handed over") {
    const { from, to, reason, at, brief_chars } = row.entry;
    return html`<${Switch} ...${more} of=${{ id: row.id, from: from?.backend, to: to.backend, model: to.model, why: reason, at, brief: brief_chars }} />`;
  }
  return html`<${Said} ...${more} />`;
}

function Switch({ of, row, conversation, isOpen, toggle }) {
  const from = of.from ? html`<b>${of.from}</b><span class="dim" aria-label="to"> → </span>` : "";
  return html`<div class="switch" data-row tabindex="-1" data-id=${of.id}><span class="dot"></span>
    <span class="what">${from}<b>${of.to}</b>${of.model ? html`<span class="dim"> ${of.model}</span>` : ""}${of.why ? html`<span class="why">${of.why}</span>` : ""}
      ${of.brief && html`<button class="quiet" aria-expanded=${isOpen} onClick=${() => toggle(row.id)}>${isOpen ? "hide the brief" : `told by a brief of ${count(of.brief)} characters`}</button>`}</span>
    <time class="dim" title=${moment(of.at)}>${clock(of.at)}</time>
    ${isOpen && of.brief && html`<div class="body"><${Whole} conversation=${conversation} entry=${row.entry} show=${(whole) => html`<${Blob} text=${whole.brief} />`} /></div>`}</div>`;
}

function Failed({ row, conversation }) {
  const words = row.ending === "cancelled" ? "Client disconnected" : row.ending === "broken" ? "The answer broke off" : "The request failed";
  const where = row.failure?.backend ? ` at ${row.failure.backend}${row.failure.model ? ` (${row.failure.model})` : ""}` : "";
  const status = row.failure?.status ?? row.status;
  return html`<div class="failure" role="alert" data-row tabindex="-1" data-id=${row.id}><span class="mark error">✗</span>
    <span class="what"><b>${words}${where}</b>${status ? html` <span class="chip left-out">${status}</span>` : ""}
      ${failuresOf(row.attempts).length === 0 && row.failure && html`<span class="why">${row.failure.message}</span>`}
      <a class="link" href="#/c/${encodeURIComponent(conversation)}/seen/${row.number}">the request</a>
      ${failuresOf(row.attempts).map(([what, many]) => html`<span class="why">${what}${many > 1 ? ` (${count(many)} times)` : ""}</span>`)}</span>
    <time class="dim" title=${moment(row.at)}>${clock(row.at)}</time></div>`;
}

/** What went wrong, each once, with how often. */
function failuresOf(attempts) {
  const times = new Map();
  for (const { backend, failure } of attempts) {
    if (failure) times.set(`${backend}: ${failure}`, (times.get(`${backend}: ${failure}`) ?? 0) + 1);
  }
  return [...times];
}

const Ordinal = ({ of, conversation }) => of && html`<a class="number" href="#/c/${encodeURIComponent(conversation)}/seen/${of.number}" title=${of.title} aria-label=${of.title}>#${of.number}</a>`;

function Pair({ row, number, conversation, isOpen, toggle }) {
  const { call, result } = row;
  // A command that ran is a success of its tool, whatever it came to.
  const code = result?.exit_code;
  const outcome = !result ? "open" : code && result.outcome === "ok" ? "error" : result.outcome;
  const told = code ? `exit code ${code}` : outcome;
  const size = result ? several(result.chars ?? result.text.length, "character") : "no result yet";
  const all = (entry) => () => api.entry(conversation, entry.id);
  return html`<article class="pair ${outcome}" data-row tabindex="-1" data-id=${row.id} aria-label=${`${call.tool}, ${told}`}>
    <div class="line-of-head"><button class="head" aria-expanded=${isOpen} onClick=${() => toggle(row.id)}>
      <span class="mark ${outcome}" title=${told}>${marks[outcome] ?? "•"}</span>
      <b class="tool">${call.tool}</b>
      <code class="gist">${gist(call.input)}</code>
      ${outcome !== "ok" && outcome !== "open" && html`<span class="chip left-out">${told}</span>`}
      <span class="size dim">${size}</span>
      <time class="dim" title=${moment(call.at)}>${clock(call.at)}</time>
    </button><${Ordinal} of=${number} conversation=${conversation} /></div>
    ${isOpen && html`<div class="body">
      <${Whole} conversation=${conversation} entry=${call} show=${(whole) => html`
        <div class="label">arguments <${Copy} text=${whole.input} what="the arguments" /><${Copy} text=${() => linkTo(conversation, call.id)} what="a link to this call" label="link" /><${Copy} text=${call.call_id} what="the id of the call" label="id" /></div>
        <${Arguments} input=${whole.input} />`} />
      ${result && html`<${Whole} conversation=${conversation} entry=${result} show=${(whole) => html`
        <div class="label">result${outcome === "ok" ? "" : html` <span class="chip left-out">${told}</span>`} <${Copy} text=${() => all(result)().then((it) => it.text)} what="the result" /></div>
        <${Pictures} of=${whole} />
        <${Result} text=${whole.text} input=${call.input} />`} />`}
    </div>`}
  </article>`;
}

const linkTo = (conversation, entry) => `${location.origin}/#/c/${encodeURIComponent(conversation)}/at/${entry}`;
const marks = { ok: "✓", error: "✗", denied: "⊘", interrupted: "‖", unknown: "?", open: "…" };

function Said({ row, number, conversation, isOpen, toggle }) {
  const { entry } = row;
  const who = entry.kind === "thought" ? "reasoning" : entry.kind === "returned" ? "result without a call" : entry.role ?? entry.kind;
  const isTalk = entry.role === "user" || entry.role === "assistant";
  // The person's own words first; what an agent put into their mouth is folded away.
  const text = entry.spoken ?? entry.text ?? entry.type ?? entry.item ?? "";
  const folds = entry.chars !== undefined || entry.injected !== undefined || (!isTalk && text !== oneLine(text));
  const isCut = entry.spoken === undefined ? entry.chars !== undefined : entry.spoken_chars !== undefined;
  return html`<article class="said ${entry.role ?? entry.kind}" data-row tabindex="-1" data-id=${row.id} aria-label=${who}>
    <header>
      <b>${who}</b>
      ${entry.origin && html`<span class="dim">${entry.origin.backend}${entry.origin.model ? ` / ${entry.origin.model}` : ""}</span>`}
      ${entry.sealed && html`<span class="chip" title="signed or encrypted: it goes back to its issuer byte for byte, or not at all">sealed</span>`}
      ${entry.covers !== undefined && html`<span class="chip">stands for ${several(entry.covers, "entry", "entries")}</span>`}
      ${row.stands.length > 0 && html`<span class="chip" title="the client sends its instructions with each request">and ${row.stands.length === 1 ? "once" : `${count(row.stands.length)} times`} more</span>`}
      ${folds && html`<button class="quiet" aria-expanded=${isOpen} onClick=${() => toggle(row.id)}>${isOpen ? "less" : `all ${count(entry.chars ?? text.length)} characters`}</button>`}
      <time class="dim" title=${moment(entry.at)}>${clock(entry.at)}</time>
      <${Ordinal} of=${number} conversation=${conversation} />
    </header>
    ${isOpen && folds
      ? html`<${Whole} conversation=${conversation} entry=${entry} show=${(whole) => html`<div class="label"><${Copy} text=${whole.text ?? text} what="the text" /></div><${Pictures} of=${whole} />${isTalk ? html`<${Talk} text=${whole.text ?? text} />` : html`<${Blob} text=${whole.text ?? text} />`}`} />`
      : html`<${Talk} text=${shortened(text, isTalk) + (isCut ? "…" : "")} />`}
    ${!isOpen && entry.injected && html`<div class="injected">${entry.injected.map(({ tag, chars }) => html`<button class="chip" title="what the agent put in; show all of it" onClick=${() => toggle(row.id)}>⚙ ${tag}, ${brief(chars)}</button>`)}</div>`}
    ${text === "" && !entry.injected && html`<i class="dim">nothing readable</i>`}
    ${/\[image: /.test(text) && !isOpen && html`<${Whole} conversation=${conversation} entry=${{ ...entry, images: 1 }} show=${(whole) => html`<${Pictures} of=${whole} />`} />`}
  </article>`;
}

const shortened = (text, isTalk) => (isTalk ? text : oneLine(text));

/** What has come so far of an answer that is under way. */
export function Arriving({ entries }) {
  return html`<div class="arriving" aria-live="polite" aria-busy="true">${entries.map((entry, at) => html`<article key=${at} class="said ${entry.role ?? entry.kind}">
    <header><b>${entry.kind === "called" ? entry.tool : entry.kind === "thought" ? "reasoning" : entry.role ?? entry.kind}</b><span class="state answering">${ended("answering")}</span></header>
    <div class="talk">${entry.kind === "called" ? entry.input : entry.text ?? ""}<span class="caret" aria-hidden="true"></span></div></article>`)}</div>`;
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
  return shown.map((picture) => (picture.startsWith("data:image/")
    ? html`<img class="picture" src=${picture} alt="a picture in the history" loading="lazy" />`
    : html`<p class="dim">a picture at <code>${picture.slice(0, 200)}</code>, which is not fetched from here</p>`));
}
