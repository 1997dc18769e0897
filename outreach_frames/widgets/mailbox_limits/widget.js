const COLUMNS = ["Address", "Provider", "Status", "Daily limit", "New limit"];
const UNKNOWN = "not given";

/** Return a stand-in for a model, for values that the notebook must not keep. */
function localModel(values) {
  const listeners = new Set();
  return {
    get: (name) => values[name],
    on: (_event, listener) => listeners.add(listener),
    off: (_event, listener) => listeners.delete(listener),
    set: (name, value) => {
      values[name] = value;
      for (const listener of listeners) listener();
    },
  };
}

/** Return an input's limit: null where it is empty, "" where it is not a number. */
function askedLimit(input) {
  if (input.validity.badInput) return "";
  return input.value === "" ? null : Number(input.value);
}

function limitInput(label) {
  return numberInput({ class: "outreach-limit", "aria-label": label });
}

/** Make the two rows of a mailbox, the second for its result, with functions that update them. */
function mailboxRow(mailbox, { onSelect, onLimit }) {
  const name = mailbox.email ?? UNKNOWN;
  const select = h("input", { type: "checkbox", "aria-label": `Select ${name}`, onchange: onSelect });
  const input = limitInput(`New limit of ${name}`);
  const problem = h("span", { class: "outreach-problem", id: newId() });
  const result = h("td", { class: "outreach-result", colspan: COLUMNS.length + 1 });
  const resultRow = h("tr", { hidden: true }, result);
  input.addEventListener("input", () => onLimit(mailbox.id, askedLimit(input)));
  input.setAttribute("aria-describedby", problem.id);
  // A mailbox without an id cannot be changed.
  select.disabled = input.disabled = mailbox.id === null;
  const row = h(
    "tr",
    {},
    h("td", {}, select),
    h("th", { scope: "row", title: name }, name),
    h("td", {}, mailbox.provider ?? UNKNOWN),
    h("td", {}, statusLabel(mailbox.status)),
    h("td", { class: "outreach-number" }, mailbox.limit?.toLocaleString("en") ?? UNKNOWN),
    h("td", { class: "outreach-new-limit" }, input, problem),
  );
  const element = h("tbody", {}, row, resultRow);
  return {
    mailbox,
    element,
    select,
    input,
    showLimit: (limit, words) => {
      problem.textContent = words ?? "";
      input.setAttribute("aria-invalid", String(Boolean(words)));
      element.classList.toggle("outreach-changed", limit !== undefined);
      // What is being typed stays.
      if (!words && !hasFocus(input)) input.value = limit ?? "";
    },
    showResult: (shown) => {
      resultRow.hidden = !shown;
      result.textContent = shown?.detail ?? "";
      result.dataset.status = shown?.status ?? "";
    },
  };
}

function statusLabel(status) {
  const words = (status ?? UNKNOWN).replaceAll("_", " ");
  return h("span", { class: "outreach-status", "data-status": status ?? "" }, words);
}

