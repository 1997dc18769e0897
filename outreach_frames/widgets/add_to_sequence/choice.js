// Sections 1 to 3: sequence, columns and settings.

const MANY_OPTIONS = 8;
const MOST_FIELDS = 30;

/** Serialise a value with sorted keys, for comparisons. */
function canonical(value) {
  return JSON.stringify(value, (_key, part) =>
    part && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort())
      : part,
  );
}

/** Return a check box and its label element. */
function tickBox(onchange, label, options = {}) {
  const tick = h("input", { type: "checkbox", onchange, ...options });
  return { tick, element: h("label", {}, tick, h("span", {}, label)) };
}

/** Return a section with a numbered title. */
function section(title, ...children) {
  const id = newId();
  return h("section", { class: "outreach-section", "aria-labelledby": id }, h("h3", { id }, title), children);
}

/** Return the section that chooses the sequence. */
function sequenceSection(context) {
  const { model, signal, value, setValue } = context;
  let sequences = [];
  const filter = searchInput("part of the name", () => show(), { "aria-label": "Filter sequences" });
  const select = h("select", {
    "aria-label": "Sequence",
    class: "outreach-wide",
    onchange: () => setValue({ sequence_id: select.value || null }),
  });
  const hint = muted();
  const reload = button("Reload", () => post(model, { action: "reload" }));

  const option = ({ id, label, accepts, why }) =>
    h("option", { value: id ?? "", disabled: !accepts }, why ? `${label} (${why})` : label);
  const group = (label, options) => (options.length ? h("optgroup", { label }, options.map(option)) : null);

  function show() {
    const { is_fixed } = model.get("state");
    const busy = Boolean(model.get("busy"));
    const chosen = value().sequence_id;
    const query = filter.value.trim().toLowerCase();
    const shown = sequences.filter((one) => one.id === chosen || one.label.toLowerCase().includes(query));
    const known = sequences.some((one) => one.id === chosen);
    setChildren(
      select,
      h("option", { value: "" }, "Choose a sequence"),
      chosen && !known ? h("option", { value: chosen }, chosen) : null,
      group("These take leads", shown.filter((one) => one.accepts)),
      group("These accept no leads", shown.filter((one) => !one.accepts)),
    );
    select.value = chosen ?? "";
    filter.hidden = sequences.length <= MANY_OPTIONS;
    hint.textContent = [
      is_fixed
        ? "Rows of this frame are in this sequence, so the remaining rows can only be sent there. Make a new widget for another sequence."
        : "",
      query ? `${number(shown.length)} of ${number(sequences.length)} shown.` : "",
    ]
      .filter(Boolean)
      .join(" ");
    hint.hidden = !hint.textContent;
    select.disabled = busy || is_fixed;
    reload.disabled = busy;
  }

  onMessage(model, "sequences", signal, (message) => {
    sequences = message.options;
    show();
  });
  return { element: section("1 Sequence", tools(filter, select, reload), hint, context.messages), show };
}

