/* training_parts.h - the state of a simulated training step, shared by the files training*.c: lockstep groups, messages
 * between them, communicators. */
#ifndef DL_ENGINE_TRAINING_PARTS_H
#define DL_ENGINE_TRAINING_PARTS_H

#include "sim/core/memory.h"
#include "sim/core/random.h"
#include "sim/engine/exchange.h"
#include "sim/engine/training.h"

/* ---- why a lockstep group is late: see training_delays.h ---- */

/* The causes that can make a lockstep group late: collectives, messages and copies, and work that a scenario has
 * slowed. */
enum { DELAY_STRAGGLER = DL_CAUSE_OFFLOAD - DL_CAUSE_TENSOR + 1, N_DELAYS };

/* How late something is, against the undisturbed step: nothing is slowed, and the network takes no time. */
struct delays {
    double by[N_DELAYS];
    double total_s; /* their sum; below 0 where jitter makes work shorter */
};

/* The start of something that lockstep groups wait for: a message, a collective, the next iteration. */
struct start {
    double begun_s;       /* the last partner came */
    double undisturbed_s; /* and when it would have come in the undisturbed step */
    struct delays delays; /* of the last partner when it came */
    uint32_t n_joined;
};

/* The way from one lockstep group to another: all members' routes in one bundle. */
struct channel {
    const struct dl_hop *hops; /* the estimator keeps them, or the arena */
    size_t n_hops;
    double bytes, latency_s, alone_bytes_per_s;
    double alone_s;   /* of its bytes, at that rate or the one that one message can have */
    uint64_t version; /* of the condition of the links when its hops were found */
    uint64_t n_sent;  /* not yet booked on its links */
    uint32_t to;
    uint32_t line; /* both directions between two lockstep groups are one */
    uint32_t way;  /* the engine's number of it; 0: none yet */
};

/* A part being worked on. What else goes on on the lockstep group's devices changes its rate. */
struct work {
    const struct dl_part *part; /* NULL: the lockstep group waits */
    double pace;                /* seconds over those of the program, but of the network */
    double network_s;           /* of planned_s */
    double host_from_s;         /* when the host began to launch it */
    double since_s, until_s;
    double planned_s;       /* by itself */
    double left_s, timed_s; /* of planned_s, at that date */
    double rate;            /* seconds of planned_s in a second, from then on */
    bool slowed;            /* it was, or is, below 1 */
    uint32_t alarm;         /* timers with other tags are outdated */
};

/* A collective among replicas that a lockstep group has come to. */
struct queued {
    struct communicator *at;
    uint32_t number; /* of the rendezvous there */
};

/* Those that are not done, in the order in which it came to them: each begins when the one before it is done. */
struct queue {
    struct queued *items;
    size_t first, end, capacity;
    struct queued last; /* that is done; at NULL: none yet */
};

struct instances; /* training_instances.h */
struct lockstep_group;
typedef void (*lockstep_fn)(struct dl_training *t, struct lockstep_group *c);

struct lockstep_group {
    struct dl_training *training;
    uint32_t stage, replica, first_rank;
    uint32_t item; /* next one, or being worked on */
    const struct dl_template *running;
    const struct dl_parts *parts; /* of it */
    size_t part;                  /* next one of them */
    double host_s;                /* when the host is through with all that comes before */
    struct work work;
    bool waits_for_input;          /* of the item */
    bool waits_for_others;         /* it has ended its iteration and does not go on by itself */
    bool waits_for_sends;          /* of its own */
    lockstep_fn waits_for_host;    /* what it does then; NULL: it does not wait for it */
    struct communicator *waits_at; /* NULL: it does not wait for a collective */
    uint32_t waits_for;            /* number of the rendezvous there */
    struct communicator *is_in; /* the one of ranks in lockstep, or of two stages, that it takes part in; NULL: none */
    double waits_since_s;
    struct delays delays;        /* as of the end of its last work or wait */
    double item_s;               /* of its item so far, in the undisturbed step */
    double input_s;              /* the input of its item came then; 0: it needs none from others; NAN: no item */
    double owed_s;               /* waiting of this iteration in the undisturbed step that it has not had yet */
    uint32_t n_sends;            /* of the items that make one step and have just ended */
    uint32_t n_undelivered;      /* of its sends */
    uint32_t n_in_flight;        /* messages from and to its devices */
    struct queue queue;          /* of collectives among replicas */
    uint32_t n_beside;           /* those beside layers so far */
    struct communicator *beside; /* these; NULL: none yet */
    uint32_t *arrived;           /* by tag: the message, + 1, until it is worked on */
    uint32_t n_arrived;
    struct channel onward, back;
    uint32_t iteration; /* iterations that it has ended */
    double slowdown;    /* seconds of its work over those of its program */
    gsl_rng *jitter;    /* NULL: none */
    double causes_s[DL_N_CAUSES];
    double elapsed_s[DL_N_PHASES]; /* working or waiting for the host */
};

