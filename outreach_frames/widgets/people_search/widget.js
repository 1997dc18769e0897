const MAX_OPTIONS = 50;

/** Normalise text for comparison with typed text: to lowercase, with spaces for underscores. */
const folded = (text) => text.toLowerCase().replaceAll("_", " ");

/** Trim spaces and trailing commas. */
const trimmed = (text) => text.trim().replace(/[\s,]+$/, "");

/** Split pasted text into values at line breaks and tabs, and a single line at commas. */
function splitPasted(text, commas, known) {
  const whole = text.trim();
  const lines = /[\n\r\t]/.test(text);
  const cut = lines ? /[\n\r\t]+/ : commas && !known.includes(whole) ? "," : null;
  const values = (cut ? text.split(cut) : [whole]).map(trimmed).filter(Boolean);
  return { values, isList: lines || values.length > 1 };
}

/** Return the filters with one changed, in the interface's order, without empty filters. */
function changed(model, name, value) {
  const filters = { ...model.get("value"), [name]: value };
  const order = model.get("form").order.filter((one) => {
    const given = filters[one];
    return given !== undefined && given !== null && given !== "" && given.length !== 0;
  });
  return Object.fromEntries(order.map((one) => [one, filters[one]]));
}

/** Return a list of options in a layer above the page; one option may be active. */
function optionList(input, label, pick) {
  const list = h("ul", { id: newId(), class: "ops-options", role: "listbox", "aria-label": label });
  const more = h("div", { class: "ops-more outreach-muted" });
  const layer = h("div", { class: "ops-layer", popover: "manual" }, list, more);
  let active = -1;
  // The focus stays in the input.
  layer.addEventListener("mousedown", (event) => event.preventDefault());

  const isOpen = () => layer.matches(":popover-open");
  const activate = (index) => {
    active = index;
    [...list.children].forEach((option, at) => option.setAttribute("aria-selected", at === active));
    const option = list.children[active];
    if (option) {
      input.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  };
  const close = () => {
    if (isOpen()) layer.hidePopover();
    input.setAttribute("aria-expanded", "false");
    activate(-1);
    removeEventListener("scroll", onScroll, true);
  };
  const place = () => {
    const box = input.closest(".ops-tags").getBoundingClientRect();
    const below = innerHeight - box.bottom;
    const above = below < 180 && box.top > below;
    layer.style.left = `${box.left}px`;
    layer.style.width = `${box.width}px`;
    layer.style.top = above ? "auto" : `${box.bottom + 2}px`;
    layer.style.bottom = above ? `${innerHeight - box.top + 2}px` : "auto";
    list.style.maxHeight = `${Math.max(80, Math.min(240, (above ? box.top : below) - 40))}px`;
  };
  const onScroll = (event) => {
    if (!layer.contains(event.target)) place();
  };
  const open = (texts) => {
    if (!texts.length) return close();
    const option = (text) =>
      h("li", { id: newId(), role: "option", "aria-selected": "false", onclick: () => pick(text) }, text);
    setChildren(list, texts.slice(0, MAX_OPTIONS).map(option));
    const rest = texts.length - MAX_OPTIONS;
    more.hidden = rest <= 0;
    more.textContent = `and ${number(rest)} more: type to narrow`;
    if (!isOpen()) {
      layer.showPopover();
      addEventListener("scroll", onScroll, true);
    }
    place();
    input.setAttribute("aria-expanded", "true");
    activate(-1);
  };
  const move = (step) => {
    const count = list.children.length;
    // In one of the positions, no option is active, and the typed text is used.
    activate(((active + 1 + step + count + 1) % (count + 1)) - 1);
  };
  input.setAttribute("aria-controls", list.id);
  return { layer, isOpen, open, close, move, active: () => list.children[active]?.textContent ?? null };
}

/** Return an input for several values, with tags, free text and suggestions. */
function tagInput(field, labelId, context) {
  const { model, signal } = context;
  const input = h("input", {
    type: "text",
    role: "combobox",
    autocomplete: "off",
    spellcheck: "false",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
  });
  const tags = h("span", { class: "ops-list", role: "list", "aria-labelledby": labelId });
  const options = optionList(input, `Suggestions for ${field.label}`, (text) => add([text]));
  const box = h("div", { class: "ops-tags" }, tags, input, options.layer);
  const values = () => model.get("value")[field.name] ?? [];
  const known = () => [
    ...new Set([...(context.suggestions[field.name] ?? []), ...field.suggestions]),
  ];

  const suggest = () => {
    const typed = folded(input.value.trim());
    const taken = new Set(values());
    options.open(known().filter((text) => !taken.has(text) && folded(text).includes(typed)));
  };
  const write = (list) => context.write(field.name, list);
  const add = (texts) => {
    const given = texts.map((text) => text.trim()).filter(Boolean);
    input.value = "";
    options.close();
    if (given.length) write([...new Set([...values(), ...given])]);
  };
  const remove = (index) => write(values().filter((_, at) => at !== index));

  input.addEventListener("keydown", (event) => {
    // One browser sends the key that ends a composition after the composition, with code 229.
    if (event.isComposing || event.keyCode === 229) return;
    const { key } = event;
    const typed = trimmed(input.value);
    const meant = options.active() ?? typed;
    if (key === "Enter" || (key === "Tab" && !event.shiftKey && meant)) {
      event.preventDefault();
      add([meant]);
    } else if (key === "," && field.commas) {
      const begins = `${typed},`.toLowerCase();
      if (typed && known().some((text) => text.toLowerCase().startsWith(begins))) return;
      event.preventDefault();
      add([typed]);
    } else if (key === "Backspace" && !input.value && values().length) {
      event.preventDefault();
      remove(values().length - 1);
    } else if (key === "ArrowDown" || key === "ArrowUp") {
      event.preventDefault();
      if (!options.isOpen()) suggest();
      if (options.isOpen()) options.move(key === "ArrowDown" ? 1 : -1);
    } else if (key === "Escape" && options.isOpen()) {
      event.preventDefault();
      event.stopPropagation();
      options.close();
    }
  });
  input.addEventListener("input", suggest);
  input.addEventListener("click", () => options.isOpen() || suggest());
  input.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    const pasted = splitPasted(text, field.commas, known());
    if (!pasted.isList) return;
    event.preventDefault();
    const { value, selectionStart, selectionEnd } = input;
    add([trimmed(value.slice(0, selectionStart) + value.slice(selectionEnd)), ...pasted.values]);
  });
  input.addEventListener("blur", () => {
    options.close();
    // Switching to another window does not add the typed text.
    if (!hasFocus(input)) add([trimmed(input.value)]);
  });
  // Keep the focus in the input. Otherwise pressing a button would add the typed text and rebuild
  // the tags before the button is released.
  tags.addEventListener("mousedown", (event) => event.preventDefault());
  box.addEventListener("click", (event) => event.target === box && input.focus());
  signal.addEventListener("abort", options.close);

  const tag = (text, index) => {
    const take = () => {
      remove(index);
      input.focus();
    };
    const gone = button("×", take, { "aria-label": `Remove ${text}` });
    return h("span", { class: "ops-tag", role: "listitem" }, h("span", {}, text), gone);
  };
  let shown = [];
  const show = () => {
    const now = values();
    let same = 0;
    while (same < Math.min(now.length, shown.length) && now[same] === shown[same]) same += 1;
    // Keep the elements of unchanged tags, because one of them may be about to get the focus.
    for (const gone of [...tags.children].slice(same)) gone.remove();
    tags.append(...now.slice(same).map((text, at) => tag(text, same + at)));
    shown = now;
    if (hasFocus(input)) box.scrollTop = box.scrollHeight;
  };
  return { element: box, input, show };
}

