// Code shared by all widgets, which is prepended to each widget's file to form one module.
// Texts of the service are inserted as text, never as markup.

/** Make an element; `on...` attributes become listeners, booleans become properties. */
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value === "boolean") element[name] = value;
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  setChildren(element, children);
  return element;
}

/** Replace an element's children; skip null. */
function setChildren(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
}

// Ids need a random prefix, because each widget has its own copy of this module.
const idPrefix = `outreach-${Math.random().toString(36).slice(2)}`;
let lastId = 0;

/** Return an id that is unique in the page. */
function newId() {
  return `${idPrefix}-${++lastId}`;
}

/** Return whether an element has the focus, even in a shadow tree. */
function hasFocus(element) {
  return element.getRootNode().activeElement === element;
}

/** Format a number. */
function number(value) {
  return value.toLocaleString("en");
}

function button(label, onclick, options = {}) {
  return h("button", { type: "button", onclick, ...options }, label);
}

/** Make a button that acts once per number from `current`; a second click does nothing. */
function onceButton(current, act, options = {}) {
  let used = null;
  const element = button(
    "",
    () => {
      if (used === current() || element.disabled) return;
      used = current();
      element.disabled = true;
      act(used);
    },
    options,
  );
  return { element, isUsed: () => used === current(), reset: () => (used = null) };
}

function muted(text = "", options = {}) {
  return h("p", { class: "outreach-muted", ...options }, text);
}

function tools(...children) {
  return h("div", { class: "outreach-tools" }, children);
}

function searchInput(placeholder, oninput, options = {}) {
  return h("input", { type: "search", placeholder, oninput, ...options });
}

/** Make an input for a whole number that ignores the mouse wheel. */
function numberInput(attributes) {
  const input = h("input", { type: "number", step: "1", ...attributes });
  input.addEventListener("wheel", () => input.blur());
  return input;
}

/** Fill a list with texts or elements; hide it if empty. */
function fillList(list, items) {
  setChildren(list, items.map((item) => h("li", {}, item)));
  list.hidden = items.length === 0;
}

/** Show an input's problem; "" hides the problem. */
function showProblem(input, problem, words) {
  problem.textContent = words;
  problem.hidden = !words;
  input.setAttribute("aria-invalid", String(Boolean(words)));
}

/** Make an element the root of a widget and suppress JupyterLab's shortcuts in it. */
function makeRoot(element, label) {
  // The second class selects the widget's own styles.
  element.classList.add("outreach", `outreach-${label.toLowerCase().replaceAll(" ", "-")}`);
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", label);
  // JupyterLab searches upwards from the focused element, so set the attribute there too.
  const suppress = (one) => one.setAttribute("data-lm-suppress-shortcuts", "true");
  suppress(element);
  element.addEventListener("focusin", (event) => suppress(event.target));
}

/** Call a function now and after each change of a trait, until the signal aborts. */
function onTraits(model, traits, signal, update) {
  for (const trait of traits) model.on(`change:${trait}`, update);
  signal.addEventListener("abort", () => {
    for (const trait of traits) model.off(`change:${trait}`, update);
  });
  update();
}

/** Change a trait in the page and the kernel. */
function setTrait(model, name, value) {
  model.set(name, value);
  model.save_changes();
}

/** Call a function for each kernel message of one kind, until the signal aborts. */
function onMessage(model, kind, signal, update) {
  const listener = (message) => {
    if (message && message.kind === kind) update(message);
  };
  model.on("msg:custom", listener);
  signal.addEventListener("abort", () => model.off("msg:custom", listener));
}

const noticeAreas = new WeakMap();

/** Move an area next to the last pressed button, into the button's section. */
function followButtons(root, area, signal) {
  const follow = (event) => {
    if (event.type === "keydown" && event.key !== "Enter") return;
    let place = event.target.closest?.(".outreach-tools :is(button, input)");
    while (place && !place.parentElement.matches("section, .outreach")) place = place.parentElement;
    if (place && place !== area && !area.contains(place)) place.after(area);
  };
  for (const type of ["click", "keydown"]) root.addEventListener(type, follow, { capture: true, signal });
}

/** Return the element of a notice. */
function noticeElement({ kind, text, details }) {
  return h(
    "div",
    { class: `outreach-notice outreach-${kind}`, role: kind === "error" ? "alert" : "status" },
    h("p", {}, text),
    details.length ? h("ul", {}, details.map((detail) => h("li", {}, detail))) : null,
  );
}

/** Return the area for the widget's messages. */
function noticeArea(model, signal) {
  const area = h("div", { class: "outreach-notices", "aria-live": "polite" });
  noticeAreas.set(model, area);
  onMessage(model, "notices", signal, ({ value }) => setChildren(area, value.map(noticeElement)));
  // Tells reactive hosts about a new result: see `seen` in Python.
  onMessage(model, "changed", signal, () => setTrait(model, "seen", model.get("seen") + 1));
  return area;
}

/** Send the kernel a message; show an error if the kernel was restarted. */
function post(model, message) {
  try {
    model.send(message);
  } catch {
    const text = "Nothing was done: this widget's kernel was restarted or has ended. Run the cell again.";
    setChildren(noticeAreas.get(model), noticeElement({ kind: "error", text, details: [] }));
  }
}

/** Return the area for the running work, with its progress and cancel buttons. */
function busyArea(model, signal, buttons = button("Cancel", () => post(model, { action: "cancel" }))) {
  const words = h("span", {});
  const bar = h("progress", { "aria-label": "Progress" });
  const area = h("div", { class: "outreach-tools outreach-busy", role: "status" }, bar, words, buttons);
  let status = "";
  const update = () => {
    area.hidden = !model.get("busy");
    const [done, total] = model.get("progress");
    if (total) {
      bar.max = total;
      bar.value = done;
    } else bar.removeAttribute("value");
    const counted = total ? `${number(done)} of ${number(total)}` : "";
    words.textContent = [model.get("busy"), counted, status].filter(Boolean).join(" · ");
  };
  onTraits(model, ["busy", "progress"], signal, update);
  onMessage(model, "status", signal, ({ value }) => {
    status = value;
    update();
  });
  return area;
}

/** Copy text to the clipboard, even where the Clipboard API is not allowed. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = h("textarea", { class: "outreach-offscreen" });
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

/** Return the area for the equivalent Python code, with a copy button; hidden without code. */
function codeArea() {
  const code = h("code", {});
  const copy = button("Copy code", async () => {
    await copyText(code.textContent);
    copy.textContent = "Copied";
    setTimeout(() => (copy.textContent = "Copy code"), 1500);
  });
  const element = h(
    "details",
    { class: "outreach-code", open: true },
    h("summary", {}, "Code"),
    h("pre", { tabindex: "0" }, code),
    copy,
  );
  const show = (text) => {
    code.textContent = text;
    element.hidden = !text;
  };
  return { element, show };
}

/** Return the area for the code in the `code` trait. */
function followedCode(model, signal) {
  const { element, show } = codeArea();
  onTraits(model, ["code"], signal, () => show(model.get("code")));
  return element;
}

/** Return a scrolling region for a table. */
function region(label, name = "", ...children) {
  const attributes = { class: `outreach-table ${name}`, tabindex: "0", role: "region", "aria-label": label };
  return h("div", attributes, children);
}

/** Return a table of texts; null is an empty cell. */
function tableOf(columns, rows) {
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell ?? ""))))),
  );
}
