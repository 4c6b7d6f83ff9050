/* collective_command.c - dlsim collective: its options, and one size or many. */
#include <math.h>

#include "sim/app/collective_run.h"
#include "sim/app/collective_sizes.h"
#include "sim/app/commands.h"
#include "sim/collective/shapes.h"
#include "sim/draw/pictures.h"
#include "sim/session/fidelities.h"

static const char *const ops[] = {"allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "reduce",
                                  "gather",    "scatter",   "barrier",       "sendrecv", "shift",     "halo",
                                  NULL};

static const struct dl_option options[] = {
    {"topo", DL_OPT_TEXT, offsetof(struct dl_collective_request, topo), true, 0, 0, NULL,
     "the machine: a name of `dlsim list topologies`, or a file"},
    {"op", DL_OPT_CHOICE, offsetof(struct dl_collective_request, op), true, 0, 0, ops, "the operation"},
    {"bytes", DL_OPT_BYTES, offsetof(struct dl_collective_request, bytes), false, 0, 1e18, NULL,
     "size of the buffer as nccl-tests counts it; k, M, G or Ki, Mi, Gi may follow; a barrier has none"},
    {"sizes", DL_OPT_SIZES, offsetof(struct dl_collective_request, sizes), false, 1, 1e18, NULL,
     "in place of --bytes: a table over sizes and algorithms with the fastest and the cross-overs; two sizes a decade, "
     "or N"},
    {"algo", DL_OPT_TEXT, offsetof(struct dl_collective_request, algo), false, 0, 0, NULL,
     "a name of `dlsim list collectives`; auto, the fastest, if absent; of --sizes several with commas between, all if "
     "absent"},
    {"protocol", DL_OPT_TEXT, offsetof(struct dl_collective_request, protocol), false, 0, 0, NULL,
     "of the transport; auto if absent"},
    {"transport", DL_OPT_TEXT, offsetof(struct dl_collective_request, transport), false, 0, 0, NULL,
     "the communication library, in place of the machine's"},
    {"devices", DL_OPT_COUNT, offsetof(struct dl_collective_request, devices), false, 1, 2147483647.0, NULL,
     "how many take part; all if absent"},
    {"chunks", DL_OPT_COUNT, offsetof(struct dl_collective_request, chunks), false, 1, 65536, NULL,
     "pieces that follow each other along one path; as the transport does if absent"},
    {"payload", DL_OPT_TEXT, offsetof(struct dl_collective_request, payload), false, 0, 0, NULL,
     "dense, quantized:BITS or topk:RATIO; dense if absent"},
    {"placement", DL_OPT_TEXT, offsetof(struct dl_collective_request, placement), false, 0, 0, NULL,
     "packed, even, spread, random or list:DEVICE,...; packed if absent"},
    {"seed", DL_OPT_COUNT, offsetof(struct dl_collective_request, seed), false, 0, 9007199254740992.0, NULL,
     "seed of --placement random; 0 if absent"},
    {"engine", DL_OPT_CHOICE, offsetof(struct dl_collective_request, engine), false, 0, 0, dl_engine_names,
     "how time is simulated; simgrid if absent, analytic with --sizes"},
    {"fidelity", DL_OPT_CHOICE, offsetof(struct dl_collective_request, fidelity), false, 0, 0, dl_fidelities,
     "messages one by one, or as flows; step if absent, except for pipelined trees and sums made by switches"},
    {"scenario", DL_OPT_TEXT, offsetof(struct dl_collective_request, scenario), false, 0, 0, NULL,
     "a file of links that slow down, fail and come back"},
    {"json", DL_OPT_OUTPUT, offsetof(struct dl_collective_request, json), false, 0, 0, NULL,
     "the answer for programs too; - is standard output, in place of the text"},
    {"svg", DL_OPT_OUTPUT, offsetof(struct dl_collective_request, svg), false, 0, 0, NULL,
     "draw who sends to whom in which step, and links by load; - is standard output, in place of the text"},
    {"picture", DL_OPT_CHOICE, offsetof(struct dl_collective_request, picture), false, 0, 0, dl_collective_pictures,
     "which picture --svg draws; all on one sheet if absent"},
    {"links", DL_OPT_FLAG, offsetof(struct dl_collective_request, links), false, 0, 0, NULL,
     "the ten links with the highest load, in the text too"},
    {"explain", DL_OPT_FLAG, offsetof(struct dl_collective_request, explain), false, 0, 0, NULL,
     "the formula with its numbers put in, their sources, and why the simulation differs from it"},
    {"set", DL_OPT_TEXTS, offsetof(struct dl_collective_request, set), false, 0, 0, NULL,
     "override a value of the machine or its transport: topo.nodes=4, transport.reduction_s_per_byte=0; may be "
     "repeated"},
};

