// What all widgets share. It is put in front of each widget's own file, as one module.
// Texts go into the page as text only: what the service says is never markup.

/** Make an element: `on...` are listeners, true/false attributes are switches, the rest is text. */
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value === "boolean") element[name] = value;
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  put(element, children);
  return element;
}

/** Give an element these children instead of its own; null is left out. */
function put(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
}

// Each widget has a copy of this module of its own.
const idPrefix = `outreach-${Math.random().toString(36).slice(2)}`;
let lastId = 0;

/** Return an id that no other element of the page has. */
function newId() {
  return `${idPrefix}-${++lastId}`;
}

/** Return whether an element has the focus, also where the host shows widgets in a shadow tree. */
function hasFocus(element) {
  return element.getRootNode().activeElement === element;
}

/** Return text for a number. */
function number(value) {
  return value.toLocaleString("en");
}

function button(label, onclick, options = {}) {
  return h("button", { type: "button", onclick, ...options }, label);
}

/**
 * Make a button that acts once for each number that is current when it is clicked: a second click
 * does nothing, even before the kernel says that it acted.
 */
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

/** Make an input for a whole number. Scrolling over it scrolls the page and changes no number. */
function numberInput(attributes) {
  const input = h("input", { type: "number", step: "1", ...attributes });
  input.addEventListener("wheel", () => input.blur());
  return input;
}

/** Fill a list with texts or elements; an empty one is hidden. */
function fill(list, items) {
  put(list, items.map((item) => h("li", {}, item)));
  list.hidden = items.length === 0;
}

/** Show what is wrong with an input; an empty text says that nothing is. */
function showProblem(input, problem, words) {
  problem.textContent = words;
  problem.hidden = !words;
  input.setAttribute("aria-invalid", String(Boolean(words)));
}

/** Make an element the root of a widget; what is typed in it triggers no shortcut of Lab. */
function makeRoot(element, label) {
  // A widget's own styles go by the second class.
  element.classList.add("outreach", `outreach-${label.toLowerCase().replaceAll(" ", "-")}`);
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", label);
  // Lab looks for this from the focused element upwards, and finds a shortcut's element first.
  const suppress = (one) => one.setAttribute("data-lm-suppress-shortcuts", "true");
  suppress(element);
  element.addEventListener("focusin", (event) => suppress(event.target));
}

/** Call a function now and whenever one of the traits changes, until the signal aborts. */
function follow(model, traits, signal, update) {
  for (const trait of traits) model.on(`change:${trait}`, update);
  signal.addEventListener("abort", () => {
    for (const trait of traits) model.off(`change:${trait}`, update);
  });
  update();
}

/** Change a trait, in the kernel too. */
function setTrait(model, name, value) {
  model.set(name, value);
  model.save_changes();
}

/** Call a function for each of the kernel's messages of one kind, until the signal aborts. */
function hear(model, kind, signal, update) {
  const listener = (message) => {
    if (message && message.kind === kind) update(message);
  };
  model.on("msg:custom", listener);
  signal.addEventListener("abort", () => model.off("msg:custom", listener));
}

const noticeAreas = new WeakMap();

/** Return a message as an element. */
function noticeOf({ kind, text, details }) {
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
  hear(model, "notices", signal, ({ value }) => put(area, value.map(noticeOf)));
  // Python has something new: see `seen` there.
  hear(model, "changed", signal, () => setTrait(model, "seen", model.get("seen") + 1));
  return area;
}

/** Send the kernel a message; where it was restarted nobody listens, and the page says so. */
function post(model, message) {
  try {
    model.send(message);
  } catch {
    const text = "Nothing was done: the kernel behind this widget was restarted or has ended. Run the cell again.";
    put(noticeAreas.get(model), noticeOf({ kind: "error", text, details: [] }));
  }
}

/** Return the area that says what is under way, with its progress and buttons to end it. */
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
  follow(model, ["busy", "progress"], signal, update);
  hear(model, "status", signal, ({ value }) => {
    status = value;
    update();
  });
  return area;
}

/** Copy text, also where the page may not use the clipboard's own interface. */
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

/** Return the area for Python code that does the same, with a button that copies it. */
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
  return { element, show: (text) => (code.textContent = text) };
}

/** Return the area for the code of a trait. */
function followedCode(model, signal) {
  const { element, show } = codeArea();
  follow(model, ["code"], signal, () => show(model.get("code")));
  return element;
}

/** Return a region for a table; it scrolls. */
function region(label, name = "", ...children) {
  const attributes = { class: `outreach-table ${name}`, tabindex: "0", role: "region", "aria-label": label };
  return h("div", attributes, children);
}

/** Return a table; `columns` are texts, `rows` lists of texts, or null where missing. */
function tableOf(columns, rows) {
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell ?? ""))))),
  );
}
