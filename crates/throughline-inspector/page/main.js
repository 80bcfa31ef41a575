// The page: where we are, what is shown there, the theme, the keyboard, the live connection.

import { html, render, useCallback, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import * as api from "./api.js";
import { Backends } from "./backends.js";
import { Conversation } from "./conversation.js";
import { Conversations } from "./conversations.js";
import { keys, listen, step } from "./keys.js";
import { Search } from "./search.js";

const THEME = "throughline.theme";
const themes = ["system", "light", "dark"];

/** Reads the address: which page, of what. */
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  if (parts[0] === "c" && parts[1]) {
    const rest = { page: "conversation", id: parts[1], view: "timeline" };
    if (parts[2] === "seen") return { ...rest, view: "seen", number: Number(parts[3]) || 1 };
    if (parts[2] === "frames") return { ...rest, view: "frames" };
    return parts[2] === "at" ? { ...rest, entry: parts[3] } : rest;
  }
  if (parts[0] === "backends") return { page: "backends" };
  if (parts[0] === "search") return { page: "search", words: new URLSearchParams(query).get("q") ?? "" };
  return { page: "conversations" };
}

function Page() {
  const [at, setAt] = useState(place);
  const [told, setTold] = useState(null);
  const [state, setState] = useState("waiting");
  const [problem, setProblem] = useState(null);
  const [backends, setBackends] = useState(null);
  const [theme, setTheme] = useState(() => localStorage.getItem(THEME) ?? "system");
  const [helping, setHelping] = useState(false);
  const searchField = useRef(null);
  const fail = useCallback((error) => setProblem(error), []);
  const refresh = useCallback(() => api.backends().then(setBackends, fail), []);
  const following = useRef(() => {});
  const start = useCallback(() => {
    following.current();
    setProblem(null);
    refresh();
    following.current = api.follow(setTold, setState);
  }, []);
  useEffect(() => {
    start();
    const moved = () => {
      setProblem(null);
      setAt(place());
      scrollTo(0, 0);
    };
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(THEME, theme);
  }, [theme]);
  const act = (action) => ({
    next: () => step(1),
    previous: () => step(-1),
    open: () => open(document.activeElement?.closest("[data-row]")),
    back: () => (helping ? setHelping(false) : history.back()),
    search: () => searchField.current?.focus(),
    conversations: () => { location.hash = "#/"; },
    backends: () => { location.hash = "#/backends"; },
    theme: () => setTheme((now) => themes[(themes.indexOf(now) + 1) % themes.length]),
    help: () => setHelping((now) => !now),
  })[action]();
  useEffect(() => listen(act), [helping]);
  const find = (event) => {
    event.preventDefault();
    location.hash = `#/search?q=${encodeURIComponent(searchField.current.value)}`;
  };
  const shared = { told, backends, fail };
  const link = (page, href, label) => html`<a href=${href} aria-current=${at.page === page ? "page" : null}>${label}</a>`;
  return html`
    <header class="top">
      <a class="brand" href="#/"><img src="/inspector/icon.svg" alt="" width="22" height="22" />Throughline</a>
      <nav aria-label="pages">${link("conversations", "#/", "Conversations")}${link("backends", "#/backends", "Backends")}</nav>
      <form role="search" onSubmit=${find}><input ref=${searchField} type="search" placeholder="search all tool history  /" aria-label="search all tool history" value=${at.words ?? ""} /></form>
      <span class="live ${state}" role="status" title=${state === "live" ? "changes appear as they happen" : "connecting…"}>${state}</span>
      <button class="quiet" onClick=${() => act("theme")} title="light, dark, or as the system has it">${theme}</button>
      <button class="quiet" onClick=${() => act("help")} aria-label="keys">?</button>
    </header>
    ${problem && (problem.status === 401 ? html`<${Key} done=${start} />` : html`<p class="problem banner" role="alert">${problem.message} <button class="quiet" onClick=${() => setProblem(null)}>dismiss</button></p>`)}
    ${at.page === "conversations" && html`<${Conversations} ...${shared} key=${state === "locked"} />`}
    ${at.page === "conversation" && html`<${Conversation} key=${at.id} ...${at} ...${shared} />`}
    ${at.page === "backends" && html`<${Backends} ...${shared} refresh=${refresh} />`}
    ${at.page === "search" && html`<${Search} key=${at.words} words=${at.words} fail=${fail} />`}
    ${helping && html`<${Help} close=${() => setHelping(false)} />`}`;
}

function open(row) {
  const target = row?.matches("a, button") ? row : row?.querySelector("button.head, header button, a");
  target?.click();
}

/** Asks for a key of the gateway. */
function Key({ done }) {
  const field = useRef(null);
  const present = (event) => {
    event.preventDefault();
    api.rememberKey(field.current.value);
    done();
  };
  return html`<form class="key" onSubmit=${present}><label>This gateway asks for a key.
    <input ref=${field} type="password" autocomplete="off" required /></label><button>Open</button>
    <span class="dim">It is kept until this tab is closed.</span></form>`;
}

function Help({ close }) {
  const box = useRef(null);
  useEffect(() => box.current.showModal(), []);
  return html`<dialog ref=${box} onClose=${close} onClick=${(event) => event.target === box.current && close()}>
    <h2>Keys</h2><table><tbody>${keys.map(([key, , what]) => html`<tr><td><kbd>${key}</kbd></td><td>${what}</td></tr>`)}</tbody></table>
    <form method="dialog"><button autofocus>Close</button></form></dialog>`;
}

render(html`<${Page} />`, document.getElementById("page"));
