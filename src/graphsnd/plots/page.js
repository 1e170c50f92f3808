// The live part of a page: two charts, one panel and one table that know each other. Plotly draws.
"use strict";
(() => {
  const team = JSON.parse(document.getElementById("team").textContent);
  const find = (id) => document.getElementById(id);
  const agents = team.names.length, narrow = () => window.innerWidth < 640;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const state = { order: Object.keys(team.orders)[0], roles: team.count, agent: null };
  const config = { displayModeBar: false, responsive: true };
  const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

  // Plotly reads a little HTML in labels, and names may hold some.
  const labels = team.names.map((name) => name.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;"));
  const short = (i) => (team.names[i].length > 16 ? labels[i].slice(0, 15) + "…" : labels[i]);
  const matrix = labels.map((_, i) => labels.map((_, j) => (i === j && team.complete ? 0 : null)));
  const set = (i, j, at) => { matrix[i][j] = matrix[j][i] = team.distances[at]; };
  team.edges.forEach(([i, j], at) => set(i, j, at));
  for (let i = 0, at = 0; team.complete && i < agents; i++) for (let j = i + 1; j < agents; j++) set(i, j, at++);
  const colour = (light) => (dark.matches && team.dark[light]) || light;
  const role = (agent) => (team.roles.length ? team.roles[state.roles - 1][agent] : 0);
  const look = (group) => colour(team.colours[group % team.colours.length]);
  const SYMBOLS = ["circle", "square", "triangle-up", "diamond", "cross", "x"];

  function layout(extra) {
    const line = { gridcolor: colour("#D5DAE0"), zeroline: false, linecolor: colour("#5F6771"), automargin: true };
    const { xaxis, yaxis, ...rest } = extra;
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, dragmode: false,
      font: { family: FONT, size: 12, color: colour("#1B1F24") }, margin: { l: 8, r: 8, t: 8, b: 8 },
      hoverlabel: { font: { family: FONT, size: 13 } }, ...rest,
      xaxis: { ...line, ...xaxis, fixedrange: true }, yaxis: { ...line, ...yaxis, fixedrange: true },
    };
  }

  // The strips of roles beside the heat map, one rectangle for each run of agents with one role.
  function strips(order) {
    const shapes = [];
    for (let start = 0, stop; start < agents; start = stop) {
      for (stop = start; stop < agents && role(order[stop]) === role(order[start]); stop++);
      const along = [start - 0.5, stop - 0.5], fill = { fillcolor: look(role(order[start])), line: { width: 0 } };
      shapes.push({ ...fill, xref: "x", yref: "y domain", x0: along[0], x1: along[1], y0: 1.01, y1: 1.035 });
      shapes.push({ ...fill, yref: "y", xref: "x domain", y0: along[0], y1: along[1], x0: -0.035, x1: -0.01 });
    }
    return team.roles.length ? shapes : [];
  }

  function drawHeatmap() {
    const order = team.orders[state.order], place = find("heatmap");
    const room = 14 + 6.6 * Math.max(...team.names.map((name) => Math.min(16, name.length)));
    const side = Math.max(160, Math.min(place.parentElement.clientWidth - 24, 620) - room - (narrow() ? 20 : 90));
    const every = Math.ceil((agents * 13) / side);
    const ticks = order.filter((_, at) => at % every === 0);
    const axis = { type: "category", tickvals: ticks.map((i) => labels[i]), ticktext: ticks.map(short), showgrid: false };
    const shapes = strips(order);
    if (state.agent !== null) {
      const at = order.indexOf(state.agent), line = { color: colour("#D55E00"), width: 1.5 };
      shapes.push({ type: "rect", xref: "x domain", yref: "y", x0: 0, x1: 1, y0: at - 0.5, y1: at + 0.5, line });
    }
    const bar = { thickness: 10, len: 0.95, outlinewidth: 0, title: { text: team.unit, side: "right" } };
    const trace = {
      type: "heatmap", x: order.map((i) => labels[i]), y: order.map((i) => labels[i]), colorscale: "Viridis", zmin: 0,
      z: order.map((i) => order.map((j) => matrix[i][j])), hoverongaps: false, colorbar: bar, showscale: !narrow(),
      hovertemplate: "%{y} and %{x}<br><b>%{z:.4g}</b><extra></extra>",
    };
    return Plotly.react(place, [trace], layout({
      height: side + room + 40, shapes, xaxis: { ...axis, tickangle: -90, ticklabelstandoff: 2, constrain: "domain" },
      yaxis: { ...axis, autorange: "reversed", scaleanchor: "x", constrain: "domain", ticklabelstandoff: 14 },
      margin: { l: 8, r: 8, t: 22, b: 8 },
    }), config);
  }

  function drawMap() {
    if (!team.places.length) return null;
    const groups = [...new Set(team.names.map((_, i) => role(i)))].sort((a, b) => a - b);
    const traces = groups.map((group) => {
      const mine = team.names.map((_, i) => i).filter((i) => role(i) === group);
      return {
        type: "scatter", mode: agents <= 12 ? "markers+text" : "markers", text: mine.map((i) => labels[i]),
        x: mine.map((i) => team.places[i][0]), y: mine.map((i) => team.places[i][1]), customdata: mine,
        textposition: "top center", textfont: { size: 11 }, hovertemplate: `%{text}<br>role ${group + 1}<extra></extra>`,
        marker: {
          size: mine.map((i) => (i === state.agent ? 16 : 9)), color: look(group), symbol: SYMBOLS[group % 6],
          line: { width: mine.map((i) => (i === state.agent ? 3 : 0.5)), color: colour(state.agent === null ? "#FFFFFF" : "#1B1F24") },
        },
      };
    });
    const place = find("map"), height = Math.min(place.parentElement.clientWidth, 440);
    return Plotly.react(place, traces, layout({
      height, hovermode: "closest", xaxis: { title: { text: "near agents act alike" } },
      yaxis: { title: { text: team.unit }, scaleanchor: "x" },
    }), config);
  }

  // The agents that act most like the picked one, nearest at the top.
  function drawNeighbours() {
    const place = find("neighbours"), agent = state.agent;
    find("picked").textContent = agent === null ? "Click an agent to see who acts most like it."
      : `${team.names[agent]} acts most like these, by distance in ${team.unit}:`;
    place.hidden = agent === null;
    if (agent === null) return null;
    const others = team.names.map((_, i) => i).filter((i) => i !== agent && matrix[agent][i] !== null);
    const near = others.sort((i, j) => matrix[agent][i] - matrix[agent][j]).slice(0, 10);
    const trace = {
      type: "bar", orientation: "h", x: near.map((i) => matrix[agent][i]), y: near.map((i) => labels[i]),
      text: near.map((i) => matrix[agent][i].toPrecision(3)), textposition: "auto", customdata: near,
      marker: { color: near.map((i) => look(role(i))) }, hovertemplate: "%{y}<br><b>%{x:.4g}</b><extra></extra>",
    };
    return Plotly.react(place, [trace], layout({
      height: 34 + 24 * near.length, bargap: 0.25, xaxis: { rangemode: "tozero" },
      yaxis: { type: "category", autorange: "reversed", tickvals: near.map((i) => labels[i]), ticktext: near.map(short) },
    }), config);
  }

  const table = find("agents"), rows = [...table.tBodies[0].rows];
  rows.forEach((row, at) => { row.dataset.agent = team.rows[at]; });

  function fillTable() {
    for (const row of rows) {
      const agent = Number(row.dataset.agent);
      row.classList.toggle("picked", agent === state.agent);
      if (team.roles.length) {
        row.cells[1].textContent = `${role(agent) + 1}`;
        row.cells[1].style.setProperty("--role", look(role(agent)));
      }
    }
  }

  function sortBy(column, head) {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const text = (row) => row.cells[column].textContent;
    rows.sort((a, b) => (up ? 1 : -1) * text(a).localeCompare(text(b), "en", { numeric: true }));
    table.tBodies[0].append(...rows);
  }

  function draw() {
    const groups = find("roles-shown");
    if (groups) groups.textContent = `${state.roles}${state.roles === team.count ? ", as found" : ""}`;
    fillTable();
    return Promise.all([drawHeatmap(), drawMap(), drawNeighbours()]);
  }
  const change = (what) => { Object.assign(state, what); return draw(); };
  const pick = (agent) => change({ agent: agent === state.agent ? null : agent });

  document.documentElement.classList.add("live");
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.addEventListener("click", () => sortBy(column, head));
    head.append(button);
  });
  rows.forEach((row) => row.addEventListener("click", () => pick(Number(row.dataset.agent))));
  find("order").addEventListener("change", (event) => change({ order: event.target.value }));
  if (find("roles")) find("roles").addEventListener("input", (event) => change({ roles: Number(event.target.value) }));
  dark.addEventListener("change", draw);
  let width = window.innerWidth; // phones change the height whenever their bars come and go
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; draw(); } });
  draw().then(() => {
    find("heatmap").on("plotly_click", ({ points }) => pick(labels.indexOf(points[0].y)));
    for (const id of ["map", "neighbours"]) {
      const place = find(id);
      if (place && place.on) place.on("plotly_click", ({ points }) => pick(points[0].customdata));
    }
    document.documentElement.dataset.ready = "yes";
  });
})();