/* Activations or gradients on their way. */
struct message {
    uint32_t receiver, tag; /* of the receiver */
    uint32_t sender;
    const struct dl_sequenced *item; /* that made it; NULL: it has arrived, or is free */
    double arrives_s;                /* it has arrived then, or will if that is foreseen: see training_ahead.h */
    double posted_s;                 /* of one that is foreseen */
    struct channel *channel;
    struct start sent;
    uint32_t next; /* in its line, or of the free ones */
};

/* Messages of a pair that go one after the other. */
struct line {
    uint32_t first, last; /* the first is on its way */
};

/* A collective that lockstep groups come to, in all of its groups: it begins when all have come and the one before is
 * done. */
struct rendezvous {
    const struct dl_comm *comm;
    uint32_t iteration; /* of who comes to it */
    uint32_t n_running; /* groups */
    struct start
        start; /* of the first since which there was always one of this communicator on the network, up to it */
    double begun_s, ended_s;
    double alone_s; /* by its estimate */
};

/* What is chosen for collectives of this kind and size, for each group. */
struct chosen {
    struct dl_comm comm;
    uint32_t iteration; /* 0 unless pairs are drawn */
    uint32_t n_groups;
    const struct dl_group *groups;
    const struct dl_choice *choices;
    struct dl_choice *own; /* these; NULL: the estimator keeps them */
    uint32_t *by_instance; /* groups, those of each instance together; NULL: there is one */
    uint32_t n_instances;
    bool is_timed;      /* and not played: where one replica is, or all of them would be too much */
    double estimated_s; /* of all groups at once, if it is timed */
    double effort;      /* to play one message by message; 0: it is simulated as flows */
    uint32_t n_starts;  /* in a step */
};

/* Lockstep groups that communicate over one channel: their collectives, in the order in which they come to them, go one
 * after the other. See training_members.c. */
struct communicator {
    enum dl_channel channel;
    uint32_t first, n, stride; /* lockstep groups: the first, and so many more so far apart */
    const uint32_t *replicas;  /* these, of the stage that begins there; NULL: as far apart as said */
    uint32_t instance;         /* of those of its kind */
    struct rendezvous *posted; /* those that were dropped are before them */
    size_t n_posted, posted_capacity;
    uint32_t n_dropped, next; /* the first that is not done */
    bool busy;
    struct chosen *chosen;
    size_t n_chosen, chosen_capacity;
    struct dl_exchange **running, **ended; /* by group; an exchange may not be freed while it reports its end */
    uint32_t n_rooms;                      /* for them */
    struct channel *copies[DL_N_PATHS];    /* on a channel for them: the paths of its lockstep group's devices */
};

/* How often something goes on, to know when at least one of it does. */
struct busy {
    uint32_t n;
    double since_s, total_s;
};

/* How far the members of groups side by side are from the first of all, group by group. */
struct offsets {
    struct dl_members members;
    dl_digits beside;
    uint32_t *ranks; /* NULL: none yet */
};

struct dl_training {
    struct dl_training_request request;
    struct dl_error *err;
    uint32_t n_lockstep_groups, n_stages, n_members;
    uint32_t n_replicas, n_played;          /* all, and those that are simulated */
    uint32_t *members;                      /* ranks in lockstep, from the first of them on */
    uint32_t *ends;                         /* scratch: devices of two lockstep groups */
    struct offsets offsets;                 /* of the groups that were listed last */
    struct lockstep_group *lockstep_groups; /* stage by stage */
    uint32_t *arrived;                      /* of all of them */
    struct communicator *communicators;
    struct instances *instances; /* a kind each */
    uint32_t n_instance_kinds;
    uint32_t *instances_of; /* by call: which kind, + 1; 0: it is of all replicas, or not of replicas */
    uint32_t *latest;       /* by call among replicas and lockstep group: number of its latest rendezvous there, + 1 */
    struct message *messages;
    size_t n_messages, messages_capacity;
    uint32_t free_message;
    struct line *lines;
    struct dl_pace send_pace;
    struct busy sending, exchanging;
    uint32_t n_iterations;
    uint32_t *n_ended; /* by iteration: lockstep groups that are through with it */
    struct start next; /* iteration, of lockstep groups that do not go on by themselves */
    bool slows_work;   /* the scenario has slow lockstep groups or jitter */
    /* By kind of item, of all iterations: their seconds in the undisturbed step, and how many there were. */
    double items_s[DL_ITEM_W + 1];
    uint64_t n_items[DL_ITEM_W + 1];
    double from_s;         /* what was before is not booked: the last iteration begins */
    bool over;             /* the last iteration has ended on all lockstep groups */
    struct steady *steady; /* NULL: all is played; see training_steady.h */
    struct ahead *ahead;   /* NULL: items go event by event; see training_ahead.h */
    bool is_ahead;         /* items are gone through now, and this is the date of what is done with one of them */
    double ahead_s;
    struct dl_training_result result;
};

