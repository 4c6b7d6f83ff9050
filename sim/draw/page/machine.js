/* machine.js - the part of the machine that carried something: devices below, switches above them, links by load.
 *
 * Parts are placed by their names: "node3: device1 -> nvswitch0", "node1.nic5 -> leaf5". What is of a node stands above
 * its devices; the rest is spread over the width. Rows are as far up as the part is from devices. */
(() => {
  const load = d3.scaleLinear().domain([0, 0.25, 0.5, 0.75, 1]).range(["#dbe7f1", "#8fc1e3", "#3a8fc7", "#0b5394", "#062a4f"]).clamp(true);

  const ends = (name) => {
    const inside = /^(node\d+): (.*) -> (.*)$/.exec(name), between = /^(.*) -> (.*)$/.exec(name);
    if (inside) return [inside[1] + "." + inside[2], inside[1] + "." + inside[3]];
    return between ? [between[1], between[2]] : null;
  };
  const classOf = (id) => id.replace(/^node\d+\./, "").replace(/\d+.*$/, "").replace(/[\s.(]+$/, "");
  const nodeOf = (id) => { const m = /^node(\d+)\./.exec(id); return m ? +m[1] : -1; };

  /* Vertices and undirected edges, with the higher load of both directions. */
  const graph = (links) => {
    const edges = new Map(), vertices = new Map();
    for (const l of links) {
      const e = ends(l.name);
      if (!e) continue;
      const key = [...e].sort().join(" — "), old = edges.get(key);
      if (!old || old.busy_share < l.busy_share) edges.set(key, { ...l, ends: e, both: (old ? old.bytes : 0) + l.bytes });
      else old.both += l.bytes;
      for (const v of e) if (!vertices.has(v)) vertices.set(v, { id: v, near: [], row: -1, node: nodeOf(v), kind: classOf(v) });
    }
    for (const e of edges.values()) {
      vertices.get(e.ends[0]).near.push(e.ends[1]);
      vertices.get(e.ends[1]).near.push(e.ends[0]);
    }
    return { edges: [...edges.values()], vertices };
  };
  /* How far from a device each is; all of one kind stand in one row. */
  const rank = ({ vertices }) => {
    const least = new Map();
    let front = [...vertices.values()].filter((v) => v.kind === "device");
    if (!front.length) front = [...vertices.values()].filter((v) => v.node >= 0).slice(0, 1).concat([...vertices.values()].slice(0, 1));
    for (let row = 0; front.length; row++) {
      for (const v of front) v.row = row;
      front = [...new Set(front.flatMap((v) => v.near))].map((id) => vertices.get(id)).filter((v) => v.row < 0);
    }
    for (const v of vertices.values()) least.set(v.kind, Math.max(v.row, least.get(v.kind) ?? 0));
    const kinds = [...least.keys()].sort((a, b) => least.get(a) - least.get(b) || d3.ascending(a, b));
    for (const v of vertices.values()) v.row = kinds.indexOf(v.kind);
    return kinds;
  };
  const natural = (a, b) => a.id.localeCompare(b.id, "en", { numeric: true });

  const place = (g, kinds, left, right, rowHeight, top) => {
    const nodes = [...new Set([...g.vertices.values()].map((v) => v.node).filter((n) => n >= 0))].sort((a, b) => a - b);
    const wide = (right - left) / Math.max(1, nodes.length), bottom = top + (kinds.length - 1) * rowHeight;
    kinds.forEach((kind, row) => {
      const all = [...g.vertices.values()].filter((v) => v.kind === kind).sort(natural);
      for (const [of, from, room] of [...nodes.map((n, i) => [n, left + i * wide + wide * 0.06, wide * 0.88]), [-1, left, right - left]]) {
        const some = all.filter((v) => v.node === of);
        some.forEach((v, i) => { v.x = from + ((i + 0.5) * room) / some.length; v.y = bottom - row * rowHeight; });
      }
    });
    return { nodes, wide };
  };

  const draw = (svg, width, plot, machine) => {
    const g = graph(machine.links), kinds = rank(g), narrow = width < 560, left = narrow ? 4 : 92, top = narrow ? 30 : 16, rowHeight = 74;
    const { nodes, wide } = place(g, kinds, left, width - 6, rowHeight, top), bottom = top + (kinds.length - 1) * rowHeight;
    const tip = plot.tip || (plot.tip = dl.tip(plot)), across = Math.max(1.6, Math.min(9, (wide * 0.6) / Math.max(1, machine.devices_per_node)));
    g.edges.sort((a, b) => a.busy_share - b.busy_share);
    for (const e of g.edges) {
      const [a, b] = e.ends.map((id) => g.vertices.get(id));
      const arc = a.row === b.row ? `M${a.x},${a.y}Q${(a.x + b.x) / 2},${a.y - Math.min(56, 14 + Math.abs(a.x - b.x) / 6)} ${b.x},${b.y}` : `M${a.x},${a.y}L${b.x},${b.y}`;
      const path = svg.append("path").attr("d", arc).attr("fill", "none").attr("stroke", load(e.busy_share / machine.most)).attr("stroke-width", 0.6 + 1.4 * (e.busy_share / machine.most));
      dl.hover(path, tip, (event) => tip.show(event, e.name, `busy ${dl.percent(e.busy_share)} of the step`, `${dl.bytes(e.bytes)}, ${dl.bytes(e.both)} both ways`));
    }
    for (const v of g.vertices.values()) {
      const isDevice = v.row === 0;
      svg.append("rect").attr("x", v.x - across / 2).attr("y", v.y - across / 2).attr("width", across).attr("height", across)
        .attr("rx", isDevice ? 1 : across / 2).attr("fill", isDevice ? "#1c1c1c" : "#fff").attr("stroke", "#1c1c1c").attr("stroke-width", 0.8)
        .append("title").text(v.id);
    }
    kinds.forEach((kind, row) => {
      const y = bottom - row * rowHeight;
      svg.append("text").attr("class", "soft halo").attr("x", 0).attr("y", narrow ? y - 16 : y + 4).text(kind);
    });
    let free = -1;
    nodes.forEach((n, i) => {
      const text = narrow ? String(n) : "node " + n, x = left + (i + 0.5) * wide, half = dl.textWidth(text) / 2;
      svg.append("line").attr("class", "rule").attr("x1", left + i * wide + wide * 0.04).attr("x2", left + (i + 1) * wide - wide * 0.04).attr("y1", bottom + 12).attr("y2", bottom + 12);
      if (x - half < free) return;
      svg.append("text").attr("x", x).attr("y", bottom + 28).attr("text-anchor", "middle").text(text);
      free = x + half + 8;
    });
    const key = svg.append("g").attr("transform", `translate(${left},${bottom + 46})`), n = 40, barWidth = Math.min(220, width - left - 10);
    for (let i = 0; i < n; i++) key.append("rect").attr("x", (i * barWidth) / n).attr("width", barWidth / n + 0.5).attr("height", 8).attr("fill", load(i / (n - 1)));
    key.append("text").attr("class", "soft").attr("y", 24).text("busy 0 %");
    key.append("text").attr("class", "soft").attr("x", barWidth).attr("y", 24).attr("text-anchor", "end").text(dl.percent(machine.most) + " of the step");
    svg.attr("viewBox", `0 0 ${width} ${bottom + 78}`).attr("height", bottom + 78);
  };

  const unknown = (data) => dl.figure({ id: "machine", short: "Machine", title: "What the links carried is not known",
    what: data.machine.unknown || "Nothing was sent between devices." });

  dl.views.machine = (data) => {
    const machine = data.machine;
    if (!machine.links.length) return unknown(data);
    machine.most = d3.max(machine.links, (l) => l.busy_share);
    const busiest = machine.links[0];
    let plot;
    dl.figure({ id: "machine", short: "Machine", title: `The busiest link, ${busiest.name}, is busy ${dl.percent(busiest.busy_share)} of the step`,
      what: `The part of ${data.answer.inputs.topology} that carried something: devices at the bottom, what connects them above. Dark links are busy, by bytes over bandwidth.`,
      caption: (machine.links_left_out ? `The ${dl.count(machine.links.length)} links that were busiest, ${dl.count(machine.links_left_out)} more are left out. ` : "") + "Only what was simulated message by message or as flows is on links; collectives that were priced without contention are not.",
      build: (p) => { plot = p; }, draw: (svg, width) => draw(svg, width, plot, machine),
      table: () => dl.table(["link", dl.right("busy"), dl.right("bytes")], machine.links.slice(0, 100).map((l) => [l.name, dl.right(dl.percent(l.busy_share)), dl.right(dl.bytes(l.bytes))])) });
  };
})();
