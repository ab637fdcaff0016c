// Sign in, go to a page by the address's hash, and keep it fresh while somebody looks.

import * as api from "./api.js";
import { h, show, clock } from "./dom.js";
import { JobPage, phase } from "./job.js";

const REFRESH = 2000;
const NAME = "[a-z0-9](?:[a-z0-9.\\-]*[a-z0-9])?";
const PLACE = new RegExp(`^#/(?<space>${NAME})(?:/(?<job>${NAME}))?/?$`);
const [main, crumbs, live, heard] = ["main", "crumbs", "live", "heard"].map((id) => document.getElementById(id));
let page = null, timer = 0;

class JobsPage {
  constructor(space) {
    this.space = space;
    this.rows = h("tbody");
    this.nothing = h("p", { class: "soft", hidden: true }, "No job runs here. Submit one: streamgraft submit app.py");
    const heads = ["Job", "Namespace", "Phase", "Ready", ""].map((text) => h("th", { scope: "col" }, text));
    const field = h("input", { id: "space", value: space, placeholder: "all namespaces", "aria-label": "Namespace", pattern: NAME, title: "Name of a namespace", autocomplete: "off" });
    const go = (event) => { event.preventDefault(); location.hash = field.value ? `#/${field.value}` : "#/"; };
    this.element = h("div", {}, h("div", { class: "head" }, h("div", { class: "grow" }, h("h1", {}, "Jobs")), h("form", { class: "set", onsubmit: go }, field, h("button", { type: "submit" }, "Show"))),
      h("section", { class: "card" }, h("table", {}, h("thead", {}, h("tr", {}, heads)), this.rows), this.nothing));
  }

  async refresh() {
    const jobs = await api.jobs(this.space);
    this.nothing.hidden = jobs.length > 0;
    show(this.rows, jobs.map((job) => h("tr", {},
      h("td", {}, h("a", { href: `#/${job.namespace}/${job.name}`, "data-key": `${job.namespace}/${job.name}` }, job.name)), h("td", {}, job.namespace),
      h("td", {}, phase(job.phase)), h("td", {}, `${job.ready} of ${job.pes}`), h("td", { class: "soft" }, job.message))));
  }
}

class DoorPage {
  constructor(words) {
    const token = h("input", { type: "password", id: "token", "aria-label": "Bearer token", placeholder: "Bearer token", autocomplete: "off" });
    const enter = async (event) => {
      event.preventDefault();
      try { await api.withToken(token.value.trim()); go(); } catch (error) { this.words.textContent = error.message; }
    };
    this.words = h("p", { role: "alert" }, words);
    this.element = h("div", { class: "door card" }, h("h1", {}, "Sign in"),
      h("p", { class: "soft" }, "Run ", h("span", { class: "mono" }, "streamgraft console"), " and open the link that it prints, or paste a bearer token of the cluster. What you see and do here is what its owner may."),
      this.words, h("form", { onsubmit: enter }, token, h("button", { type: "submit", class: "main" }, "Sign in")));
  }

  async refresh() {}
}

// The page of the address: all jobs, if it names no namespace or job.
function route() {
  const { space = "", job = "" } = location.hash.match(PLACE)?.groups ?? {};
  crumbs.replaceChildren(...(job ? [h("a", { href: `#/${space}` }, space), " / ", h("b", {}, job)] : []));
  document.title = job ? `${job} · Streamgraft` : "Streamgraft";
  return job ? new JobPage(space, job) : new JobsPage(space);
}

async function go(words = "") {
  clearTimeout(timer);
  const inside = api.signedIn() && !words;
  page = inside ? route() : new DoorPage(words);
  document.getElementById("leave").hidden = !inside;
  live.textContent = heard.textContent = "";
  live.classList.remove("stale");
  main.replaceChildren(page.element);
  if (inside) await keepFresh(page);
}

// A link signs in, also where the page is open already.
async function arrive() {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (!ticket) return go();
  history.replaceState(null, "", "#/");
  const refusal = await api.withTicket(ticket).then(() => null, (error) => error);
  return go(refusal?.message);
}

async function keepFresh(shown) {
  if (shown !== page) return;
  try {
    if (!document.hidden) {
      await shown.refresh();
      if (shown !== page) return;
      tell(`Live, ${clock(Date.now())}`, false);
    }
  } catch (error) {
    if (shown !== page) return;
    if (error.code === 401) return go(api.dropped(error));
    tell(error.code === 404 ? "It is gone" : error.message, true);
  }
  if (shown === page) timer = setTimeout(() => keepFresh(shown), REFRESH);
}

// The clock is only seen: screen readers would say it every two seconds. They hear when the page
// stops being live, and when it is again.
function tell(words, stale) {
  live.textContent = words;
  if (live.classList.contains("stale") === stale) return;
  live.classList.toggle("stale", stale);
  heard.textContent = stale ? `Not live: ${words}` : "Live again";
}

function dress() {
  const kept = localStorage.getItem("streamgraft-theme");
  document.documentElement.dataset.theme = kept ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

document.getElementById("theme").addEventListener("click", () => {
  localStorage.setItem("streamgraft-theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  dress();
});
document.getElementById("leave").addEventListener("click", async () => go(await api.signOut()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", dress);
// The address says which page this is: a jump to the content must not change it.
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", arrive);
dress();
arrive();
