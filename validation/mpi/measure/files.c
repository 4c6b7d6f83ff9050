/* files.c - what was measured, as JSON: figures with intervals, and the files that dlsim reads. */
#include <math.h>

#include "validation/mpi/measure/measure.h"

static json_t *line_json(const struct dl_line *l)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "latency_s", l->intercept, "latency_s_pm", l->intercept_pm,
                     "bandwidth_bytes_per_s", 1 / l->slope, "s_per_byte", l->slope, "s_per_byte_pm", l->slope_pm);
}

static json_t *table(const struct dl_measured *m)
{
    json_t *const rows = json_array();
    for (size_t i = 0; i < m->messages.n; i++)
        json_array_append_new(rows, json_pack("[f, f, f]", m->messages.bytes[i], m->messages.seconds[i],
                                              dl_message_s(&m->fitted, m->messages.bytes[i])));
    return json_pack("{s:[s, s, s], s:o}", "columns", "bytes", "measured_s", "fitted_s", "rows", rows);
}

json_t *dl_measured_json(const struct dl_measured *m)
{
    json_t *const all = json_pack("{s:s, s:i, s:o, s:o}", "schema", "dlsim/measured/1", "ranks", m->n_ranks, "messages",
                                  table(m), "small", line_json(&m->fitted.small));
    if (m->fitted.two_ways) json_object_set_new(all, "large", line_json(&m->fitted.large));
    json_object_set_new(all, "small_until_bytes", json_real(m->fitted.small_until_bytes));
    if (m->fitted.pieces_above_bytes > 0) {
        json_object_set_new(all, "pieces", line_json(&m->fitted.pieces));
        json_object_set_new(all, "pieces_above_bytes", json_real(m->fitted.pieces_above_bytes));
    }
    json_object_set_new(all, "reduction_s_per_byte", json_real(m->reduction_s_per_byte));
    json_object_set_new(all, "pack_s_per_byte", json_real(m->pack_s_per_byte));
    json_object_set_new(all, "gemm_flop_per_s", json_real(m->gemm_flop_per_s));
    json_object_set_new(all, "slowest_over_mean", json_real(m->slowest_over_mean));
    json_object_set_new(all, "gemm_alone_flop_per_s", json_real(m->gemm_alone_flop_per_s));
    return all;
}

/* ---- dlsim's files ---- */

/* With the interval of 95 %; where noise leaves it without an end there is none. */
static json_t *fact(const char *source, double low, double high)
{
    json_t *const out = json_pack("{s:s, s:s}", "grade", "measured", "source", source);
    if (!isfinite(low) || !isfinite(high) || low < 0) return out;
    json_object_set_new(out, "low", json_real(low));
    json_object_set_new(out, "high", json_real(high));
    return out;
}

/* Of what is `scale` times the bandwidth of a line. */
static json_t *rate_fact(const struct dl_line *l, double scale, double most)
{
    const double fastest = l->slope > l->slope_pm ? 1 / (l->slope - l->slope_pm) : INFINITY;
    return fact("ping-pong between pairs of ranks, all at once", fmin(scale / (l->slope + l->slope_pm), most),
                fmin(scale * fastest, most));
}

static const struct dl_line *fastest_line(const struct dl_message_fit *f)
{
    const struct dl_line *const whole = f->small.slope < f->large.slope ? &f->small : &f->large;
    return f->pieces_above_bytes > 0 && f->pieces.slope < whole->slope ? &f->pieces : whole;
}

json_t *dl_measured_system(const struct dl_measured *m, const char *device, const char *transport)
{
    json_t *const facts = json_pack("{s:s, s:o}", "latency_s", "derived: all of it is in the transport file",
                                    "bandwidth_bytes_per_s", rate_fact(fastest_line(&m->fitted), 1, INFINITY));
    json_t *const part =
        json_pack("{s:s, s:s, s:s, s:f, s:f, s:o}", "kind", "switch", "name", "memory", "link", "shm",
                  "bandwidth_bytes_per_s", dl_message_bytes_per_s(&m->fitted), "latency_s", 0.0, "facts", facts);
    json_t *const node = json_pack("{s:s, s:i, s:[o], s:{s:s}}", "device", device, "devices", m->n_ranks, "parts", part,
                                   "facts", "devices", "measured: as many ranks were busy");
    return json_pack("{s:s, s:s, s:i, s:s, s:{s:s}, s:o}", "schema", "dlsim/system/1", "source",
                     "ranks of one host that exchange messages through shared memory, measured by dlsim-measure",
                     "nodes", 1, "transport", transport, "facts", "nodes", "derived: one host by definition", "node",
                     node);
}

static json_t *latency_fact(const struct dl_line *l)
{
    return fact("ping-pong between pairs of ranks, all at once", fmax(l->intercept - l->intercept_pm, 0),
                l->intercept + l->intercept_pm);
}

static json_t *family(const struct dl_line *l)
{
    return json_pack("{s:f, s:{s:o}}", "direct_s", l->intercept, "facts", "direct_s", latency_fact(l));
}

static json_t *above(const struct dl_message_fit *f)
{
    const double best = dl_message_bytes_per_s(f);
    return json_pack("{s:f, s:f, s:f, s:{s:s, s:o, s:o}}", "bytes", f->pieces_above_bytes, "bandwidth_fraction",
                     fmin(1 / f->pieces.slope / best, 1), "direct_s", f->pieces.intercept, "facts", "bytes",
                     "derived: MPI was told so", "bandwidth_fraction", rate_fact(&f->pieces, 1 / best, 1), "direct_s",
                     latency_fact(&f->pieces));
}

static json_t *protocol(const struct dl_measured *m, const char *name, const struct dl_line *l)
{
    const double best = dl_message_bytes_per_s(&m->fitted);
    json_t *const out =
        json_pack("{s:s, s:f, s:o, s:o, s:{s:o}}", "name", name, "bandwidth_fraction", fmin(1 / l->slope / best, 1),
                  "peer", family(l), "tree", family(l), "facts", "bandwidth_fraction", rate_fact(l, 1 / best, 1));
    if (m->fitted.pieces_above_bytes > 0) json_object_set_new(out, "above", above(&m->fitted));
    return out;
}

json_t *dl_measured_transport(const struct dl_measured *m)
{
    json_t *const protocols = json_pack("[o]", protocol(m, "eager", &m->fitted.small));
    if (m->fitted.two_ways) json_array_append_new(protocols, protocol(m, "rendezvous", &m->fitted.large));
    return json_pack("{s:s, s:s, s:b, s:f, s:f, s:{s:s}, s:{s:f, s:{s:s}}, s:o}", "schema", "dlsim/transport/1",
                     "source", "messages between ranks of one host, measured by dlsim-measure", "adds_wire_latency", 1,
                     "reduction_s_per_byte", m->reduction_s_per_byte, "pack_s_per_byte", m->pack_s_per_byte, "facts",
                     "*", "measured: with all ranks busy", "efficiency", "*", 1.0, "facts", "*",
                     "derived: the bandwidth of the links is an achieved one", "protocols", protocols);
}
