// Requests to the adapter: the cookie says who, the word of the page says that it is ours.

const KEPT = "streamgraft-csrf";
let csrf = sessionStorage.getItem(KEPT), ahead = 0;

export class Refused extends Error {
  constructor(code, message, reason) { super(message); Object.assign(this, { code, reason }); }
}

async function send(method, path, { body, headers = {}, text = false } = {}) {
  const sent = { ...headers };
  if (csrf && !sent["X-Streamgraft-Ticket"] && !sent.Authorization) sent["X-Streamgraft-Csrf"] = csrf;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  const options = { method, headers: sent, credentials: "same-origin", cache: "no-store" };
  const answer = await fetch(path, body === undefined ? options : { ...options, body: JSON.stringify(body) });
  ahead = Date.parse(answer.headers.get("Date")) - Date.now();
  if (!answer.ok) {
    const status = await answer.json().catch(() => ({}));
    throw new Refused(answer.status, status.message || answer.statusText, status.reason);
  }
  return text ? answer.text() : answer.json();
}

async function signIn(headers) {
  const session = await send("POST", "api/session", { headers });
  csrf = session.csrf;
  sessionStorage.setItem(KEPT, csrf);
  return session.user;
}

export const withTicket = (ticket) => signIn({ "X-Streamgraft-Ticket": ticket });
export const withToken = (token) => signIn({ Authorization: `Bearer ${token}` });
export const signedIn = () => csrf !== null;

function forget() {
  csrf = null;
  sessionStorage.removeItem(KEPT);
}

// Forget a sign-in that is over; return why it is: another tab may have signed the browser in anew.
export function dropped(refusal) {
  forget();
  return refusal.reason === "SignInReplaced" ? refusal.message : "You were signed out.";
}

// Sign out, whatever the adapter says to it; return what there is to know of it.
export async function signOut() {
  const refusal = await send("DELETE", "api/session").then(() => null, (error) => error);
  if (refusal?.code === 401) return dropped(refusal);
  forget();
  return "";
}

// Unix time by the adapter's clock, as its samples have it: that of the browser may be wrong.
export const now = () => (Date.now() + ahead) / 1000;

// Encoded, so that a name that is none leads to no other place.
const within = (space, kind, name) => `namespaces/${encodeURIComponent(space)}/${kind}/${encodeURIComponent(name)}`;
const region = (space, name) => `/api/v1/${within(space, "regions", name)}`;
const job = (space, name) => `api/${within(space, "jobs", name)}`;

export const jobs = (space) => send("GET", `api/jobs?namespace=${encodeURIComponent(space)}`);
export const readJob = (space, name) => send("GET", job(space, name));
export const cancelJob = (space, name) => send("DELETE", job(space, name));
export const takeSavepoint = (space, name, as) => send("POST", `${job(space, name)}/savepoints`, { body: { name: as } });
export const readRegion = (space, name) => send("GET", region(space, name));
export const setWidth = (space, name, width) => send("PUT", `${region(space, name)}/scale`, { body: { width } });
export const podLog = (space, pod) => send("GET", `api/${within(space, "pods", pod)}/log?tail=300`, { text: true });
export const history = async (space, name) => (await send("GET", `${region(space, name)}/history?limit=500`)).items;
export const replay = (space, name, target) => send("GET", `${region(space, name)}/replay?targetUtilization=${target}`);
