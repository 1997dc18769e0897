// The first three sections: the sequence, the columns, and the settings.

const MANY_OPTIONS = 8;

/** Return text for a number. */
function number(value) {
  return value.toLocaleString("en");
}

/** Write a value so that equal values read the same, whatever the order of their keys. */
function canonical(value) {
  return JSON.stringify(value, (_key, part) =>
    part && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort())
      : part,
  );
}

function button(label, onclick, options = {}) {
  return h("button", { type: "button", onclick, ...options }, label);
}

function muted(text = "") {
  return h("p", { class: "outreach-muted" }, text);
}

function tools(...children) {
  return h("div", { class: "outreach-tools" }, children);
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
  const filter = h("input", {
    type: "search",
    placeholder: "part of the name",
    "aria-label": "Filter sequences",
    oninput: () => show(),
  });
  const select = h("select", {
    "aria-label": "Sequence",
    class: "outreach-wide",
    onchange: () => setValue({ sequence_id: select.value || null }),
  });
  const hint = muted();
  const reload = button("Reload", () => post(model, { action: "reload" }));

  const option = (one) =>
    h(
      "option",
      { value: one.id ?? "", disabled: !one.accepts },
      one.why ? `${one.label} (${one.why})` : one.label,
    );
  const group = (label, options) => (options.length ? h("optgroup", { label }, options.map(option)) : null);

  function show() {
    const { is_fixed } = model.get("state");
    const busy = Boolean(model.get("busy"));
    const chosen = value().sequence_id;
    const wanted = filter.value.trim().toLowerCase();
    const shown = sequences.filter((one) => one.id === chosen || one.label.toLowerCase().includes(wanted));
    const known = sequences.some((one) => one.id === chosen);
    select.replaceChildren(
      ...[
        h("option", { value: "" }, "Choose a sequence"),
        chosen && !known ? h("option", { value: chosen }, chosen) : null,
        group("These take leads", shown.filter((one) => one.accepts)),
        group("These take no leads", shown.filter((one) => !one.accepts)),
      ].filter(Boolean),
    );
    select.value = chosen ?? "";
    filter.hidden = sequences.length <= MANY_OPTIONS;
    hint.textContent = [
      is_fixed
        ? "Rows of this frame are in this sequence, so the rest can only go there too. For another sequence, make a new widget."
        : "",
      sequences.find((one) => one.id === chosen)?.hint ?? "",
      wanted ? `${number(shown.length)} of ${number(sequences.length)} shown.` : "",
    ]
      .filter(Boolean)
      .join(" ");
    hint.hidden = !hint.textContent;
    select.disabled = busy || is_fixed;
    reload.disabled = busy;
  }

  hear(model, "sequences", signal, (message) => {
    sequences = message.options;
    show();
  });
  return { element: section("1 Sequence", tools(filter, select, reload), hint), show };
}