/** Return the section that chooses the columns. */
function columnsSection(context) {
  const { model, signal, form, value, setValue } = context;
  // One row per usable column, with a draft, because the widget's value cannot have duplicate field names.
  let rows = [];
  const unusable = h("ul", { class: "outreach-muted" });
  const identifiers = form.identifiers.map((name) => {
    const select = h("select", {
      "aria-label": `Column for ${name}`,
      onchange: () => setValue({ [name]: rows[select.value]?.name ?? null }),
    });
    return { name, select };
  });
  const summary = h("summary", {});
  const filter = searchInput("part of a column's name", () => showFields(), { "aria-label": "Filter columns" });
  const fields = h("div", { class: "outreach-fields" });
  const more = muted();
  const pattern = new RegExp(`^(?:${form.field_pattern})$`);

  const ticked = () => rows.filter((row) => row.on);
  const draftData = () => Object.fromEntries(ticked().map((row) => [row.field, row.name]));
  const requiredFields = () => ticked().filter((row) => row.required).map((row) => row.field);
  const hasDuplicateFields = () => Object.keys(draftData()).length < ticked().length;

  function problemOf({ name, field }) {
    if (form.identifiers.includes(field)) return `${field} is an identifier. Choose its column above.`;
    if (!pattern.test(field) || field.length > form.field_length) return `Use ${form.field_rule}.`;
    const first = ticked().find((other) => other.field === field).name;
    return first !== name ? `The column ${first} already uses this name. Enter another one.` : "";
  }

  function fieldRow({ name, label, field }) {
    const edit = (part) => {
      Object.assign(row, part);
      if (!hasDuplicateFields()) setValue({ data: draftData(), require: requiredFields() });
      context.update();
    };
    const { tick, element: tickLabel } = tickBox(() => edit({ on: tick.checked }), label);
    const problem = h("span", { class: "outreach-problem", id: newId() });
    const input = h("input", {
      type: "text",
      "aria-label": `Field for ${label}`,
      "aria-describedby": problem.id,
      spellcheck: "false",
      oninput: () => edit({ field: input.value }),
    });
    const { tick: need, element: needLabel } = tickBox(() => edit({ required: need.checked }), "required", {
      "aria-label": `Required: ${label}`,
    });
    const element = h("div", { class: "outreach-field" }, tickLabel, input, needLabel, problem);
    const row = { name, label, proposed: field, on: false, field, required: false, tick, input, need, problem, element };
    return row;
  }

  function readDraft() {
    const { data, require } = value();
    const draft = { data: draftData(), require: requiredFields().sort() };
    if (hasDuplicateFields() || canonical({ data, require: [...require].sort() }) === canonical(draft)) return;
    const named = new Map(Object.entries(data).map(([field, name]) => [name, field]));
    for (const row of rows) {
      row.on = named.has(row.name);
      row.field = named.get(row.name) ?? row.proposed;
      row.required = require.includes(row.field);
    }
  }

  function showFields() {
    const query = filter.value.trim().toLowerCase();
    let hidden = 0;
    let free = MOST_FIELDS;
    for (const row of rows) {
      const { name, label, on, field, required, tick, input, need, problem, element } = row;
      tick.checked = on;
      need.checked = required;
      input.disabled = need.disabled = !on;
      if (!hasFocus(input)) input.value = field;
      showProblem(input, problem, on ? problemOf(row) : "");
      const identifies = form.identifiers.some((identifier) => value()[identifier] === name);
      const fits = !identifies && label.toLowerCase().includes(query);
      element.hidden = !on && (!fits || free === 0);
      if (!on && fits && free > 0) free -= 1;
      else if (!on && fits) hidden += 1;
    }
    more.textContent = `and ${number(hidden)} more columns: enter a part of the name`;
    more.hidden = !hidden;
    const count = ticked().length;
    const most = count > form.max_fields ? `: ${form.max_fields} at most` : "";
    const chosen = count ? `${number(count)} of ${number(rows.length)} columns` : "none";
    summary.textContent = `Data fields (${chosen}${most})`;
    summary.classList.toggle("outreach-problem", Boolean(most));
  }

  function show() {
    readDraft();
    for (const { name, select } of identifiers) {
      const place = rows.findIndex((row) => row.name === value()[name]);
      select.value = place < 0 ? "" : String(place);
      select.disabled = Boolean(model.get("busy")) || model.get("state").is_fixed;
    }
    showFields();
  }

  onMessage(model, "columns", signal, ({ options }) => {
    const known = new Map(rows.map((row) => [row.name, row]));
    const usable = options.filter((one) => one.name !== null);
    const others = options.filter((one) => one.name === null);
    rows = usable.map((one) => known.get(one.name) ?? fieldRow(one));
    for (const { select } of identifiers) {
      const named = rows.map((row, place) => h("option", { value: place }, row.label));
      setChildren(select, h("option", { value: "" }, "none"), named);
    }
    setChildren(fields, rows.map((row) => row.element));
    filter.hidden = options.length <= 2 * MANY_OPTIONS;
    fillList(unusable, others.map((one) => `Cannot be used: ${one.label} (${one.problem}).`));
    context.update();
  });
  const element = section(
    "2 Columns",
    tools(identifiers.map(({ name, select }) => h("label", {}, `${name} `, select))),
    h(
      "details",
      {},
      summary,
      muted("Only ticked columns are sent, under the field names that the sequence's texts use."),
      filter,
      fields,
      more,
    ),
    unusable,
  );
  return { element, show, hasDuplicateFields };
}