/** Return an input for one text. */
function textInput(field, _labelId, context) {
  const write = () => context.write(field.name, input.value.trim());
  const input = h("input", { type: "text", autocomplete: "off", oninput: write });
  const show = () => {
    const value = context.model.get("value")[field.name] ?? "";
    if (input.value.trim() !== value) input.value = value;
  };
  return { element: input, input, show };
}

/** Return a switch with three states: not set, yes, no. */
function switchInput(field, labelId, context) {
  const group = newId();
  const radios = [
    ["Not set", null],
    ["Yes", true],
    ["No", false],
  ].map(([words, value]) => {
    const write = () => context.write(field.name, value);
    const radio = h("input", { type: "radio", name: group, onchange: write });
    return { radio, value, label: h("label", {}, radio, words) };
  });
  const element = h(
    "div",
    { class: "outreach-tools ops-switch", role: "radiogroup", "aria-labelledby": labelId },
    radios.map((one) => one.label),
  );
  const show = () => {
    const set = context.model.get("value")[field.name] ?? null;
    for (const one of radios) one.radio.checked = one.value === set;
  };
  return { element, input: element, show };
}

const INPUTS = { array: tagInput, string: textInput, boolean: switchInput };

/** Return a field with its label and its problem. */
function fieldOf(field, context) {
  const { model, signal } = context;
  const inputId = newId();
  const isGroup = field.type === "boolean";
  const label = h(
    isGroup ? "span" : "label",
    { id: newId(), for: !isGroup && inputId, class: "ops-label", title: field.title },
    field.label,
  );
  const problem = h("p", { id: newId(), class: "outreach-problem", role: "alert" });
  const { element, input, show } = INPUTS[field.type](field, label.id, context);
  input.id = inputId;
  input.setAttribute("aria-describedby", problem.id);
  input.setAttribute("title", field.title);
  onTraits(model, ["value"], signal, show);
  onTraits(model, ["problems"], signal, () => {
    showProblem(input, problem, model.get("problems")[field.name] ?? "");
  });
  return h("div", { class: "ops-field" }, label, element, problem);
}

