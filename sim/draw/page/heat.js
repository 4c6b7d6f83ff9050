/* heat.js - a sweep over two inputs: each cell has the best of its points over all other inputs, dark is best. */
(() => {
    const colour = d3.interpolateRgb("#ecf2f8", "#0c4a80");

    const frame = (svg, place, xs, ys, state) => {
        const {left, cell, high, top} = place;
        let free = left;
        dl.put(svg, "text", {class: "soft", x: left, y: 12}, state.x);
        if (state.y) dl.put(svg, "text", {class: "soft", x: 0, y: top - 8}, dl.cut(state.y, left - 10));
        xs.forEach((v, i) => {
            const text = dl.cut(String(v), Math.max(cell * 1.6, 30)), at = left + (i + 0.5) * cell,
                  half = dl.textWidth(text) / 2;
            if (at - half < free - 6) return;
            dl.put(svg, "text", {x: at, y: top - 8, "text-anchor": "middle"}, text);
            free = at + half + 10;
        });
        ys.forEach(
            (v, i) => dl.put(
                svg, "text", {x: left - 8, y: top + (i + 0.5) * high + 4, "text-anchor": "end"},
                dl.cut(String(v), left - 8)));
    };

    /* share: 1 for the best, 0 for the worst; null where no point has an answer. */
    const drawCell = (svg, place, {x, y, rows, best, share}, state, tip, inputs) => {
        const {left, cell, high, top} = place,
                                 g = dl.put(svg, "g", {transform: `translate(${left + x * cell},${top + y * high})`});
        const text = best                                 ? dl.by(state.figure)(best[state.figure]) :
            rows.some((r) => r.status === "does-not-fit") ? "does not fit" :
                                                            rows[0].status;
        const box = dl.put(g, "rect", {
            width: cell - 2,
            height: high - 2,
            fill: best ? colour(share) : "#fff",
            stroke: best ? "none" : "#d9dbde"
        });
        const ink = best ? (share > 0.5 ? "#fff" : "#1c1c1c") : "#8b9097",
              n = rows.filter((r) => r.status === "done").length;
        if (dl.textWidth(text) < cell - 6)
            dl.put(
                g, "text",
                {x: cell / 2 - 1, y: high / 2 + 3, "text-anchor": "middle", style: `fill:${ink};pointer-events:none`},
                text);
        dl.hover(
            box, tip,
            (event) => tip.show(
                event, best ? `${dl.named(state.figure)}: ${text}` : text, dl.inputsOf(best || rows[0], inputs),
                `${n} of ${rows.length} points have an answer`));
    };

    dl.drawHeat = (svg, width, plot, rows, state, inputs) => {
        const xs = dl.valuesOf(rows, state.x), ys = state.y ? dl.valuesOf(rows, state.y) : [""],
              tip = plot.tip || (plot.tip = dl.tip(plot));
        const left = Math.min(width / 3, 16 + d3.max([state.y || "", ...ys], (v) => dl.textWidth(String(v)))),
              high = Math.max(18, Math.min(34, 480 / ys.length)), top = 40;
        const place = {left, high, top, cell: Math.min(110, (width - left - 2) / xs.length)};
        const cells =
            d3.groups(rows, (r) => r[state.x], (r) => (state.y ? r[state.y] : ""))
                .flatMap(([xv, of]) => of.map(([yv, some]) => ({
                                                  x: xs.indexOf(xv),
                                                  y: ys.indexOf(yv),
                                                  rows: some,
                                                  best: dl.bestOf(some.filter((r) => r.status === "done"), state.figure)
                                              })));
        const extent = d3.extent(cells.filter((c) => c.best), (c) => c.best[state.figure]),
              ends = dl.largerIsBetter(state.figure) ? extent : extent.reverse();
        const share = (v) => (ends[0] === ends[1] ? 1 : (v - ends[0]) / (ends[1] - ends[0]));
        frame(svg, place, xs, ys, state);
        for (const c of cells)
            drawCell(svg, place, {...c, share: c.best && share(c.best[state.figure])}, state, tip, inputs);
        dl.size(svg, width, top + ys.length * high + 8);
    };
})();
