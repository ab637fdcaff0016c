// Small helpers: elements, numbers, and what is said to the user.

const SVG = "http://www.w3.org/2000/svg";

const present = (children) => children.flat().filter((child) => child !== null && child !== undefined && child !== false);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "vars") for (const [key, set] of Object.entries(value)) element.style.setProperty(key, set);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...present(children));
  return element;
}

export const h = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Exchange what is shown; the focus stays where it was.
export function show(place, ...children) {
  const active = document.activeElement;
  const key = active && place.contains(active) ? active.getAttribute("data-key") : null;
  place.replaceChildren(...present(children));
  if (key) place.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

export const whole = (value) => (value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en-US"));
export const percent = (value) => (value === null || value === undefined ? "–" : `${Math.round(value * 100)} %`);
export const seconds = (value) => (value < 10 ? `${value.toFixed(2)} s` : `${value.toFixed(1)} s`);
export const clock = (time) => new Date(time).toLocaleTimeString("en-GB");

export function say(text, bad = false) {
  const note = h("div", { class: bad ? "bad" : "", role: bad ? "alert" : null }, text);
  document.getElementById("said").append(note);
  setTimeout(() => note.remove(), bad ? 12000 : 5000);
}

// Ask before something that can't be taken back.
export function confirmed(question, detail, verb) {
  return new Promise((resolve) => {
    const closed = () => { resolve(dialog.returnValue === "yes"); dialog.remove(); };
    const dialog = h("dialog", { "aria-labelledby": "ask", onclose: closed },
      h("form", { method: "dialog" }, h("h2", { id: "ask" }, question), h("p", { class: "soft" }, detail),
        h("menu", {}, h("button", { value: "no", autofocus: true }, "Keep"), h("button", { value: "yes", class: "danger" }, verb))));
    document.body.append(dialog);
    dialog.showModal();
  });
}
