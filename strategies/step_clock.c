#include "strategies/step_clock.h"

#include <math.h>

struct side_by_side {
    double device_s, host_s;
};

static void add_times(const struct dl_template *t, double times, struct side_by_side *sum)
{
    for (size_t i = 0; i < t->n_instructions; i++) {
        const double n = times * (double)dl_template_times(t, i);
        sum->device_s += n * t->instructions[i].device_s;
        sum->host_s += n * t->instructions[i].host_s;
    }
}

/* The host runs ahead, so a step takes the longer of both. What stages wait for each other is longer than a governor
 * looks back, and does not count. */
static double elapsed_s(const struct dl_setting *setting, const struct dl_lowered *l)
{
    struct side_by_side sum = {0};
    for (uint32_t i = 0; i < l->n_positions; i++)
        for (int kind = 0; kind <= DL_ITEM_W; kind++) add_times(&l->positions[i].items[kind], setting->micros, &sum);
    for (uint32_t stage = 0; stage < dl_n_stages(setting); stage++) add_times(&l->programs[stage].end, 1, &sum);
    return fmax(sum.device_s, sum.host_s);
}

struct dl_draw dl_step_draw_sum(const struct dl_step_draw *draw, enum dl_bound bound, const struct dl_setting *setting)
{
    struct dl_draw all = draw->end[bound];
    dl_draw_add(&all, &draw->micro[bound], setting->micros);
    return all;
}

double dl_step_clock(const struct dl_power *power, const struct dl_setting *setting, const struct dl_lowered *l,
                     const struct dl_step_draw *draw)
{
    struct dl_draw all = {0};
    for (int bound = 0; bound < DL_N_BOUNDS; bound++) {
        const struct dl_draw some = dl_step_draw_sum(draw, (enum dl_bound)bound, setting);
        dl_draw_add(&all, &some, 1);
    }
    return dl_power_clock(power, &all, fmax(elapsed_s(setting, l) - all.seconds, 0));
}