/** Return one or two fields side by side. */
function rowOf(fields, context) {
  const name = fields.length > 1 ? "ops-row ops-pair" : "ops-row";
  return h("div", { class: name }, fields.map((field) => fieldOf(field, context)));
}

/** Return a collapsible group of fields; it opens when a field is set. */
function groupOf(group, isFirst, context) {
  const { model, signal } = context;
  const count = h("span", { class: "ops-set" });
  const names = group.rows.flat().map((field) => field.name);
  const details = h(
    "details",
    { class: "ops-group" },
    h("summary", {}, group.title, " ", count),
    h("div", { class: "ops-fields" }, group.rows.map((row) => rowOf(row, context))),
  );
  let before = 0;
  onTraits(model, ["value"], signal, () => {
    const now = names.filter((name) => name in model.get("value")).length;
    if (now && !before) details.open = true;
    before = now;
    count.textContent = now ? `${now} set` : "";
  });
  if (isFirst && !Object.keys(model.get("value")).length) details.open = true;
  return details;
}

/** Return the line with the total, the limit and the Search button. */
function searchBar(context) {
  const { model, signal } = context;
  const total = h("span", { class: "ops-total", role: "status" });
  const again = button("Count again", () => post(model, { action: "count_again" }));
  const problem = h("span", { class: "outreach-problem", role: "alert" });
  const limit = numberInput({
    min: "1",
    placeholder: "all",
    title: "Leave empty to fetch all people",
    oninput: () => setLimit(),
    onkeydown: (event) => event.key === "Enter" && start(),
  });
  const search = button("Search", () => start(), { class: "outreach-primary" });
  const clear = button("Clear all", () => context.writeAll({}));

  let counted = {};
  const showTotal = () => {
    const isOutdated = JSON.stringify(counted.filters) !== JSON.stringify(model.get("value"));
    const { state, text, notes } = isOutdated ? { state: "counting", text: "Counting …", notes: [] } : counted;
    total.className = `ops-total ops-${state}`;
    setChildren(total, h("span", {}, text), notes.map((note) => h("span", { class: "ops-note" }, note)));
    again.hidden = state !== "failed";
  };
  onTraits(model, ["value"], signal, showTotal);
  onMessage(model, "count", signal, ({ value }) => {
    counted = value;
    showTotal();
  });
  onTraits(model, ["value"], signal, () => (clear.disabled = !Object.keys(model.get("value")).length));
  const allow = () => (search.disabled = Boolean(model.get("busy")) || !problem.hidden);
  onTraits(model, ["busy"], signal, allow);
  const showValidity = (isUsable) => {
    showProblem(limit, problem, isUsable ? "" : "Enter a whole number from 1, or leave empty to fetch all people.");
    allow();
  };
  onTraits(model, ["limit"], signal, () => {
    const value = model.get("limit");
    if (limit.value !== String(value ?? "")) limit.value = value ?? "";
    showValidity(true);
  });
  const setLimit = () => {
    const isUsable = limit.validity.valid;
    showValidity(isUsable);
    if (isUsable) setTrait(model, "limit", limit.value ? Number(limit.value) : null);
  };
  const start = () => {
    // Send the values too, because the message may overtake the last change of a trait.
    if (!search.disabled) post(model, { action: "search_page", value: model.get("value"), limit: model.get("limit") });
  };
  return h(
    "div",
    { class: "outreach-tools ops-bar" },
    h("div", { class: "outreach-tools ops-count" }, total, again),
    tools(problem, clear, h("label", {}, "Fetch at most ", limit), search),
  );
}

