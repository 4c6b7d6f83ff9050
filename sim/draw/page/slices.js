/* slices.js - the slices of a run: columns of numbers, ordered by track and time, and the kernels inside of them. */
(() => {
    const column = (text, Type) => (text ? Type.from(text.split(" "), Number) : new Type(0));
    const streamOf = (track) => ["compute", "sends", "collectives"][(track - 1) >> 16];

    /* Tracks in the order of their first slices, and where the slices of each begin. */
    const order = (stage, replica, track) => {
        const number = new Map(), tracks = [], of = new Uint32Array(stage.length);
        for (let i = 0; i < stage.length; i++) {
            const key = (stage[i] * 4096 + replica[i]) * 262144 + track[i];
            if (!number.has(key)) {
                number.set(key, tracks.length);
                tracks.push({i: tracks.length, stage: stage[i], replica: replica[i], stream: streamOf(track[i]), n: 0});
            }
            of[i] = number.get(key);
            tracks[of[i]].n++;
        }
        const first = new Uint32Array(tracks.length + 1), place = new Uint32Array(stage.length);
        tracks.forEach((t, k) => {
            first[k + 1] = first[k] + t.n;
        });
        const next = first.slice();
        for (let i = 0; i < stage.length; i++) place[next[of[i]]++] = i;
        return {tracks, first, place};
    };

    dl.readSlices = (t) => {
        const {tracks, first, place} =
            order(column(t.stage, Uint32Array), column(t.replica, Uint32Array), column(t.track, Uint32Array));
        const ordered = (text, Type) => {
            const all = column(text, Type);
            return place.length ? Type.from(place, (i) => all[i]) : all;
        };
        const s = {
            n: place.length,
            tracks,
            first,
            kinds: t.kinds,
            names: t.names,
            replicas: t.replicas,
            from: ordered(t.from, Float64Array),
            to: ordered(t.length, Float64Array),
            kind: ordered(t.kind, Uint8Array),
            name: ordered(t.name, Uint32Array),
            part: ordered(t.part, Int32Array),
            pace: ordered(t.pace, Float64Array),
            lead: ordered(t.lead, Float64Array),
            stretch: ordered(t.stretch, Float64Array)
        };
        for (let i = 0; i < s.n; i++) s.to[i] += s.from[i];

        s.kindOf = (i) => t.kinds[s.kind[i]];
        s.nameOf = (i) => t.names[s.name[i]];
        s.trackOf = (i) => tracks[d3.bisectRight(first, i) - 1];

        /* The first of the track that ends after a moment. */
        s.firstAfter = (track, moment) => {
            let low = first[track], high = first[track + 1];
            while (low < high) {
                const middle = (low + high) >> 1;
                if (s.to[middle] <= moment)
                    low = middle + 1;
                else
                    high = middle;
            }
            return low;
        };

        /* The kernels of a slice: host and device side by side, as the simulator has it (dl_template_fuse). */
        s.kernelsOf = (i) => {
            let launched = s.lead[i], at = 0;
            return s.part[i] < 0 ? [] : t.parts[s.part[i]].map(([name, cause, host, device, isNetwork]) => {
                launched += host * s.pace[i];
                const from = Math.max(at, launched);
                at = from + device * (isNetwork ? 1 : s.pace[i]);
                return {
                    name: t.kernels[name],
                    cause: t.causes[cause],
                    from: Math.min(s.from[i] + from * s.stretch[i], s.to[i]),
                    to: Math.min(s.from[i] + at * s.stretch[i], s.to[i])
                };
            });
        };
        return s;
    };
})();