/** Return the section for overrides and mailboxes. */
function settingsSection(context) {
  const { model, signal, form, value, setValue } = context;
  const setOverrides = () => {
    const chosen = overrides.filter((one) => one.tick.checked);
    setValue({ overrides: Object.fromEntries(chosen.map((one) => [one.name, true])) });
  };
  const overrides = form.overrides.map(({ name, note }) => {
    return { name, ...tickBox(setOverrides, [h("code", {}, name), ` ${note}`]) };
  });
  const mailbox = h("select", {
    "aria-label": "Column with each row's mailbox",
    onchange: () => setValue({ [form.mailbox]: columns[mailbox.value] ?? null }),
  });
  const legend = h("legend", {});
  const mailboxes = h("fieldset", { class: "outreach-choices outreach-mailboxes" });
  const summary = h("summary", {});
  let ticks = [];
  let columns = [];

  function makeMailboxes(options) {
    const setMailboxes = () => {
      const chosen = ticks.filter((one) => one.tick.checked);
      setValue({ [form.mailboxes]: chosen.map((one) => one.email) });
    };
    ticks = options.map(({ email, label, active, why }) => {
      const words = [label, why ? h("span", { class: "outreach-muted" }, ` (${why})`) : null];
      return { email, ...tickBox(setMailboxes, words, { disabled: !active }) };
    });
    setChildren(
      mailboxes,
      legend,
      ticks.length ? ticks.map((one) => one.element) : muted("The account has no mailboxes."),
    );
  }

  function show() {
    const chosen = value();
    for (const { name, tick } of overrides) tick.checked = Boolean(chosen.overrides[name]);
    const place = columns.indexOf(chosen[form.mailbox]);
    mailbox.value = place < 0 ? "" : String(place);
    mailbox.disabled = Boolean(model.get("busy"));
    const which = place < 0 ? "the leads" : "the leads without a mailbox";
    legend.textContent = `Mailboxes that share ${which} (none: those in the sequence's settings)`;
    for (const { email, tick } of ticks) tick.checked = chosen[form.mailboxes].includes(email);
    const count = Object.keys(chosen.overrides).length;
    const some = chosen[form.mailboxes].length;
    const senders = some ? `${some} mailbox${some === 1 ? "" : "es"}` : "the sequence's mailboxes";
    const words = [
      count ? `${count} override${count === 1 ? "" : "s"}` : "no overrides",
      place < 0 ? senders : "each row's own mailbox",
    ];
    summary.textContent = `Overrides and mailboxes (${words.join(", ")})`;
  }

  onMessage(model, "columns", signal, ({ options }) => {
    const usable = options.filter((one) => one.name !== null);
    columns = usable.map((one) => one.name);
    const named = usable.map(({ label }, place) => h("option", { value: place }, label));
    setChildren(mailbox, h("option", { value: "" }, "none"), named);
    show();
  });
  onMessage(model, "mailboxes", signal, (message) => {
    makeMailboxes(message.options);
    show();
  });
  makeMailboxes([]);
  const element = section(
    "3 Settings",
    h(
      "details",
      {},
      summary,
      h(
        "fieldset",
        { class: "outreach-choices" },
        h("legend", {}, "Checks to skip, for all rows"),
        overrides.map((one) => one.element),
      ),
      tools(h("label", {}, "Column with each row's mailbox or user ", mailbox)),
      mailboxes,
    ),
  );
  return { element, show };
}
