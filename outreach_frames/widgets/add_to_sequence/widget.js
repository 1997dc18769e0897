// Sections 4 to 6: checking, sending and outcomes.

const PROBLEM_COLUMNS = ["Row", "Label", "Column", "Problem"];
const SUMMARY_COLUMNS = ["Status", "Rows", "Meaning", "What to do"];
const OUTCOME_COLUMNS = ["Row", "Label", "Identifier", "Status", "Detail", "Error"];
const CANCELLING =
  "Cancelling: the current request is completed, even if it has to wait; then nothing more is sent.";

/** Return a table of rows that begin with position and label; drop the labels if all are positions. */
function rowTable(columns, rows) {
  const hasLabels = rows.some(([row, label]) => row.replaceAll(",", "") !== label);
  const kept = (cells) => (hasLabels ? cells : [cells[0], ...cells.slice(2)]);
  return tableOf(kept(columns), rows.map(kept));
}

/** Return the section that checks rows; `isFresh` returns whether the plan matches the choice. */
function checkSection(context) {
  const { model, signal, value } = context;
  let plan = null;
  const check = button("Check rows", () => post(model, { action: "check", value: value() }));
  const headline = h("p", { class: "outreach-headline", role: "status" });
  const stale = h("p", { class: "outreach-stale" }, "Out of date: check rows again.");
  const body = h("div", {});

  function showPlan() {
    const { problems, problem_count: count, more_problems: more, facts, note } = plan;
    headline.textContent = plan.headline;
    setChildren(
      body,
      note ? muted(note) : null,
      h("dl", {}, facts.map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])),
      count ? null : muted("No problems found."),
      count
        ? h(
            "details",
            { open: true },
            h("summary", {}, `Problems by row (${number(count)})`),
            region("Problems by row", "", rowTable(PROBLEM_COLUMNS, problems)),
            muted(more ? `${number(more)} more, in .plan.problems.` : ""),
          )
        : null,
    );
  }

  const isFresh = () => plan !== null && canonical(plan.value) === canonical(value());

  function show({ busy, running, hasDuplicates, state }) {
    const isSent = state.plan > 0 && state.sent === state.plan && !running;
    check.disabled = busy || hasDuplicates;
    body.hidden = headline.hidden = plan === null || isSent;
    stale.hidden = plan === null || isFresh() || running || isSent;
  }

  onMessage(model, "plan", signal, (message) => {
    plan = message;
    showPlan();
    context.update();
  });
  const element = section("4 Check", tools(check, headline, stale), body);
  return { element, show, isFresh };
}

/** Return the section that sends the plan. */
function sendSection(context) {
  const { model, signal, value } = context;
  const send = onceButton(
    () => model.get("state").plan,
    (plan) => post(model, { action: "submit", plan, value: value() }),
    { class: "outreach-primary" },
  );
  const whyNot = h("span", { class: "outreach-muted" });
  const journal = muted();
  const cancel = button("Cancel", () => post(model, { action: "cancel" }));
  const ending = h("p", { role: "status" });
  const sending = h("div", {}, busyArea(model, signal, cancel), ending);

  function show({ busy, running, hasDuplicates, isFresh, state }) {
    const ready = Boolean(state.button) && isFresh && !hasDuplicates;
    send.element.textContent = state.button || "Add leads";
    send.element.disabled = busy || !ready || send.isUsed();
    whyNot.textContent = busy ? "" : hasDuplicates ? "Two columns have the same field name." : state.why_not;
    journal.textContent = state.journal
      ? `Journal: ${state.journal}`
      : 'Without a journal, only this kernel knows which rows were sent. Use AddToSequence(df, journal="leads.journal") to record them.';
    sending.hidden = !running;
    cancel.hidden = state.phase !== "sending";
    ending.textContent = state.phase === "cancelling" ? CANCELLING : "";
    // Move the focus from the button that is now disabled.
    if (state.phase === "sending" && hasFocus(send.element)) cancel.focus();
  }

  onMessage(model, "refused", signal, () => {
    send.reset();
    context.update();
  });
  const element = section("5 Send", tools(send.element, whyNot), sending, journal);
  return { element, show };
}

