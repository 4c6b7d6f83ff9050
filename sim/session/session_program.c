/* session_program.c - the programs that a session plays: those of its strategy, or of a file. */
#include "sim/session/session.h"

struct dl_step dl_session_step(const struct dl_session *s)
{
    return s->program_text ? s->program.step : dl_lowered_step(&s->lowered, &s->job.setting);
}

/* The report tells it by the stages and replicas of the strategy. */
static enum dl_status check_program(struct dl_session *s)
{
    const struct dl_step mine = dl_session_step(s), strategy_s = dl_lowered_step(&s->lowered, &s->job.setting);
    const bool is_alike =
        dl_ranks_count(mine.ranks, mine.stages) == dl_ranks_count(strategy_s.ranks, strategy_s.stages) &&
        dl_ranks_count(mine.ranks, mine.replicas) == dl_ranks_count(strategy_s.ranks, strategy_s.replicas) &&
        dl_ranks_count(mine.ranks, dl_ranks_all(mine.ranks)) == s->job.n_devices &&
        mine.n_servers == strategy_s.n_servers;
    if (is_alike) return DL_OK;
    return dl_fail(&s->err, DL_IMPOSSIBLE, s->request.program,
                   "must have the ranks, stages, replicas and servers of the strategy, which has %u ranks",
                   s->job.n_devices);
}

enum dl_status dl_session_read_program(struct dl_session *s)
{
    const size_t most_bytes = (size_t)1 << 30;
    char *text;
    size_t bytes;
    if (!s->request.program || dl_read_file(s->request.program, most_bytes, &text, &bytes, &s->err))
        return s->err.status;
    s->program_text = dl_arena_string(s->arena, text);
    const enum dl_status status = dl_step_read(text, s->request.program, s->arena, &s->program, &s->err);
    dl_free(text);
    return status ? status : check_program(s);
}
