#include "sim/session/session_pictures.h"

#include "sim/draw/gantt.h"
#include "sim/draw/run_page.h"

static const char *why_loads_are_unknown(const struct dl_session *s)
{
    if (s->report.links.simulated_s > 0) return NULL;
    if (dl_session_engine(s)->alone) return "Loads are not known: the analytic engine puts nothing on links.";
    return "Loads are not known: some collectives were priced without contention, which --fidelity step simulates.";
}

static struct dl_run_picture picture_of(const struct dl_session *s)
{
    return (struct dl_run_picture){.report = &s->report,
                                   .timeline = s->timeline,
                                   .load = {.topology = s->machine.topology,
                                            .devices = s->device_of_rank,
                                            .n_devices = s->job.n_devices + s->job.setting.servers,
                                            .links = s->loads,
                                            .n_links = s->n_loads,
                                            .seconds = s->report.links.simulated_s,
                                            .unknown = why_loads_are_unknown(s)}};
}

enum dl_status dl_session_draw(struct dl_session *s, const char *picture, const char *path)
{
    const struct dl_run_picture all = picture_of(s);
    return dl_draw_run(&all, picture ? picture : dl_run_pictures[0], path, &s->err);
}

enum dl_status dl_session_write_page(struct dl_session *s, const struct dl_asked *asked, const char *path)
{
    const struct dl_json docs[] = {s->machine.system_doc, s->device_doc,   s->machine.transport_doc,
                                   s->software_doc,       s->workload_doc, s->strategy_doc};
    const struct dl_run_page page = {.picture = picture_of(s),
                                     .answer = dl_answer(asked, dl_run_report_json(&s->report)),
                                     .docs = docs,
                                     .n_docs = DL_COUNT(docs),
                                     .arena = s->arena};
    return dl_run_page_write(path, &page, &s->err);
}

void dl_session_draw_in_terminal(const struct dl_session *s)
{
    const struct dl_training_result *const r = &s->report.result;
    dl_gantt_print(&(struct dl_gantt){
        .timeline = s->timeline, .from_s = r->end_s - r->step_s, .to_s = r->end_s, .terminal = dl_terminal_now()});
}
