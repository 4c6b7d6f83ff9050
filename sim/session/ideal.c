#include "sim/session/ideal.h"

#include <math.h>

#include "sim/cost/device_models.h"

/* Every kernel takes what its arithmetic or its bytes take at the peak. */
static void idealize_compute(struct dl_device *d)
{
    d->model = &dl_device_roofline;
    d->options = dl_device_roofline.defaults;
    d->measured = NULL;
    d->power = NULL;
    d->launch_s = 0;
}

static void idealize_protocol(struct dl_protocol *p)
{
    for (int family = 0; family < DL_N_FAMILIES; family++) {
        p->start_s[family] = 0;
        p->pump_bytes_per_s[family] = INFINITY;
        for (int reach = 0; reach < DL_N_REACHES; reach++) p->step_s[family][reach] = p->above.step_s[reach] = 0;
    }
    p->network_s = 0;
}

static void idealize_network(struct dl_machine *m)
{
    const double as_good_as_any = 1e6; /* on the bandwidth: infinity would not be a number of seconds for no bytes */
    struct dl_transport *const t = &m->transport;
    for (size_t i = 0; i < t->n_protocols; i++) idealize_protocol(&t->protocols[i]);
    t->fill = t->drain = t->reduction_s_per_byte = t->pack_s_per_byte = 0;
    for (size_t i = 0; i < m->topology->n_links; i++) {
        m->topology->links[i].latency_s = 0;
        m->bytes_per_s[i] *= as_good_as_any;
    }
}

void dl_session_idealize(struct dl_session *s)
{
    const unsigned ideal = s->request.ideal;
    if (ideal & 1U << DL_PART_COMPUTE) idealize_compute(&s->device);
    if (ideal & 1U << DL_PART_NETWORK) idealize_network(&s->machine);
    if (ideal & 1U << DL_PART_HOST) dl_software_slow_hosts(&s->software, 0);
}