/** Return the section that shows the outcomes. */
function outcomeSection(context) {
  const { model, signal } = context;
  const headline = h("p", { class: "outreach-headline" }, "Outcomes of all runs.");
  const summary = region("Outcomes by status", "outreach-summary");
  const rows = region("Outcomes by row", "outreach-outcomes");
  const filter = h("select", {
    "aria-label": "Show rows with status",
    onchange: () => post(model, { action: "show", status: filter.value }),
  });
  const moreRows = muted();
  const notes = h("ul", {});
  const notesArea = h("div", {}, h("p", {}, "Notes from the service:"), notes);
  const retry = retryArea(context);

  function showOutcome(outcome) {
    element.hidden = false;
    const counted = outcome.summary.map(([status, count, ...rest]) => [status, number(count), ...rest]);
    setChildren(summary, tableOf(SUMMARY_COLUMNS, counted));
    const worded = outcome.rows.map((cells) => [...cells.slice(0, -1), cells.at(-1).replaceAll("_", " ")]);
    setChildren(rows, rowTable(OUTCOME_COLUMNS, worded));
    const total = outcome.summary.reduce((sum, [, count]) => sum + count, 0);
    const option = (status, label, count) => h("option", { value: status }, `${label} (${number(count)})`);
    const options = outcome.summary.map(([status, count]) => option(status, status, count));
    setChildren(filter, option("", "all", total), options);
    filter.value = outcome.status;
    moreRows.textContent = outcome.more
      ? `${number(outcome.more)} more row${outcome.more === 1 ? "" : "s"}, in .report.frame.`
      : "";
    fillList(notes, outcome.notes);
    notesArea.hidden = notes.hidden;
    retry.showRows(outcome.summary.find(([status]) => status === "unknown")?.[1] ?? 0);
  }

  onMessage(model, "outcome", signal, showOutcome);
  const element = section(
    "6 Outcome",
    headline,
    summary,
    tools(h("label", {}, "Show ", filter)),
    rows,
    moreRows,
    notesArea,
    retry.element,
    muted("report.to_csv(folder) writes these outcomes to CSV files."),
  );
  element.hidden = true;
  return { element, show: retry.show };
}

/** Return the area that sends unknown rows once more after a confirmation. */
function retryArea({ model }) {
  const words = h(
    "p",
    {},
    "These rows were sent, but their outcome is unknown. The service skips leads that are in the sequence with " +
      "the same fields. Leads that were removed since, or are stored with other fields, may be contacted twice. " +
      "Check the web app first.",
  );
  const yes = onceButton(
    () => model.get("state").report,
    (report) => post(model, { action: "retry", report }),
  );
  const no = button("Leave them unknown", () => ask(false));
  const question = h("div", { class: "outreach-notice outreach-warning", hidden: true }, words, tools(yes.element, no));
  const retry = button("Send unknown rows once more", () => ask(true));
  const element = h("div", {}, retry, question);

  function ask(on) {
    question.hidden = !on;
    retry.hidden = on;
    (on ? no : retry).focus();
  }

  function showRows(unknown) {
    element.hidden = !unknown;
    if (!unknown) {
      question.hidden = true;
      retry.hidden = false;
    }
    yes.element.textContent = `Send ${number(unknown)} row${unknown === 1 ? "" : "s"} once more`;
  }

  function show({ busy }) {
    retry.disabled = busy;
    yes.element.disabled = busy || yes.isUsed();
  }

  return { element, showRows, show };
}

function renderAddToSequence({ model, el, signal }) {
  makeRoot(el, "Add to sequence");
  const context = {
    model,
    signal,
    form: model.get("form"),
    value: () => model.get("value"),
    setValue: (part) => setTrait(model, "value", { ...context.value(), ...part }),
    update,
  };
  const reading = h("div", {}, busyArea(model, signal));
  // The messages of the last action, next to its button.
  context.messages = h("div", {}, reading, noticeArea(model, signal));
  followButtons(el, context.messages, signal);
  const sequence = sequenceSection(context);
  const columns = columnsSection(context);
  const settings = settingsSection(context);
  const check = checkSection(context);
  const send = sendSection(context);
  const outcome = outcomeSection(context);

  /** Show the available actions. */
  function update() {
    const state = model.get("state");
    const running = Boolean(state.phase);
    columns.show();
    const now = {
      state,
      running,
      busy: Boolean(model.get("busy")),
      hasDuplicates: columns.hasDuplicateFields(),
      isFresh: check.isFresh(),
    };
    sequence.show();
    settings.show();
    for (const part of [check, send, outcome]) part.show(now);
    reading.hidden = running;
  }

  el.append(
    sequence.element,
    columns.element,
    settings.element,
    check.element,
    send.element,
    outcome.element,
    followedCode(model, signal),
  );
  onTraits(model, ["value", "state", "busy"], signal, update);
  post(model, { action: "ready" });
}

export default { render: renderAddToSequence };
