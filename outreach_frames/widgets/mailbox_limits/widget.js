const COLUMNS = ["Address", "Provider", "Status", "Daily limit", "New limit"];
const UNKNOWN = "not given";

/** Return an input's limit: null if empty, "" if not a number. */
function readLimit(input) {
  if (input.validity.badInput) return "";
  return input.value === "" ? null : Number(input.value);
}

const shownLimit = (limit) => (limit === null ? UNKNOWN : number(limit));

const labelOf = (status) => status.replaceAll("_", " ");

function limitInput(label, listeners) {
  return numberInput({ class: "outreach-limit", "aria-label": label, ...listeners });
}

/** Make a mailbox's row and a second row for its result, with functions that update both. */
function mailboxRow(mailbox, onSelect, onLimit) {
  const name = mailbox.email ?? UNKNOWN;
  const select = h("input", { type: "checkbox", "aria-label": `Select ${name}`, onchange: onSelect });
  const input = limitInput(`New limit of ${name}`, { oninput: () => onLimit(mailbox.id, readLimit(input)) });
  const problem = h("span", { class: "outreach-problem", id: newId() });
  const result = h("td", { class: "outreach-result", colspan: COLUMNS.length + 1 });
  const resultRow = h("tr", { hidden: true }, result);
  const status = h("span", { class: "outreach-status", "data-status": mailbox.status ?? "" });
  status.textContent = labelOf(mailbox.status ?? UNKNOWN);
  input.setAttribute("aria-describedby", problem.id);
  // A mailbox without an id cannot be changed.
  select.disabled = input.disabled = mailbox.id === null;
  const row = h(
    "tr",
    {},
    h("td", {}, select),
    h("th", { scope: "row", title: name }, name),
    h("td", {}, mailbox.provider ?? UNKNOWN),
    h("td", {}, status),
    h("td", { class: "outreach-number" }, shownLimit(mailbox.limit)),
    h("td", { class: "outreach-new-limit" }, input, problem),
  );
  const element = h("tbody", {}, row, resultRow);
  return {
    mailbox,
    element,
    select,
    input,
    showLimit: (limit, words) => {
      showProblem(input, problem, words ?? "");
      element.classList.toggle("outreach-changed", limit !== undefined);
      // Keep text that is being typed.
      if (!words && !hasFocus(input)) input.value = limit ?? "";
    },
    showResult: (shown) => {
      resultRow.hidden = !shown;
      result.textContent = shown?.detail ?? "";
      result.dataset.status = shown?.status ?? "";
    },
  };
}