static inline double now_s(const struct dl_training *t)
{
    return t->is_ahead ? t->ahead_s : t->request.engine->kind->now_s(t->request.engine);
}

static inline void begin_busy(struct dl_training *t, struct busy *b)
{
    if (b->n++ == 0) b->since_s = now_s(t);
}

/* What ends after the last iteration was booked when that ended. */
static inline void end_busy(struct dl_training *t, struct busy *b)
{
    if (--b->n == 0 && !t->over) b->total_s += now_s(t) - b->since_s;
}

/* By rank, from the first of the lockstep group on. */
static inline const uint32_t *devices_from(const struct dl_training *t, const struct lockstep_group *c)
{
    return t->request.device_of_rank + c->first_rank;
}

static inline uint32_t device_of(const struct dl_training *t, const struct lockstep_group *c, uint32_t member)
{
    return devices_from(t, c)[t->members[member]];
}

static inline const struct dl_program *program_of(const struct dl_training *t, const struct lockstep_group *c)
{
    return &t->request.step.programs[c->stage];
}

/* All items are done, and the end of the step comes. */
static inline bool is_at_end(const struct dl_training *t, const struct lockstep_group *c)
{
    return c->item == program_of(t, c)->n_sequence;
}

/* training.c: all lockstep groups begin an iteration. */
void dl_training_begin_all(struct dl_training *t);
/* Go on with the parts of the lockstep group's template; begin with the item, or wait for its input. */
void dl_training_go_on(struct dl_training *t, struct lockstep_group *c);
void dl_training_work(struct dl_training *t, struct lockstep_group *c);
/* Whether the lockstep group waits for this tag. */
bool dl_training_lacks(const struct dl_training *t, const struct lockstep_group *c, uint32_t tag);
/* Where its input comes from; NULL: it needs none from another lockstep group. */
struct lockstep_group *dl_training_source(struct dl_training *t, const struct lockstep_group *c);
/* What a lockstep group sent has come: a message, or DL_OWN_MESSAGE, which the lockstep group hands on to itself. */
#define DL_OWN_MESSAGE (UINT32_MAX - 1)
void dl_training_deliver(struct dl_training *t, uint32_t lockstep_group, uint32_t tag, uint32_t message);
/* The lockstep group goes on after its sends. */
void dl_training_after_sends(struct dl_training *t, struct lockstep_group *c);
/* training_check.c: every wait has its exchange. */
enum dl_status dl_training_check_exchanges(const struct dl_training *t, struct dl_error *err);
/* training_check_stages.c: stages that hold the same come to the same exchanges. */
enum dl_status dl_training_check_stages(const struct dl_training *t, struct dl_error *err);

/* training_sends.c: messages between stages. */
enum dl_status dl_training_open_channels(struct dl_training *t);
void dl_training_close_channels(struct dl_training *t);
void dl_training_send(struct dl_training *t, struct lockstep_group *from, const struct dl_sequenced *item);
void dl_training_message_arrives(void *user, uint32_t id);

/* training_iterations.c */
void dl_training_open_iterations(struct dl_training *t);
void dl_training_close_iterations(struct dl_training *t);
/* The lockstep group is through with its iteration. */
void dl_training_end_iteration(struct dl_training *t, struct lockstep_group *c);

/* training_work.c: parts as stretches of time. When one is done the lockstep group goes on. */
void dl_training_begin_work(struct dl_training *t, struct lockstep_group *c, const struct dl_part *part);
/* What is left of their rate to kernels, by class, with all that goes on beside them. */
struct left {
    double fraction[DL_N_CLASSES];
};
#define ALL_LEFT ((struct left){{1, 1, 1, 1}})
static inline void dl_take(struct left *left, const struct dl_taken *taken)
{
    for (int i = 0; i < DL_N_CLASSES; i++) left->fraction[i] *= 1 - taken->fraction[i];
}
/* Of work whose kernels have so much left. */
static inline double dl_work_rate(const struct dl_part *part, double pace, const struct left *left, double planned_s)
{
    double longer_s = 0;
    for (int i = 0; i < DL_N_CLASSES; i++) longer_s += part->segment.by_class[i] * (1 / left->fraction[i] - 1);
    return 1 / (1 + pace * longer_s / planned_s);
}
void dl_training_part_ends(void *user, uint32_t alarm);
/* An exchange or a message on the lockstep group's devices begins or ends. */
void dl_training_retime(struct dl_training *t, struct lockstep_group *c);
/* Whether the host is not yet through with what comes before; `then` is called when it is. */
bool dl_training_awaits_host(struct dl_training *t, struct lockstep_group *c, lockstep_fn then);

