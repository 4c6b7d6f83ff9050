/* points.js - the points of a sweep: which is better, the best of some, what an input takes, and the Pareto front. */
(() => {
    const larger = new Set(["samples_per_s", "tokens_per_s", "mfu", "hfu"]);
    dl.isBetter = (figure, a, b) => (larger.has(figure) ? a > b : a < b);
    dl.largerIsBetter = (figure) => larger.has(figure);
    dl.bestOf = (rows, figure) =>
        rows.reduce((a, b) => (!a || dl.isBetter(figure, b[figure], a[figure]) ? b : a), null);
    dl.inputsOf = (row, inputs) => inputs.map((i) => `${i} ${row[i]}`).join(", ");

    /* Numbers by size, names as they come. */
    dl.valuesOf = (rows, input) => {
        const all = [...new Set(rows.map((r) => r[input]))];
        return all.every((v) => typeof v === "number") ? all.sort(d3.ascending) : all;
    };

    /* Those that no other point beats in one figure without being worse in the other, from the best in x on. */
    dl.front = (rows, x, y) => {
        const order = (a, b) =>
                  (a[x] !== b[x]                  ? (dl.isBetter(x, a[x], b[x]) ? -1 : 1) :
                       a[y] === b[y]              ? 0 :
                       dl.isBetter(y, a[y], b[y]) ? -1 :
                                                    1),
              front = [];
        for (const r of rows.slice().sort(order))
            if (!front.length || dl.isBetter(y, r[y], front[front.length - 1][y])) front.push(r);
        return front;
    };

    /* Logarithmic where values span a factor of 30 or more. */
    dl.scaleOf = ([least, most], range) =>
        (least > 0 && most / least >= 30 ? d3.scaleLog().base(2) : d3.scaleLinear())
            .domain(least === most ? [least * 0.9, most * 1.1 + 1e-12] : [least, most])
            .range(range);
    dl.tickOf = (figure) => (v) =>
        (dl.unitOf(figure) === "%" ? d3.format("~g")(Math.round(1000 * v) / 10) : d3.format(".3~s")(v));
})();
