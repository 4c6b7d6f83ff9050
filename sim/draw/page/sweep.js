/* sweep.js - many runs: a heat map over two inputs, curves over one, and the front of those that none other beats. */
(() => {
    const heatFigure = ({rows, inputs, figures, by, top}) => {
        const state = {x: inputs[1] || inputs[0], y: inputs[1] ? inputs[0] : null, figure: by};
        let plot;
        const change = (key) => (v) => {
            state[key] = v;
            figure.redraw();
        };
        const figure = dl.figure({
            id: "heat",
            short: "Heat map",
            title: `Dark is best: ${dl.inputsOf(top, inputs)}`,
            what: "Each cell has the best of its points over all other inputs.",
            build: (p, tools) => {
                plot = p;
                tools.append(
                    dl.choice("figure", figures, state.figure, change("figure")),
                    dl.choice("across", inputs, state.x, change("x")));
                if (state.y) tools.append(dl.choice("down", inputs, state.y, change("y")));
            },
            draw: (svg, width) => dl.drawHeat(svg, width, plot, rows, state, inputs),
        });
    };

    const curvesFigure = ({rows, done, inputs, figures, by}) => {
        const numeric = inputs.filter((i) => done.every((r) => typeof r[i] === "number")),
              first = numeric.includes("devices") ? "devices" : numeric[0];
        if (!first) return;
        const state = {
            x: first,
            figure: figures.includes("samples_per_s") ? "samples_per_s" : by,
            by: inputs.find((i) => i !== first),
            chosen: new Set(),
            names: []
        };
        const says = () => `How far ${dl.named(state.figure)} follows ${state.x}`;
        let plot, legend = dl.make("ul", {class: "legend"});
        const list = () => {
            state.chosen.clear();
            state.names = state.by ? dl.valuesOf(done, state.by).map(String) : [""];
            const next = dl.seriesLegend(state.by ? state.names : [], state.chosen, () => figure.redraw());
            legend.replaceWith(next);
            legend = next;
        };
        const change = (key) => (v) => {
            state[key] = v;
            list();
            figure.retitle(says());
            figure.redraw();
        };
        const figure = dl.figure({
            id: "scaling",
            short: "Scaling",
            title: says(),
            what:
                "The best of the points at each place, a curve for each value of the input in the legend. Axes are logarithmic where values span a factor of 30 or more.",
            build: (p, tools) => {
                plot = p;
                tools.append(
                    dl.choice("figure", figures, state.figure, change("figure")),
                    dl.choice("over", numeric, state.x, change("x")));
                if (state.by) tools.append(dl.choice("curves", inputs, state.by, change("by")));
                p.before(legend);
                list();
            },
            draw: (svg, width) => dl.drawCurves(svg, width, plot, rows, state, inputs),
        });
    };

    const tableOf = (rows, inputs, figures, name) => dl.table(
        ["point", ...inputs, ...figures.map((f) => dl.right(dl.named(f)))],
        rows.map((r) => [r.point, ...inputs.map((i) => r[i]), ...figures.map((f) => dl.right(dl.by(f)(r[f])))]), name);

    const frontFigure = ({done, inputs, figures}) => {
        const state = {x: "peak_bytes", y: "samples_per_s"};
        if (!figures.includes(state.x) || !figures.includes(state.y)) return;
        const known = () => done.filter((r) => r[state.x] != null && r[state.y] != null),
              front = () => dl.front(known(), state.x, state.y);
        const says = () => `${dl.count(front().length)} of ${
            dl.count(known().length)} points are on the front: no other is better in both`;
        let plot;
        const change = (key) => (v) => {
            state[key] = v;
            figure.retitle(says());
            figure.redraw();
        };
        const figure = dl.figure({
            id: "pareto",
            short: "Pareto front",
            title: says(),
            what:
                "Every point that fits; joined are those that no other point beats in one of the two figures without being worse in the other.",
            build: (p, tools) => {
                plot = p;
                tools.append(
                    dl.choice("across", figures, state.x, change("x")), dl.choice("up", figures, state.y, change("y")));
            },
            draw: (svg, width) => dl.drawFront(svg, width, plot, known(), state, inputs),
            table: () => tableOf(front(), inputs, figures),
        });
    };

    const bestFigure = ({done, inputs, figures, by}) => {
        const order = (a, b) =>
                  (dl.isBetter(by, a[by], b[by])     ? -1 :
                       dl.isBetter(by, b[by], a[by]) ? 1 :
                                                       a.point - b.point),
              some = done.slice().sort(order).slice(0, 50);
        dl.figure({
            id: "best",
            short: "Best points",
            title: `The ${some.length} best points by ${dl.named(by)}`,
            build: (p) =>
                p.append(dl.make("div", {class: "scroll", tabindex: "0"}, tableOf(some, inputs, figures, "wide")))
        });
    };

    const head = (data, {rows, inputs, figures, by, top}) => {
        const statuses = d3.rollups(rows, (v) => v.length, (r) => r.status).sort((a, b) => b[1] - a[1]);
        dl.head(
            "dlsim sweep",
            top ? `${data.name}: the best ${dl.named(by)} is ${dl.by(by)(top[by])}` :
                  `${data.name}: no point ended with an answer`,
            (top ? `With ${dl.inputsOf(top, inputs)}. ` : "") +
                `${dl.count(rows.length)} points over ${inputs.length} inputs: ${inputs.join(", ")}.`,
            [
                ...statuses.map(([s, n]) => [s.replace(/-/g, " "), dl.count(n), "points"]),
                ...(top ? figures.filter((f) => f !== by)
                              .slice(0, 3)
                              .map((f) => [dl.named(f) + " of the best", dl.by(f)(top[f])]) :
                          [])
            ]);
    };

    dl.views.sweep = (data) => {
        const rows = data.rows.map((r) => Object.fromEntries(data.columns.map((c, i) => [c, r[i]]))),
              done = rows.filter((r) => r.status === "done");
        const figures = data.figures.filter((f) => f !== "fits" && done.some((r) => typeof r[f] === "number"));
        const sweep = {rows, done, figures, inputs: data.varying, by: data.by, top: dl.bestOf(done, data.by)};
        head(data, sweep);
        if (!sweep.top) return;
        if (data.varying.length) heatFigure(sweep);
        curvesFigure(sweep);
        frontFigure(sweep);
        bestFigure(sweep);
    };
})();
