/* page.js - the head of the page and its figures, by the command that made it. Comes last. */
(() => {
    const data = dl.data, make = dl.make;

    dl.head = (kicker, title, lead, facts) => {
        document.title = "dlsim: " + title;
        document.getElementById("head").append(
            make("p", {class: "kicker"}, kicker), make("h1", {}, title), make("p", {class: "lead"}, lead),
            make(
                "dl", {class: "facts"},
                ...facts.map(
                    ([name, value, more]) => make(
                        "div", {}, make("dt", {}, name),
                        make("dd", {}, value, more ? make("small", {}, more) : null)))));
    };
    dl.ways = (i) =>
        Object.entries(i.ways || {}).filter(([, n]) => n > 1).map(([name, n]) => `${n}-way ${name}`).join(", ") ||
        "one device";

    const run = () => {
        const a = data.answer, i = a.inputs;
        const interval = a.step_s_low ? `95 %: ${dl.seconds(a.step_s_low)} to ${dl.seconds(a.step_s_high)}` :
                                        i.engine + ", " + i.fidelity;
        dl.head(
            "dlsim run", `${i.workload} on ${dl.count(i.devices)} × ${i.device}: a step takes ${dl.seconds(a.step_s)}`,
            `${i.strategy} on ${i.topology}: ${dl.ways(i)}; ${
                dl.count(i.global_batch)} samples a step in micro-batches of ${dl.count(i.microbatch)}, ${
                i.precision}, with ${i.software}.`,
            [
                ["step", dl.seconds(a.step_s), interval],
                ["model FLOP/s utilization", dl.percent(a.mfu), "hardware: " + dl.percent(a.hfu)],
                [
                    "throughput",
                    dl.number(a.tokens_per_s || a.samples_per_s) + (a.tokens_per_s ? " tokens/s" : " samples/s"),
                    dl.flops(a.model_flop_per_device_s) + " a device"
                ],
                [
                    "peak memory", dl.bytes(d3.max(a.memory_bytes, (m) => m.peak)),
                    a.fits ? "fits" + (i.device_memory_bytes ? " into " + dl.bytes(i.device_memory_bytes) : "") :
                             "does not fit"
                ],
                [
                    "exposed communication",
                    dl.percent(
                        d3.sum(
                            ["tensor", "sequence", "context", "expert", "pipeline", "data"],
                            (c) => a.causes[c].exposed) /
                        a.step_s),
                    "of the step"
                ]
            ]);
        for (const view of ["timeline", "causes", "memory", "machine", "numbers"]) dl.views[view](data);
    };

    const pages = {run, compare: dl.views.compare, sweep: dl.views.sweep, validate: dl.views.validation};
    pages[data.view](data);
    document.getElementById("foot").append(
        `Made by dlsim ${data.version}; it holds all it needs and loads nothing. Drawn with d3 ${
            d3.version}, by Mike Bostock (BSD 3-Clause licence).`);
})();