static void answer_one(struct dl_collective_run *r, struct dl_error *err)
{
    if (dl_collective_choose(r, err)) return;
    r->report.fluid = r->estimator.fluid || dl_folds_always(&r->choice.collective);
    dl_collective_find_time(r, dl_collective_engine(r), err);
    if (!err->status) dl_collective_tell(r, err);
}

/* ---- over sizes ---- */

static double simulate_choice(void *user, const struct dl_choice *choice, struct dl_error *err)
{
    struct dl_collective_run *const r = user;
    r->choice = *choice;
    r->report.fluid = r->estimator.fluid || dl_folds_always(&choice->collective);
    dl_collective_find_time(r, dl_collective_engine(r), err);
    return r->report.result.time_s;
}

static void answer_sizes(struct dl_collective_run *r, struct dl_error *err)
{
    struct dl_sizes sizes = {0};
    struct dl_sizes_request request = {.estimator = &r->estimator,
                                       .range = r->request.sizes,
                                       .simulate = dl_collective_engine(r)->alone ? NULL : simulate_choice,
                                       .user = r};
    if (!dl_collective_wish(r, &request.wish, err) && !dl_sizes_find(&request, r->arena, &sizes, err))
        dl_collective_tell_sizes(r, &sizes, err);
    dl_assumptions_release(&sizes.assumptions);
}

/* Nothing that is asked for in vain. */
static enum dl_status check_together(const struct dl_collective_request *q, struct dl_error *err)
{
    if (q->picture && !q->svg) return dl_fail(err, DL_IMPOSSIBLE, "--picture", "needs --svg FILE to draw to");
    if (!dl_collective_has_sizes(q)) return DL_OK;
    if (!isnan(q->bytes)) return dl_fail(err, DL_SYNTAX, "--bytes", "is one size; leave it out with --sizes");
    if (dl_op_named(q->op) == DL_BARRIER) return dl_fail(err, DL_IMPOSSIBLE, "--sizes", "a barrier has none");
    const char *const of_one = q->links      ? "--links"
                               : q->explain  ? "--explain"
                               : q->scenario ? "--scenario"
                               : q->svg      ? "--svg"
                                             : NULL;
    return of_one ? dl_fail(err, DL_IMPOSSIBLE, of_one, "is for one collective; use --bytes in place of --sizes")
                  : DL_OK;
}

static void answer(struct dl_collective_run *r, struct dl_error *err)
{
    struct dl_collective_request *const q = &r->request;
    if (!q->engine)
        q->engine = dl_collective_has_sizes(q) ? dl_engine_names[dl_engine_sharing_count()] : dl_engine_names[0];
    if (check_together(q, err) || dl_collective_open(r, err) || dl_collective_read_scenario(r, err)) return;
    if (dl_collective_has_sizes(q))
        answer_sizes(r, err);
    else
        answer_one(r, err);
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct dl_collective_run r = {
        .request = {.algo = "auto", .protocol = "auto", .payload = "dense", .placement = "packed", .bytes = NAN},
        .arena = dl_arena_new()};
    if (!dl_read_options(argc, argv, options, DL_COUNT(options), &r.request, NULL, err)) answer(&r, err);
    dl_estimator_release(&r.estimator);
    dl_shapes_free(r.group.shapes);
    dl_assumptions_release(&r.report.assumptions);
    dl_explanation_release(&r.explanation);
    dl_machine_close(&r.machine);
    json_decref(r.scenario_doc.value);
    dl_free(r.device);
    dl_free(r.loads);
    dl_arena_free(r.arena);
    return 0;
}

const struct dl_command dl_command_collective = {
    .name = "collective",
    .doc = "simulate one collective operation",
    .usage = "collective --topo T --op OP --bytes N|--sizes FROM:TO [--algo NAME|auto] [--devices N] [--json FILE|-] "
             "[--set PATH=JSON]...",
    .run = run,
    .options = options,
    .n_options = DL_COUNT(options),
};
