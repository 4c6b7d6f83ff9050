/* bars.js - a bar for each stage, made of parts: what causes and memory have in common. */
(() => {
    /* stages: [{stage, parts: [{name, value, colour}]}]; spell tells a value. Returns the scale and where it ends. */
    dl.stageBars = (svg, width, stages, most, spell) => {
        const left = 62, row = Math.max(7, Math.min(22, 420 / stages.length)), gap = row > 9 ? 2 : 1;
        const x = d3.scaleLinear().domain([0, most]).range([left, width - 4]);
        let free = -1;
        stages.forEach(({stage, parts}, i) => {
            let from = 0;
            for (const p of parts) {
                const place = {
                    x: x(from),
                    y: i * row,
                    height: row - gap,
                    width: Math.max(0, x(from + p.value) - x(from) - 0.5),
                    fill: p.colour
                };
                dl.putTitled(svg, "rect", place, `stage ${stage}, ${p.name}: ${spell(p.value)}`);
                from += p.value;
            }
            if (i * row < free) return;
            dl.put(svg, "text", {x: left - 8, y: i * row + row / 2 + 3, "text-anchor": "end"}, "stage " + stage);
            free = i * row + 15;
        });
        return {x, bottom: stages.length * row};
    };
})();
