/* numbers.js - the answer's figures, what was asked, and every number of the files that were read with its source. */
(() => {
    const flat = (object, path = "") => Object.entries(object).flatMap(
        ([k, v]) => v && typeof v === "object" && !Array.isArray(v) ? flat(v, path + k + ".") : [[path + k, v]]);
    const leaf = (path) => path.split(".").pop();
    dl.told = (path, v) =>
        (leaf(path) === "sha256"    ? v.slice(0, 12) + "…" :
             Array.isArray(v)       ? v.join(", ") || "–" :
             typeof v === "boolean" ? (v ? "yes" : "no") :
                                      dl.by(leaf(path))(v));

    const numbersOf = (a) =>
        flat({...a, inputs: undefined, host: undefined, files: undefined, causes: undefined, verdict: undefined})
            .filter(([, v]) => v != null && !Array.isArray(v));

    /* By the last key of a path that has a unit: peak_flop_per_s.fp16. */
    const valueOf = (path, x) => dl.by(path.split(/[./]/).reverse().find((key) => dl.unitOf(key)) || "")(x);

    /* The constants that move the step most, with their intervals. */
    const drawElasticities = (svg, width, items) => {
        const row = 32, bottom = items.length * row, most = d3.max(items, (e) => Math.abs(e.elasticity)),
              x = d3.scaleLinear().domain([-most, most]).nice().range([4, width - 4]);
        items.forEach((e, i) => {
            const [value, low, high] = [e.value, e.low, e.high].map((v) => valueOf(e.path, v)),
                               [from, to] = [x(0), x(e.elasticity)].sort(d3.ascending);
            dl.put(svg, "text", {x: 0, y: i * row + 12}, dl.cut(`${e.path}: ${value} (${low} to ${high})`, width - 4));
            dl.put(svg, "rect", {
                x: from,
                y: i * row + 17,
                height: 9,
                width: Math.max(1, to - from),
                fill: e.elasticity < 0 ? "#0072b2" : "#d55e00"
            });
        });
        dl.put(svg, "line", {class: "rule", x1: x(0), x2: x(0), y1: 16, y2: bottom, "stroke-opacity": 0.3});
        dl.axisBelow(svg, x, bottom + 2, "percent for one percent more", d3.format("~g"));
        dl.size(svg, width, bottom + 42);
    };
    dl.sensitivities = (id, what, list) => {
        const items = (list || []).filter((e) => Math.abs(e.elasticity) > 1e-4).slice(0, 14), first = items[0];
        if (!first) return;
        dl.figure({
            id,
            short: "Sensitivity",
            title: `${what} depends most on ${first.path}: ${
                (first.elasticity < 0 ? "−" : "+") + Math.abs(first.elasticity).toFixed(2)} % for 1 % more`,
            what: `How much ${what.toLowerCase()} changes, in percent, if a constant is one percent larger.`,
            draw: (svg, width) => drawElasticities(svg, width, items),
            table: () => dl.table(
                ["constant", dl.right("value"), dl.right("low"), dl.right("high"), dl.right("elasticity"), "grade"],
                list.map(
                    (e) =>
                        [e.path, ...[e.value, e.low, e.high].map((v) => dl.right(valueOf(e.path, v))),
                         dl.right(e.elasticity.toFixed(4)), e.grade || ""])),
        });
    };

    const scroll = (title, table) =>
        dl.make("div", {}, dl.make("h3", {}, title), dl.make("div", {class: "scroll", tabindex: "0"}, table));
    const askedFigure = (a) => {
        const asked = flat(a.inputs).filter(([, v]) => v != null && v !== "").map(([k, v]) => [k, dl.told(k, v)]);
        const answered = numbersOf(a).map(([k, v]) => [k, dl.right(dl.told(k, v))]);
        dl.figure({
            id: "numbers",
            short: "Numbers",
            title: "What was asked, and what was answered",
            build: (plot) => plot.append(dl.make(
                "div", {class: "two"}, scroll("Asked", dl.table(["input", "value"], asked)),
                scroll("Answered", dl.table(["figure", dl.right("value")], answered))))
        });
    };

    const sourceRow =
        (s) => [s.where.replace(/[/_]/g, "$&\u200b"), dl.right(valueOf(s.where, s.value)), s.grade, s.source];
    const sourcesFigure = (sources) => {
        const counts = d3.rollups(sources, (v) => v.length, (s) => s.grade).sort((x, y) => y[1] - x[1]);
        const box = dl.make("div", {class: "scroll", tabindex: "0"}),
              find = dl.make(
                  "input",
                  {type: "search", placeholder: "bandwidth, assumed …", "aria-label": "Search numbers and sources"});
        const fill = () => {
            const wanted = find.value.trim().toLowerCase(),
                  some = sources.filter((s) => `${s.where} ${s.grade} ${s.source}`.toLowerCase().includes(wanted));
            box.replaceChildren(dl.table(
                ["number", dl.right("value"), "grade", "source"], some.slice(0, 400).map(sourceRow), "wide texts"));
        };
        find.addEventListener("input", fill);
        fill();
        dl.figure({
            id: "sources",
            short: "Sources",
            title: `${dl.count(sources.length)} numbers went in: ` +
                counts.map(([grade, n]) => `${dl.count(n)} ${grade}`).join(", "),
            what: "Every number of the files that this run read, how sure it is, and where it comes from.",
            build: (plot, tools) => {
                tools.append(find);
                plot.append(box);
            }
        });
    };

    dl.views.numbers = (data) => {
        dl.sensitivities("sensitivity", "The step", data.answer.sensitivity);
        askedFigure(data.answer);
        if (data.sources.length) sourcesFigure(data.sources);
    };
})();