/* training_causes.c: where a lockstep group's time goes. It either works or waits. */
void dl_training_end_work(struct dl_training *t, struct lockstep_group *c);
/* Waiting before the start was for a partner, waiting since then for `cause`, which in the undisturbed step takes
 * undisturbed_s. */
void dl_training_end_wait(struct dl_training *t, struct lockstep_group *c, const struct start *start,
                          enum dl_cause cause, double undisturbed_s);
void dl_training_end_wait_for_host(struct dl_training *t, struct lockstep_group *c);
/* Begin to book anew, and stop: lockstep groups are in the middle of something. */
void dl_training_open_books(struct dl_training *t);
void dl_training_close_books(struct dl_training *t);

/* training_queue.c: collectives among replicas that a lockstep group has started. */
void dl_queued_add(struct queue *q, struct communicator *at, uint32_t number);
/* The first is done. */
void dl_queued_end(struct queue *q);
/* The latest that is not done: at this communicator, or if NULL at any. NULL: there is none. */
const struct queued *dl_queued_latest(const struct queue *q, const struct communicator *at);
static inline const struct queued *dl_queued_first(const struct queue *q)
{
    return q->first < q->end ? &q->items[q->first] : NULL;
}

/* training_members.c */
void dl_training_open_communicators(struct dl_training *t);
void dl_training_close_communicators(struct dl_training *t);
/* Of all replicas of a stage; it also has what is chosen for the collectives of some of them. */
struct communicator *dl_training_replicas(const struct dl_training *t, uint32_t stage);
/* Where the lockstep group has this collective or copy. */
struct communicator *dl_training_communicator(const struct dl_training *t, const struct lockstep_group *c,
                                              const struct dl_comm *comm);
static inline struct lockstep_group *dl_training_member(const struct dl_training *t, const struct communicator *at,
                                                        uint32_t i)
{
    return &t->lockstep_groups[at->first + (at->replicas ? at->replicas[i] : i * at->stride)];
}
/* One among replicas is under way. */
static inline bool is_exchanging(const struct lockstep_group *c)
{
    const struct queued *const first = dl_queued_first(&c->queue);
    return first && first->at->busy;
}

/* training_communicators.c */
/* The lockstep group comes to the start of a collective. */
void dl_training_join(struct dl_training *t, struct lockstep_group *c, const struct dl_comm *comm);
/* Whether the lockstep group may go on; if not it will be called when the collective, or if NULL all that it started
 * among replicas, is done. */
bool dl_training_may_pass(struct dl_training *t, struct lockstep_group *c, const struct dl_comm *comm);
/* Of a lockstep group that waits for a collective: since when that is the network's fault, or the fault of who comes
 * last. */
struct start dl_training_awaited_start(const struct dl_training *t, const struct lockstep_group *c);
const struct rendezvous *dl_training_awaited(const struct lockstep_group *c);
/* What it takes in the undisturbed step. */
double dl_training_undisturbed_s(const struct dl_training *t, const struct communicator *at,
                                 const struct rendezvous *x);
static inline bool is_for_copies(const struct communicator *at) { return at->channel >= DL_CHANNEL_COPIES_OUT; }
static inline bool is_in_lockstep(const struct communicator *at)
{
    return at->channel == DL_CHANNEL_LOCKSTEP || at->channel == DL_CHANNEL_BESIDE;
}
/* What it takes is time of the item, as if it had been priced. */
static inline bool is_within_items(const struct communicator *at) { return is_in_lockstep(at) || is_for_copies(at); }

/* training_coming.c: fetch what the next ends of parts and arrivals of messages need: see struct dl_engine. */
void dl_training_coming(dl_event_fn done, void *user, uint32_t tag, size_t n_before);

/* training_copies.c: refuse copies where devices have no hosts. */
enum dl_status dl_training_check_copies(const struct dl_training *t, struct dl_error *err);
/* Whether some of this channel, or of those after it, are simulated. */
bool dl_training_simulates(const struct dl_training *t, enum dl_channel first);
/* Begin one on all devices of the lockstep group; `done` when all of them have ended. */
void dl_training_start_copy(struct dl_training *t, struct communicator *at, const struct dl_comm *comm,
                            dl_event_fn done);

/* training_choices.c: what is chosen for a collective in an iteration, in all its groups; and time it instead of
 * playing it. */
struct chosen *dl_training_chosen(struct dl_training *t, struct communicator *at, const struct dl_comm *comm,
                                  uint32_t iteration);
void dl_training_time(struct dl_training *t, struct chosen *chosen);

/* training_effort.c: time exchanges that are simulated message by message where all of these are too much. */
void dl_training_limit_effort(struct dl_training *t);

#endif
