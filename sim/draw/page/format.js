/* format.js - the data of the page, and numbers for people: three figures that count and a fitting prefix. */
const dl = {
    data: JSON.parse(document.getElementById("data").textContent),
    views: {}
};

(() => {
    const three = (x) => {
        if (x === 0) return "0";
        const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(x))));
        if (Math.abs(x) >= 1e3 && Math.abs(x) < 1e12)
            return d3.format(",.0f")(Math.abs(x) < 1e6 ? x : Number(x.toPrecision(3)));
        return Math.abs(x) >= 1e12 || Math.abs(x) < 1e-4 ? x.toPrecision(3) :
                                                           d3.format(",." + Math.min(digits, 20) + "f")(x);
    };
    const prefixed = (unit, steps) => (x) => {
        if (x == null || !isFinite(x)) return "–";
        const [size, prefix] =
            steps.find(([s]) => Math.abs(x) >= s * 0.9995) || (x ? steps[steps.length - 1] : [1, ""]);
        return three(x / size) + "\u00a0" + prefix + unit;
    };
    const up = [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];

    dl.number = (x) => (x == null || !isFinite(x) ? "–" : three(x));
    dl.count = (x) => (x == null ? "–" : d3.format(",")(x));
    dl.percent = (x, digits = 1) => (x == null || !isFinite(x) ? "–" : (100 * x).toFixed(digits) + "\u00a0%");
    dl.signed = (x, digits = 1) =>
        (x == null || !isFinite(x) ? "–" : (x < 0 ? "−" : "+") + Math.abs(100 * x).toFixed(digits) + "\u00a0%");
    dl.bytes = prefixed("B", up);
    dl.rate = prefixed("B/s", up);
    dl.flops = prefixed("FLOP/s", up);
    dl.seconds = prefixed("s", [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]]);

    /* By the unit that ends a key: step_s, peak_bytes, mfu. */
    dl.unitOf = (key) => /bytes_per_s$/.test(key) ? "B/s" :
        /flop.*_s$/.test(key)                     ? "FLOP/s" :
        /_per_s$/.test(key)                       ? "1/s" :
        /_s(_low|_high)?$/.test(key)              ? "s" :
        /bytes$/.test(key)                        ? "B" :
        /^(mfu|hfu)/.test(key)                    ? "%" :
                                                    "";
    dl.by = (key) => {
        const unit = dl.unitOf(key);
        return {"B/s": dl.rate, "FLOP/s": dl.flops, s: dl.seconds, B: dl.bytes, "%": dl.percent}[unit] ||
            ((x) =>
                 (typeof x === "number" ? (Number.isInteger(x) ? dl.count(x) : dl.number(x)) :
                      x == null         ? "–" :
                                          String(x)));
    };
    dl.named = (key) => key.replace(/_bytes$|_s$(?<!_per_s)/, "").replace(/_per_s$/, " a second").replace(/_/g, " ");
    dl.axisName = (key) => dl.named(key) + (dl.unitOf(key) && !/_per_s$/.test(key) ? ", " + dl.unitOf(key) : "");
})();
