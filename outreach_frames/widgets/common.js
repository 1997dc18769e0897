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
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
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

/** Make an input for a whole number. Scrolling over it scrolls the page and changes no number. */
function numberInput(attributes) {
  const input = h("input", { type: "number", step: "1", ...attributes });
  input.addEventListener("wheel", () => input.blur());
  return input;
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

/** Call a function for each of the kernel's messages of one kind, until the signal aborts. */
function hear(model, kind, signal, update) {
  const listener = (message) => {
    if (message && message.kind === kind) update(message);
  };
  model.on("msg:custom", listener);
  signal.addEventListener("abort", () => model.off("msg:custom", listener));
}

/** Change a trait when the kernel says that Python has something new: see `seen` in Python. */
function tellHost(model, signal) {
  hear(model, "changed", signal, () => {
    model.set("seen", model.get("seen") + 1);
    model.save_changes();
  });
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
  tellHost(model, signal);
  hear(model, "notices", signal, ({ value }) => area.replaceChildren(...value.map(noticeOf)));
  return area;
}

/** Send the kernel a message; where it was restarted nobody listens, and the page says so. */
function post(model, message) {
  try {
    model.send(message);
  } catch {
    const text = "Nothing was done: the kernel behind this widget was restarted or has ended. Run the cell again.";
    noticeAreas.get(model)?.replaceChildren(noticeOf({ kind: "error", text, details: [] }));
  }
}

/** Return the area that says what is under way, with a progress bar and buttons to end it. */
function busyArea(model, signal, { progress = null, buttons = [["Cancel", "cancel"]] } = {}) {
  const words = h("span", { class: "outreach-busy-words" });
  const bar = h("progress", { "aria-label": "Progress" });
  const area = h(
    "div",
    { class: "outreach-busy", role: "status" },
    bar,
    words,
    buttons.map(([label, action]) =>
      h("button", { type: "button", onclick: () => post(model, { action }) }, label),
    ),
  );
  let status = "";
  const update = () => {
    area.hidden = !model.get("busy");
    const [done, total] = (progress && model.get(progress)) || [0, 0];
    if (total) {
      bar.max = total;
      bar.value = done;
    } else bar.removeAttribute("value");
    const counted = total ? `${done.toLocaleString("en")} of ${total.toLocaleString("en")}` : "";
    words.textContent = [model.get("busy"), counted, status].filter(Boolean).join(" · ");
  };
  follow(model, ["busy", ...(progress ? [progress] : [])], signal, update);
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

/** Return the Python code that does the same as the widget, with a button that copies it. */
function codeArea(model, signal, trait = "code") {
  const code = h("code", {});
  const copy = h("button", { type: "button" }, "Copy code");
  copy.addEventListener("click", async () => {
    await copyText(model.get(trait));
    copy.textContent = "Copied";
    setTimeout(() => (copy.textContent = "Copy code"), 1500);
  });
  follow(model, [trait], signal, () => (code.textContent = model.get(trait)));
  return h(
    "details",
    { class: "outreach-code", open: true },
    h("summary", {}, "Code"),
    h("pre", { tabindex: "0" }, code),
    copy,
  );
}

/** Return a table; `columns` are texts, `rows` lists of texts or elements, or null where missing. */
function tableOf(columns, rows, label) {
  return h(
    "div",
    { class: "outreach-table", tabindex: "0", role: "region", "aria-label": label },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, columns.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell ?? ""))))),
    ),
  );
}