/** Return the line that saves the filters to a file and loads them. */
function presetBar(context) {
  const { model, signal } = context;
  const name = h("input", {
    type: "text",
    placeholder: "people.json",
    spellcheck: "false",
    title: "A file in the notebook's folder",
    oninput: () => show(),
  });
  const write = (replace) =>
    post(model, { action: "save_preset", path: name.value, value: model.get("value"), replace });
  const save = button("Save", () => write(false));
  // Use a separate button, because a double click on Save must not confirm the replacement.
  const replace = button("Replace", () => {
    write(true);
    save.focus();
  });
  const load = button("Load", () => post(model, { action: "load", path: name.value }));
  const show = () => (replace.hidden = !name.value || model.get("preset_to_replace") !== name.value);
  onTraits(model, ["preset_to_replace"], signal, show);
  return tools(h("label", {}, "Preset file ", name), save, load, replace);
}

/** Return the area for the first people of the results. */
function resultArea(context) {
  const { model, signal } = context;
  const area = h("div", { class: "ops-results" });
  onMessage(model, "results", signal, ({ words, columns, rows }) => {
    const table = rows.length ? region("First people found", "", tableOf(columns, rows)) : null;
    const summary = h("summary", {}, h("span", { role: "status" }, words));
    setChildren(area, table ? h("details", { open: true }, summary, table) : muted(words, { role: "status" }));
  });
  return area;
}

function render({ model, el, signal }) {
  makeRoot(el, "People search");
  const context = {
    model,
    signal,
    suggestions: {},
    write: (name, value) => context.writeAll(changed(model, name, value)),
    writeAll: (value) => setTrait(model, "value", value),
  };
  onMessage(model, "suggestions", signal, (message) => (context.suggestions = message.suggestions));
  const groups = model.get("form").groups.map((group, index) => groupOf(group, index === 0, context));
  const messages = h("div", {}, busyArea(model, signal), noticeArea(model, signal));
  followButtons(el, messages, signal);
  setChildren(
    el,
    searchBar(context),
    messages,
    resultArea(context),
    h("div", { class: "ops-groups" }, groups),
    presetBar(context),
    followedCode(model, signal),
  );
  post(model, { action: "ready" });
}

export default { render };