function renderMailboxLimits({ model, el, signal }) {
  makeRoot(el, "Mailbox limits");
  const code = localModel({ code: "" });
  let rows = [];
  let plan = { revision: -1, limits: {}, changes: [], problems: {} };
  let listed = null;
  let selected = new Set();
  // The revision that this page has sent: a second click does nothing.
  let sent = null;

  const sendLimit = (id, limit) => post(model, { action: "edit", limits: { [id]: limit } });

  const reload = h(
    "button",
    { type: "button", onclick: () => post(model, { action: "reload" }) },
    "Reload",
  );
  const filter = h("input", {
    type: "search",
    placeholder: "part of an address",
    oninput: () => showRows(),
  });
  const status = h("select", { onchange: () => showRows() });
  const bulk = limitInput("Set selected to");
  const setBulk = h("button", { type: "button", onclick: () => setSelected() }, "Set");
  bulk.addEventListener("keydown", (event) => {
    if (event.key === "Enter") setSelected();
  });
  const selection = h("span", { class: "outreach-muted", role: "status" });
  const all = h("input", { type: "checkbox", "aria-label": "Select all shown", disabled: true });
  all.addEventListener("change", () => {
    for (const row of shownRows()) mark(row, all.checked && row.mailbox.id !== null);
    showSelection();
  });
  const head = h(
    "thead",
    {},
    h("tr", {}, h("th", { scope: "col" }, all), COLUMNS.map((name) => h("th", { scope: "col" }, name))),
  );
  const table = h("table", {}, head);
  const empty = h("p", { class: "outreach-muted outreach-empty" });
  const capacity = h("p", { class: "outreach-capacity" });
  const changes = h("ul", { class: "outreach-changes", "aria-label": "Pending changes" });
  const nothing = h("p", { class: "outreach-muted" }, "No limit is changed yet.");
  const apply = h("button", { type: "button", class: "outreach-primary" }, "");
  const discard = h(
    "button",
    { type: "button", onclick: () => post(model, { action: "discard" }) },
    "Discard",
  );
  apply.addEventListener("click", () => {
    if (sent === plan.revision) return;
    sent = plan.revision;
    post(model, { action: "apply", revision: plan.revision });
    showButtons();
  });

  const isShown = ({ mailbox }) =>
    (mailbox.email ?? "").toLowerCase().includes(filter.value.trim().toLowerCase()) &&
    (status.value === "" || mailbox.status === status.value);
  const shownRows = () => rows.filter((row) => !row.element.hidden);

  function mark(row, on) {
    row.select.checked = on;
    if (on) selected.add(row.mailbox.id);
    else selected.delete(row.mailbox.id);
  }

  function setSelected() {
    const limit = askedLimit(bulk);
    if (selected.size === 0 || limit === null) return;
    post(model, {
      action: "edit",
      limits: Object.fromEntries([...selected].map((id) => [id, limit])),
    });
  }

  function showSelection() {
    const shown = shownRows();
    const hidden = rows.filter((row) => row.element.hidden && row.select.checked).length;
    const count = shown.filter((row) => row.select.checked).length;
    all.checked = shown.length > 0 && count === shown.length;
    all.indeterminate = count > 0 && count < shown.length;
    all.disabled = shown.length === 0;
    setBulk.disabled = selected.size === 0;
    selection.textContent =
      `${shown.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} shown, ` +
      `${selected.size.toLocaleString("en")} selected` +
      (hidden ? ` (${hidden.toLocaleString("en")} of them not shown)` : "");
  }

  function showRows() {
    for (const row of rows) row.element.hidden = !isShown(row);
    empty.textContent = rows.length ? "No mailbox matches." : "The account has no mailboxes.";
    empty.hidden = shownRows().length > 0;
    showSelection();
  }

  function showButtons() {
    const busy = Boolean(model.get("busy"));
    const sending = busy && model.get("progress")[1] > 0;
    const wrong = Object.keys(plan.problems).length > 0;
    reload.disabled = busy;
    apply.disabled = busy || wrong || plan.changes.length === 0 || sent === plan.revision;
    discard.disabled = sending || (plan.changes.length === 0 && !wrong);
    for (const row of rows) row.input.readOnly = sending;
  }

  function showPlan() {
    for (const { mailbox, showLimit } of rows) {
      showLimit(plan.limits[mailbox.id], plan.problems[mailbox.id]);
    }
    changes.replaceChildren(
      ...plan.changes.map((one) =>
        h(
          "li",
          {},
          `${one.email || one.id}: `,
          h("strong", {}, `${one.before?.toLocaleString("en") ?? UNKNOWN} → ${one.after.toLocaleString("en")}`),
        ),
      ),
    );
    changes.hidden = plan.changes.length === 0;
    nothing.hidden = !changes.hidden;
    apply.textContent = plan.button;
    capacity.textContent = plan.capacity;
    code.set("code", plan.code);
    showButtons();
  }

  hear(model, "mailboxes", signal, (message) => {
    for (const row of rows) row.showResult(message.results[row.mailbox.id]);
    // The same list may come twice; what is being typed stays.
    const list = JSON.stringify(message.mailboxes);
    if (list === listed) return;
    listed = list;
    const focused = rows.find((row) => hasFocus(row.input) || hasFocus(row.select));
    const field = focused && hasFocus(focused.input) ? "input" : "select";
    const chosen = status.value;
    status.replaceChildren(
      h("option", { value: "" }, "all"),
      ...message.statuses.map((name) => h("option", { value: name }, name.replaceAll("_", " "))),
    );
    status.value = message.statuses.includes(chosen) ? chosen : "";
    rows = message.mailboxes.map((mailbox) => {
      const row = mailboxRow(mailbox, {
        onSelect: () => {
          mark(row, row.select.checked);
          showSelection();
        },
        onLimit: sendLimit,
      });
      row.showResult(message.results[mailbox.id]);
      return row;
    });
    const before = selected;
    selected = new Set();
    for (const row of rows) mark(row, row.mailbox.id !== null && before.has(row.mailbox.id));
    table.replaceChildren(head, ...rows.map((row) => row.element));
    showRows();
    showPlan();
    if (focused) rows.find((row) => row.mailbox.id === focused.mailbox.id)?.[field].focus();
  });
  hear(model, "plan", signal, (message) => {
    plan = message;
    showPlan();
  });
  hear(model, "result", signal, (message) => {
    rows.find((row) => row.mailbox.id === message.id)?.showResult(message);
  });

  el.append(
    h("div", { class: "outreach-head" }, h("h3", {}, "Mailboxes"), reload),
    noticeArea(model, signal),
    h(
      "div",
      { class: "outreach-tools" },
      h("label", {}, "Address ", filter),
      h("label", {}, "Status ", status),
      selection,
    ),
    h(
      "div",
      { class: "outreach-table outreach-mailboxes", tabindex: "0", role: "region", "aria-label": "Mailboxes" },
      table,
      empty,
    ),
    h("div", { class: "outreach-tools" }, h("label", {}, "Set selected to ", bulk), setBulk),
    h("h3", {}, "Pending changes"),
    changes,
    nothing,
    capacity,
    busyArea(model, signal, { progress: "progress" }),
    h("div", { class: "outreach-tools" }, apply, discard),
    codeArea(code, signal),
  );
  follow(model, ["busy", "progress"], signal, showButtons);
  post(model, { action: "ready" });
}

export default { render: renderMailboxLimits };
