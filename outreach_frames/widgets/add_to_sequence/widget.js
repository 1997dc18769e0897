const MANY_OPTIONS = 8;
const PROBLEM_COLUMNS = ["Row", "Label", "Column", "Problem"];
const SUMMARY_COLUMNS = ["Status", "Rows", "What it means", "What to do"];
const OUTCOME_COLUMNS = ["Row", "Label", "Who", "Status", "Detail", "Code"];

/** Write a value so that equal ones are written equally, whatever the order of their keys. */
function canonical(value) {
  return JSON.stringify(value, (_key, part) =>
    part && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort())
      : part,
  );
}

function number(value) {
  return value.toLocaleString("en");
}

/** Replace what is in a region that scrolls, where it is scrolled to. */
function refill(region, table) {
  const { scrollTop } = region;
  region.replaceChildren(...table.children);
  region.scrollTop = scrollTop;
}

function renderAddToSequence({ model, el, signal }) {
  makeRoot(el, "Add to sequence");
  const prefix = `outreach-${Math.random().toString(36).slice(2)}`;
  const form = model.get("form");
  let plan = null;
  let outcome = { mode: "" };
  // What was clicked last: a second click finds it done before the kernel says so.
  let sent = null;
  let retried = null;

  const value = () => model.get("value");
  const setValue = (part) => {
    model.set("value", { ...value(), ...part });
    model.save_changes();
  };
  const button = (label, onclick, options = {}) =>
    h("button", { type: "button", onclick, ...options }, label);
  const section = (title, ...children) => {
    const id = `${prefix}-${title.slice(0, 1)}`;
    return h(
      "section",
      { class: "outreach-section", "aria-labelledby": id },
      h("h3", { id }, title),
      children,
    );
  };
  const muted = (text = "") => h("p", { class: "outreach-muted" }, text);

  // 1 Sequence
  let sequences = [];
  const sequenceFilter = h("input", {
    type: "search",
    placeholder: "part of the name",
    "aria-label": "Filter sequences",
    oninput: () => showSequences(),
  });
  const sequence = h("select", {
    "aria-label": "Sequence",
    class: "outreach-wide",
    onchange: () => setValue({ sequence_id: sequence.value || null }),
  });
  const sequenceHint = muted();
  const reload = button("Reload", () => post(model, { action: "reload" }));

  function showSequences() {
    const chosen = value().sequence_id;
    const wanted = sequenceFilter.value.trim().toLowerCase();
    const shown = sequences.filter(
      (one) => one.id === chosen || one.label.toLowerCase().includes(wanted),
    );
    const option = (one) =>
      h(
        "option",
        { value: one.id ?? "", disabled: !one.accepts },
        one.why ? `${one.label} (${one.why})` : one.label,
      );
    const group = (label, options) =>
      options.length ? h("optgroup", { label }, options.map(option)) : null;
    const known = sequences.some((one) => one.id === chosen);
    sequence.replaceChildren(
      ...[
        h("option", { value: "" }, "Choose a sequence"),
        chosen && !known ? h("option", { value: chosen }, chosen) : null,
        group("These take leads", shown.filter((one) => one.accepts)),
        group("These take no leads", shown.filter((one) => !one.accepts)),
      ].filter(Boolean),
    );
    sequence.value = chosen ?? "";
    sequenceFilter.hidden = sequences.length <= MANY_OPTIONS;
    const hint = sequences.find((one) => one.id === chosen)?.hint ?? "";
    const fixed = model.get("state").is_fixed
      ? "Rows of this frame are there: the rest can only follow them. For another sequence, make a new widget."
      : "";
    const count = wanted ? `${number(shown.length)} of ${number(sequences.length)} shown.` : "";
    sequenceHint.textContent = [fixed, hint, count].filter(Boolean).join(" ");
    sequenceHint.hidden = !sequenceHint.textContent;
  }

  // 2 Columns
  let columns = [];
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
  const dataSummary = h("summary", {});
  const dataFilter = h("input", {
    type: "search",
    placeholder: "part of a column's name",
    "aria-label": "Filter columns",
    oninput: () => showFields(),
  });
  const dataRows = h("div", { class: "outreach-fields" });
  const pattern = new RegExp(`^(?:${form.field_pattern})$`);
  let fieldRows = [];

  function fieldProblem(column) {
    const { field } = draft.get(column);
    if (form.identifiers.includes(field)) return `${field} identifies a lead, and is chosen above.`;
    if (!pattern.test(field) || field.length > form.field_length) {
      return `Use ${form.field_rule}.`;
    }
    const first = ticked().find((other) => draft.get(other).field === field);
    return first !== column ? `The column ${first} has this name already.` : "";
  }
  const ticked = () => columns.map((one) => one.name).filter((name) => draft.get(name)?.on);
  const draftData = () => Object.fromEntries(ticked().map((name) => [draft.get(name).field, name]));
  const hasTwins = () => Object.keys(draftData()).length < ticked().length;

  function editField(name, part) {
    Object.assign(draft.get(name), part);
    if (!hasTwins()) setValue({ data: draftData() });
    update();
  }

  function makeColumns() {
    for (const { select, name } of identifiers) {
      select.replaceChildren(
        h("option", { value: "" }, "none"),
        ...columns.flatMap((one, place) =>
          one.name === null ? [] : [h("option", { value: place }, one.label)],
        ),
      );
      select.value = String(columns.findIndex((one) => one.name !== null && one.name === value()[name]));
      if (select.selectedIndex < 0) select.value = "";
    }
    fieldRows = columns
      .filter((one) => one.name !== null)
      .map((one, place) => {
        const tick = h("input", {
          type: "checkbox",
          onchange: () => editField(one.name, { on: tick.checked }),
        });
        const problem = h("span", { class: "outreach-problem", id: `${prefix}-field-${place}` });
        const field = h("input", {
          type: "text",
          "aria-label": `Field for ${one.label}`,
          "aria-describedby": problem.id,
          spellcheck: "false",
          oninput: () => editField(one.name, { field: field.value }),
        });
        const element = h("div", { class: "outreach-field" }, h("label", {}, tick, one.label), field, problem);
        return { ...one, tick, field_input: field, problem_text: problem, element };
      });
    dataRows.replaceChildren(...fieldRows.map((row) => row.element));
    dataFilter.hidden = columns.length <= 2 * MANY_OPTIONS;
    const wrong = columns.filter((one) => one.name === null);
    unusable.replaceChildren(
      ...wrong.map((one) => h("li", {}, `Cannot be used: ${one.label} (${one.problem}).`)),
    );
    unusable.hidden = wrong.length === 0;
  }

  function readDraft() {
    const data = value().data;
    if (hasTwins() || canonical(data) === canonical(draftData())) return;
    const fields = new Map(Object.entries(data).map(([field, name]) => [name, field]));
    for (const one of columns) {
      if (one.name === null) continue;
      draft.set(one.name, { on: fields.has(one.name), field: fields.get(one.name) ?? one.field });
    }
  }

  function showFields() {
    const wanted = dataFilter.value.trim().toLowerCase();
    for (const row of fieldRows) {
      const { on, field } = draft.get(row.name);
      const words = on ? fieldProblem(row.name) : "";
      row.tick.checked = on;
      row.field_input.disabled = !on;
      if (document.activeElement !== row.field_input) row.field_input.value = field;
      row.field_input.setAttribute("aria-invalid", String(Boolean(words)));
      row.problem_text.textContent = words;
      const identifies = form.identifiers.some((name) => value()[name] === row.name);
      row.element.hidden = !on && (identifies || !row.label.toLowerCase().includes(wanted));
    }
    const count = ticked().length;
    const most = count > form.max_fields ? `: ${form.max_fields} at most` : "";
    dataSummary.textContent = `Data fields (${count ? `${number(count)} of ${number(fieldRows.length)} columns` : "none"}${most})`;
    dataSummary.classList.toggle("outreach-problem", Boolean(most));
  }

  function showIdentifiers() {
    for (const { name, select } of identifiers) {
      const place = columns.findIndex((one) => one.name !== null && one.name === value()[name]);
      select.value = place < 0 ? "" : String(place);
    }
  }

  // 3 Overrides and mailboxes
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
  const mailboxList = h("fieldset", { class: "outreach-choices" });
  let mailboxTicks = [];
  const settingsSummary = h("summary", {});

  function makeMailboxes(options) {
    mailboxTicks = options.map((one) => {
      const tick = h("input", {
        type: "checkbox",
        disabled: !one.active,
        onchange: () =>
          setValue({
            [form.mailboxes]: mailboxTicks.filter((row) => row.tick.checked).map((row) => row.email),
          }),
      });
      const why = one.why ? h("span", { class: "outreach-muted" }, ` (${one.why})`) : null;
      return { email: one.email, tick, element: h("label", {}, tick, h("span", {}, one.label, why)) };
    });
    mailboxList.replaceChildren(
      h("legend", {}, "Mailboxes to spread the leads over"),
      ...(mailboxTicks.length ? mailboxTicks.map((one) => one.element) : [muted("The account has none.")]),
    );
  }

  function showSettings() {
    const chosen = value();
    for (const { name, tick } of overrides) tick.checked = Boolean(chosen.overrides[name]);
    distribution.value = chosen[form.distribution] ?? "";
    mailboxList.hidden = chosen[form.distribution] !== form.custom_mailboxes;
    for (const { email, tick } of mailboxTicks) tick.checked = chosen[form.mailboxes].includes(email);
    const count = Object.keys(chosen.overrides).length;
    const words = [
      count ? `${count} override${count === 1 ? "" : "s"}` : "no overrides",
      chosen[form.distribution] ?? "default distribution",
    ];
    settingsSummary.textContent = `Overrides and mailboxes (${words.join(", ")})`;
  }

  // 4 Check
  const check = button("Check rows", () => post(model, { action: "check", value: value() }));
  const tryOut = button("Dry run", () => post(model, { action: "try_out", plan: model.get("state").plan }));
  const headline = h("p", { class: "outreach-headline", role: "status" });
  const stale = h("p", { class: "outreach-stale" }, "Out of date: check rows again.");
  const planBody = h("div", {});

  function showPlan() {
    if (!plan) return;
    headline.textContent = plan.headline;
    const more = plan.more_problems
      ? `${number(plan.more_problems)} more, in .plan.problems.`
      : "";
    planBody.replaceChildren(
      ...[
        plan.note ? muted(plan.note) : null,
        h("dl", {}, plan.facts.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])),
        plan.problem_count
          ? h(
              "details",
              { open: true },
              h("summary", {}, `Problems by row (${number(plan.problem_count)})`),
              tableOf(PROBLEM_COLUMNS, plan.problems, "Problems by row"),
              muted(more),
            )
          : muted("No row has a problem."),
      ].filter(Boolean),
    );
  }

  // 5 Send
  const send = button("", () => {
    const state = model.get("state");
    if (sent === state.plan || send.disabled) return;
    sent = state.plan;
    send.disabled = true;
    post(model, { action: "submit", plan: state.plan, value: value(), again: again.checked });
  }, { class: "outreach-primary" });
  const whyNot = h("span", { class: "outreach-muted" });
  const again = h("input", { type: "checkbox", onchange: () => update() });
  const againWords = h("span", {});
  const againLabel = h("label", { class: "outreach-notice outreach-warning" }, again, againWords);
  const journal = muted();
  const cancel = button("Cancel", () => post(model, { action: "cancel" }));
  const breakOff = button("Break off now", () => post(model, { action: "break_off" }));
  const ending = h("p", { role: "status" });
  const sending = h(
    "div",
    {},
    busyArea(model, signal, { progress: "progress", buttons: [] }),
    h("div", { class: "outreach-tools" }, cancel, breakOff),
    ending,
  );
  const reading = busyArea(model, signal);

  // 6 Outcome
  const outcomeHeadline = h("p", { class: "outreach-headline" });
  const summary = h("div", { class: "outreach-table outreach-summary", tabindex: "0", role: "region", "aria-label": "Outcomes by status" });
  const rows = h("div", { class: "outreach-table", tabindex: "0", role: "region", "aria-label": "Outcomes by row" });
  const statusFilter = h("select", {
    "aria-label": "Show rows with status",
    onchange: () => post(model, { action: "show", status: statusFilter.value }),
  });
  const moreRows = muted();
  const notes = h("ul", {});
  const notesArea = h("div", {}, h("p", {}, "What the service said:"), notes);
  const folder = h("input", { type: "text", value: "outreach_results", "aria-label": "Folder for the CSV files" });
  const saveAs = (replace) => post(model, { action: "save", folder: folder.value, replace });
  const saved = h("span", { role: "status" });
  const replace = button("Replace them", () => saveAs(true), { hidden: true });
  const save = h(
    "div",
    { class: "outreach-tools" },
    h("label", {}, "Folder ", folder),
    button("Save failed rows as CSV", () => saveAs(false)),
    saved,
    replace,
  );
  const retryWords = h("p", {});
  const retryYes = button("", () => {
    const state = model.get("state");
    if (retried === state.report) return;
    retried = state.report;
    retryYes.disabled = true;
    post(model, { action: "retry", report: state.report });
  });
  const retryNo = button("Leave them unknown", () => askRetry(false));
  const confirm = h(
    "div",
    { class: "outreach-notice outreach-warning", hidden: true },
    retryWords,
    h("div", { class: "outreach-tools" }, retryYes, retryNo),
  );
  const retry = button("Send unknown rows once more", () => askRetry(true));
  const retryArea = h("div", {}, retry, confirm);

  function askRetry(on) {
    confirm.hidden = !on;
    retry.hidden = on;
    (on ? retryNo : retry).focus();
  }

  function showOutcome() {
    const { mode } = outcome;
    outcomeSection.hidden = !mode;
    if (!mode) return;
    outcomeHeadline.textContent = outcome.headline;
    refill(
      summary,
      tableOf(SUMMARY_COLUMNS, outcome.summary.map(([status, count, ...rest]) => [status, number(count), ...rest]), ""),
    );
    refill(rows, tableOf(OUTCOME_COLUMNS, outcome.rows, ""));
    const total = outcome.summary.reduce((sum, [, count]) => sum + count, 0);
    const options = [["", `all (${number(total)})`]].concat(
      outcome.summary.map(([status, count]) => [status, `${status} (${number(count)})`]),
    );
    statusFilter.replaceChildren(...options.map(([status, label]) => h("option", { value: status }, label)));
    statusFilter.value = outcome.status;
    moreRows.textContent = outcome.more
      ? `${number(outcome.more)} more row${outcome.more === 1 ? "" : "s"}${mode === "sent" ? ", in .report.frame" : ""}.`
      : "";
    notes.replaceChildren(...outcome.notes.map((note) => h("li", {}, note)));
    notesArea.hidden = outcome.notes.length === 0;
    const unknown = outcome.summary.find(([status]) => status === "unknown")?.[1] ?? 0;
    save.hidden = mode !== "sent";
    retryArea.hidden = mode !== "sent" || !unknown;
    if (retryArea.hidden) confirm.hidden = !(retry.hidden = false);
    retryWords.textContent =
      "These rows were sent, and no answer proves what became of them. The service leaves out leads " +
      "that it has in the sequence with the same fields, but whoever was added and has since been " +
      "removed there, or is stored with other fields, may be contacted twice. Look in the web app first.";
    retryYes.textContent = `Send ${number(unknown)} row${unknown === 1 ? "" : "s"} once more`;
  }

  /** Show what can be done now. */
  function update() {
    const state = model.get("state");
    const busy = Boolean(model.get("busy"));
    const running = Boolean(state.phase);
    const fresh = plan !== null && canonical(plan.value) === canonical(value());
    const twins = hasTwins();
    const isMeant = !state.sent_before || again.checked;
    readDraft();
    showSequences();
    showIdentifiers();
    showFields();
    showSettings();
    for (const control of [...identifiers.map((one) => one.select), distribution, reload]) {
      control.disabled = busy;
    }
    sequence.disabled = busy || state.is_fixed;
    check.disabled = busy || twins;
    const isUsed = state.plan > 0 && state.sent === state.plan && !running;
    planBody.hidden = headline.hidden = plan === null || isUsed;
    tryOut.disabled = busy || !fresh || twins || isUsed;
    stale.hidden = plan === null || fresh || running || isUsed;
    const ready = Boolean(state.button) && fresh && !twins;
    send.textContent = state.button || "Add leads";
    send.disabled = busy || !ready || !isMeant || sent === state.plan;
    whyNot.textContent = busy ? "" : twins ? "Two columns have the same field name." : state.why_not;
    againLabel.hidden = !ready || !state.sent_before || busy;
    againWords.textContent = ` ${number(state.sent_before)} of these leads were sent to this sequence from this notebook before. Send them again all the same.`;
    journal.textContent = state.journal
      ? `Journal: ${state.journal}`
      : "Without a journal, only this kernel knows what was sent; AddToSequence(df, journal=\"leads.journal\") keeps it.";
    sending.hidden = !running;
    reading.classList.toggle("outreach-elsewhere", running);
    const hadFocus = document.activeElement === send || document.activeElement === document.body;
    cancel.hidden = state.phase !== "sending";
    breakOff.hidden = state.phase !== "cancelling";
    ending.textContent =
      {
        cancelling:
          "Cancelling: the request under way is finished, even if it is waiting for its turn; nothing is sent after it. " +
          "Break off now ends it at once: its rows become unknown if it may have arrived.",
        "breaking off": "Breaking off: nothing more is sent.",
      }[state.phase] ?? "";
    retry.disabled = busy;
    retryYes.disabled = busy || retried === state.report;
    if (state.phase === "sending" && hadFocus && el.contains(document.activeElement)) cancel.focus();
  }

  hear(model, "sequences", signal, (message) => {
    sequences = message.options;
    showSequences();
  });
  hear(model, "columns", signal, (message) => {
    columns = message.options;
    for (const one of columns) {
      if (one.name !== null && !draft.has(one.name)) draft.set(one.name, { on: false, field: one.field });
    }
    makeColumns();
    update();
  });
  hear(model, "guesses", signal, (message) => {
    guesses.replaceChildren(...message.notes.map((note) => h("li", {}, note)));
    guesses.hidden = message.notes.length === 0;
  });
  hear(model, "mailboxes", signal, (message) => {
    makeMailboxes(message.options);
    showSettings();
  });
  hear(model, "plan", signal, (message) => {
    plan = message;
    again.checked = false;
    showPlan();
    update();
  });
  hear(model, "refused", signal, () => {
    sent = null;
    update();
  });
  hear(model, "outcome", signal, (message) => {
    outcome = message;
    showOutcome();
  });
  hear(model, "saved", signal, (message) => {
    saved.textContent = message.existing.length
      ? `${message.existing.join(", ")} in ${message.folder}: there already.`
      : message.words;
    replace.hidden = message.existing.length === 0;
  });

  const outcomeSection = section(
    "6 Outcome",
    outcomeHeadline,
    summary,
    h("div", { class: "outreach-tools" }, h("label", {}, "Show ", statusFilter)),
    rows,
    moreRows,
    notesArea,
    retryArea,
    save,
  );
  el.append(
    section(
      "1 Sequence",
      h("div", { class: "outreach-tools" }, sequenceFilter, sequence, reload),
      sequenceHint,
    ),
    section(
      "2 Columns",
      h(
        "div",
        { class: "outreach-tools" },
        identifiers.map(({ name, select }) => h("label", {}, `${name} `, select)),
      ),
      guesses,
      h(
        "details",
        {},
        dataSummary,
        muted("Only what is ticked is sent, under the name that the sequence's texts use."),
        dataFilter,
        dataRows,
      ),
      unusable,
    ),
    section(
      "3 Settings",
      h(
        "details",
        {},
        settingsSummary,
        h("fieldset", { class: "outreach-choices" }, h("legend", {}, "Checks to leave out, for all rows"), overrides.map((one) => one.element)),
        h("div", { class: "outreach-tools" }, h("label", {}, "Spread the leads over ", distribution)),
        mailboxList,
      ),
    ),
    noticeArea(model, signal),
    reading,
    section("4 Check", h("div", { class: "outreach-tools" }, check, tryOut, headline, stale), planBody),
    section(
      "5 Send",
      againLabel,
      h("div", { class: "outreach-tools" }, send, whyNot),
      sending,
      journal,
    ),
    outcomeSection,
    codeArea(model, signal),
  );
  makeMailboxes([]);
  showPlan();
  showOutcome();
  follow(model, ["value", "state", "busy"], signal, update);
  post(model, { action: "ready" });
}

export default { render: renderAddToSequence };