function renderMailboxLimits({ model, el, signal }) {
  makeRoot(el, "Mailbox limits");
  const code = codeArea();
  let rows = [];
  let plan = { revision: -1, limits: {}, changes: [], problems: {} };
  let listed = null;

  const sendLimit = (id, limit) => post(model, { action: "edit", limits: { [id]: limit } });

  const reload = button("Reload", () => post(model, { action: "reload" }));
  const filter = searchInput("part of an address", () => showRows());
  const status = h("select", { onchange: () => showRows() });
  const bulk = limitInput("Set selected to", { onkeydown: (event) => event.key === "Enter" && setSelected() });
  const setBulk = button("Set", () => setSelected());
  const selection = h("span", { class: "outreach-muted", role: "status" });
  const all = h("input", { type: "checkbox", "aria-label": "Select all shown", disabled: true });
  all.addEventListener("change", () => {
    for (const { select } of shownRows()) select.checked = all.checked && !select.disabled;
    showSelection();
  });
  const head = h(
    "thead",
    {},
    h("tr", {}, h("th", { scope: "col" }, all), COLUMNS.map((name) => h("th", { scope: "col" }, name))),
  );
  const table = h("table", {}, head);
  const empty = h("p", { class: "outreach-muted outreach-empty" });
  const capacity = h("p", {});
  const changes = h("ul", { class: "outreach-changes", "aria-label": "Pending changes" });
  const nothing = muted("No limit is changed yet.");
  const apply = onceButton(
    () => plan.revision,
    (revision) => post(model, { action: "apply", revision }),
    { class: "outreach-primary" },
  );
  const discard = button("Discard", () => post(model, { action: "discard" }));

  const isShown = ({ mailbox }) =>
    (mailbox.email ?? "").toLowerCase().includes(filter.value.trim().toLowerCase()) &&
    (status.value === "" || mailbox.status === status.value);
  const shownRows = () => rows.filter((row) => !row.element.hidden);

  const selected = () => rows.filter((row) => row.select.checked);

  function setSelected() {
    const limit = readLimit(bulk);
    const ids = selected().map((row) => row.mailbox.id);
    if (ids.length === 0 || limit === null) return;
    post(model, { action: "edit", limits: Object.fromEntries(ids.map((id) => [id, limit])) });
  }

  function showSelection() {
    const shown = shownRows();
    const count = selected().length;
    const visible = shown.filter((row) => row.select.checked).length;
    all.checked = shown.length > 0 && visible === shown.length;
    all.indeterminate = visible > 0 && visible < shown.length;
    all.disabled = shown.length === 0;
    setBulk.disabled = count === 0;
    selection.textContent =
      `${number(shown.length)} of ${number(rows.length)} shown, ${number(count)} selected` +
      (count > visible ? ` (${number(count - visible)} of them not shown)` : "");
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
    apply.element.disabled = busy || wrong || plan.changes.length === 0 || apply.isUsed();
    discard.disabled = sending || (plan.changes.length === 0 && !wrong);
    for (const row of rows) row.input.readOnly = sending;
  }

  function showPlan() {
    for (const { mailbox, showLimit } of rows) {
      showLimit(plan.limits[mailbox.id], plan.problems[mailbox.id]);
    }
    const limits = ({ before, after }) => h("strong", {}, `${shownLimit(before)} → ${number(after)}`);
    fillList(changes, plan.changes.map((one) => [`${one.email || one.id}: `, limits(one)]));
    nothing.hidden = !changes.hidden;
    apply.element.textContent = plan.button;
    capacity.textContent = plan.capacity;
    code.show(plan.code);
    showButtons();
  }

  onMessage(model, "mailboxes", signal, (message) => {
    for (const row of rows) row.showResult(message.results[row.mailbox.id]);
    // Keep text that is being typed if the same list arrives again.
    const list = JSON.stringify(message.mailboxes);
    if (list === listed) return;
    listed = list;
    const focused = rows.find((row) => hasFocus(row.input) || hasFocus(row.select));
    const field = focused && hasFocus(focused.input) ? "input" : "select";
    const chosen = status.value;
    const options = message.statuses.map((name) => h("option", { value: name }, labelOf(name)));
    setChildren(status, h("option", { value: "" }, "all"), options);
    status.value = message.statuses.includes(chosen) ? chosen : "";
    const before = new Set(selected().map((row) => row.mailbox.id));
    rows = message.mailboxes.map((mailbox) => {
      const row = mailboxRow(mailbox, showSelection, sendLimit);
      row.showResult(message.results[mailbox.id]);
      row.select.checked = before.has(mailbox.id);
      return row;
    });
    setChildren(table, head, rows.map((row) => row.element));
    showRows();
    showPlan();
    if (focused) rows.find((row) => row.mailbox.id === focused.mailbox.id)?.[field].focus();
  });
  onMessage(model, "plan", signal, (message) => {
    plan = message;
    showPlan();
  });
  onMessage(model, "result", signal, (message) => {
    rows.find((row) => row.mailbox.id === message.id)?.showResult(message);
  });

  el.append(
    h("div", { class: "outreach-tools outreach-head" }, h("h3", {}, "Mailboxes"), reload),
    noticeArea(model, signal),
    tools(h("label", {}, "Address ", filter), h("label", {}, "Status ", status), selection),
    region("Mailboxes", "outreach-mailboxes", table, empty),
    tools(h("label", {}, "Set selected to ", bulk), setBulk),
    h("h3", {}, "Pending changes"),
    changes,
    nothing,
    capacity,
    busyArea(model, signal),
    tools(apply.element, discard),
    code.element,
  );
  onTraits(model, ["busy", "progress"], signal, showButtons);
  post(model, { action: "ready" });
}

export default { render: renderMailboxLimits };