/** Return the section that chooses the columns; `hasTwins` says whether two fields share a name. */
function columnsSection(context) {
  const { model, signal, form, value, setValue } = context;
  let columns = [];
  let rows = [];
  // What is ticked and typed; while two fields share a name it cannot be the widget's value.
  const draft = new Map();
  const guesses = h("ul", { class: "outreach-muted" });
  const unusable = h("ul", { class: "outreach-muted" });
  const identifiers = form.identifiers.map((name) => {
    const select = h("select", {
      "aria-label": `Column for ${name}`,
      onchange: () => setValue({ [name]: select.value === "" ? null : columns[select.value].name }),
    });
    return { name, select };
  });
  const summary = h("summary", {});
  const filter = h("input", {
    type: "search",
    placeholder: "part of a column's name",
    "aria-label": "Filter columns",
    oninput: () => showFields(),
  });
  const fields = h("div", { class: "outreach-fields" });
  const pattern = new RegExp(`^(?:${form.field_pattern})$`);

  const ticked = () => columns.map((one) => one.name).filter((name) => draft.get(name)?.on);
  const draftData = () => Object.fromEntries(ticked().map((name) => [draft.get(name).field, name]));
  const hasTwins = () => Object.keys(draftData()).length < ticked().length;

  function problemOf(column) {
    const { field } = draft.get(column);
    if (form.identifiers.includes(field)) return `${field} identifies a lead; choose its column above.`;
    if (!pattern.test(field) || field.length > form.field_length) return `Use ${form.field_rule}.`;
    const first = ticked().find((other) => draft.get(other).field === field);
    return first !== column ? `The column ${first} already has this name.` : "";
  }

  function edit(name, part) {
    Object.assign(draft.get(name), part);
    if (!hasTwins()) setValue({ data: draftData() });
    context.update();
  }

  function fieldRow(one) {
    const tick = h("input", { type: "checkbox", onchange: () => edit(one.name, { on: tick.checked }) });
    const problem = h("span", { class: "outreach-problem", id: newId() });
    const input = h("input", {
      type: "text",
      "aria-label": `Field for ${one.label}`,
      "aria-describedby": problem.id,
      spellcheck: "false",
      oninput: () => edit(one.name, { field: input.value }),
    });
    const element = h("div", { class: "outreach-field" }, h("label", {}, tick, one.label), input, problem);
    return { name: one.name, label: one.label, tick, input, problem, element };
  }

  function makeColumns() {
    const usable = columns.filter((one) => one.name !== null);
    for (const { select } of identifiers) {
      select.replaceChildren(
        h("option", { value: "" }, "none"),
        ...usable.map((one) => h("option", { value: columns.indexOf(one) }, one.label)),
      );
    }
    rows = usable.map(fieldRow);
    fields.replaceChildren(...rows.map((row) => row.element));
    filter.hidden = columns.length <= 2 * MANY_OPTIONS;
    unusable.replaceChildren(
      ...columns
        .filter((one) => one.name === null)
        .map((one) => h("li", {}, `Cannot be used: ${one.label} (${one.problem}).`)),
    );
    unusable.hidden = unusable.children.length === 0;
  }

  function readDraft() {
    const data = value().data;
    if (hasTwins() || canonical(data) === canonical(draftData())) return;
    const named = new Map(Object.entries(data).map(([field, name]) => [name, field]));
    for (const one of columns) {
      if (one.name === null) continue;
      draft.set(one.name, { on: named.has(one.name), field: named.get(one.name) ?? one.field });
    }
  }

  function showFields() {
    const wanted = filter.value.trim().toLowerCase();
    for (const row of rows) {
      const { on, field } = draft.get(row.name);
      const words = on ? problemOf(row.name) : "";
      row.tick.checked = on;
      row.input.disabled = !on;
      if (!hasFocus(row.input)) row.input.value = field;
      row.input.setAttribute("aria-invalid", String(Boolean(words)));
      row.problem.textContent = words;
      const identifies = form.identifiers.some((name) => value()[name] === row.name);
      row.element.hidden = !on && (identifies || !row.label.toLowerCase().includes(wanted));
    }
    const count = ticked().length;
    const most = count > form.max_fields ? `: ${form.max_fields} at most` : "";
    const chosen = count ? `${number(count)} of ${number(rows.length)} columns` : "none";
    summary.textContent = `Data fields (${chosen}${most})`;
    summary.classList.toggle("outreach-problem", Boolean(most));
  }

  function show() {
    readDraft();
    for (const { name, select } of identifiers) {
      const place = columns.findIndex((one) => one.name !== null && one.name === value()[name]);
      select.value = place < 0 ? "" : String(place);
      select.disabled = Boolean(model.get("busy"));
    }
    showFields();
  }

  hear(model, "columns", signal, (message) => {
    columns = message.options;
    for (const one of columns) {
      if (one.name !== null && !draft.has(one.name)) draft.set(one.name, { on: false, field: one.field });
    }
    makeColumns();
    context.update();
  });
  hear(model, "guesses", signal, (message) => {
    guesses.replaceChildren(...message.notes.map((note) => h("li", {}, note)));
    guesses.hidden = message.notes.length === 0;
  });
  const element = section(
    "2 Columns",
    tools(identifiers.map(({ name, select }) => h("label", {}, `${name} `, select))),
    guesses,
    h(
      "details",
      {},
      summary,
      muted("Only ticked columns are sent, under the field names that the sequence's texts use."),
      filter,
      fields,
    ),
    unusable,
  );
  return { element, show, hasTwins };
}

/** Return the section for overrides and mailboxes. */
function settingsSection(context) {
  const { model, signal, form, value, setValue } = context;
  const overrides = form.overrides.map(({ name, note }) => {
    const tick = h("input", {
      type: "checkbox",
      onchange: () => {
        const chosen = { ...value().overrides };
        delete chosen[name];
        setValue({ overrides: tick.checked ? { ...chosen, [name]: true } : chosen });
      },
    });
    const element = h("label", {}, tick, h("span", {}, h("code", {}, name), ` ${note}`));
    return { name, tick, element };
  });
  const distribution = h(
    "select",
    {
      "aria-label": "Leads distribution",
      onchange: () =>
        setValue({
          [form.distribution]: distribution.value || null,
          ...(distribution.value === form.custom_mailboxes ? {} : { [form.mailboxes]: [] }),
        }),
    },
    h("option", { value: "" }, `the service's default (${form.default_distribution})`),
    form.distributions.map((name) => h("option", { value: name }, name)),
  );
  const mailboxes = h("fieldset", { class: "outreach-choices" });
  const summary = h("summary", {});
  let ticks = [];

  function makeMailboxes(options) {
    ticks = options.map((one) => {
      const tick = h("input", {
        type: "checkbox",
        disabled: !one.active,
        onchange: () =>
          setValue({ [form.mailboxes]: ticks.filter((row) => row.tick.checked).map((row) => row.email) }),
      });
      const why = one.why ? h("span", { class: "outreach-muted" }, ` (${one.why})`) : null;
      return { email: one.email, tick, element: h("label", {}, tick, h("span", {}, one.label, why)) };
    });
    mailboxes.replaceChildren(
      h("legend", {}, "Mailboxes to spread the leads over"),
      ...(ticks.length ? ticks.map((one) => one.element) : [muted("The account has no mailboxes.")]),
    );
  }

  function show() {
    const chosen = value();
    for (const { name, tick } of overrides) tick.checked = Boolean(chosen.overrides[name]);
    distribution.value = chosen[form.distribution] ?? "";
    distribution.disabled = Boolean(model.get("busy"));
    mailboxes.hidden = chosen[form.distribution] !== form.custom_mailboxes;
    for (const { email, tick } of ticks) tick.checked = chosen[form.mailboxes].includes(email);
    const count = Object.keys(chosen.overrides).length;
    const words = [
      count ? `${count} override${count === 1 ? "" : "s"}` : "no overrides",
      chosen[form.distribution] ?? "default distribution",
    ];
    summary.textContent = `Overrides and mailboxes (${words.join(", ")})`;
  }

  hear(model, "mailboxes", signal, (message) => {
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
      tools(h("label", {}, "Spread the leads over ", distribution)),
      mailboxes,
    ),
  );
  return { element, show };
}
