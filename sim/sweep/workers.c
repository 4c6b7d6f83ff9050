#define _GNU_SOURCE /* fork, pipe2, strsignal */
#include "sim/sweep/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/core/clock.h"
#include "sim/core/memory.h"
#include "sim/engine/simgrid.h"

enum { most_of_a_batch = 256 };
static const double batch_s = 0.25, tick_s = 0.2;

struct worker {
    pid_t child;
    uint64_t *points; /* its batch */
    size_t n_points, n_finished;
    bool is_inside; /* a point has begun and not ended */
    double begun_s; /* when */
    char *text;     /* what has come of a line */
    size_t n_text, capacity;
};

struct crowd {
    const struct dl_workers_request *request;
    struct dl_error *err;
    struct worker *workers;
    struct pollfd *pipes; /* of the workers */
    size_t n_running, n_started, n_done;
    uint64_t *again; /* points of processes that ended before them */
    size_t n_again, again_capacity;
    double spent_s; /* by the points that are done */
    double ticked_s;
};

void dl_workers_tick(const struct dl_workers_request *q, double *ticked_s, size_t n_done, struct dl_error *err)
{
    if (dl_clock_s() - *ticked_s < tick_s || err->status) return;
    *ticked_s = dl_clock_s();
    q->tick(q->user, n_done, err);
}

/* ---- signals ---- */

static volatile sig_atomic_t stopped_by;

static void note_signal(int signal) { stopped_by = signal; }

static const int stopping[] = {SIGINT, SIGTERM, SIGHUP};

static void catch_signals(struct sigaction *before)
{
    const struct sigaction noting = {.sa_handler = note_signal};
    stopped_by = 0;
    for (size_t i = 0; i < DL_COUNT(stopping); i++) sigaction(stopping[i], &noting, &before[i]);
}

static void restore_signals(const struct sigaction *before)
{
    for (size_t i = 0; i < DL_COUNT(stopping); i++) sigaction(stopping[i], &before[i], NULL);
}

/* ---- in the child ---- */

static void send_line(FILE *to, json_t *value)
{
    if (json_dumpf(value, to, JSON_COMPACT) || fputc('\n', to) == EOF || fflush(to)) _exit(EXIT_FAILURE);
    json_decref(value);
}

static void end_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(EXIT_FAILURE);
}

struct begun {
    uint64_t point;
    double begun_s;
    void *opened;
    FILE *out;
};

static void send_result(const struct begun *b, json_t *result)
{
    json_object_set_new(result, "point", json_integer((json_int_t)b->point));
    json_object_set_new(result, "seconds", json_real(dl_clock_s() - b->begun_s));
    send_line(b->out, result);
}

/* As its own child did, so that the parent sees it. */
static void end_like(int status)
{
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    if (status) _exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
}

static void run_in_a_child(const struct dl_workers_request *q, const struct begun *b)
{
    const pid_t worker = getpid(), child = fork();
    int status = 0;
    if (child < 0) {
        send_result(b, json_pack("{ss s+}", "status", "failed", "reason", "no process for it: ", strerror(errno)));
        return;
    }
    if (child == 0) {
        end_with(worker);
        send_result(b, q->run(b->opened));
        _exit(EXIT_SUCCESS);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    end_like(status);
}

/* It is over with its parent, and the terminal's signals are for the parent to answer. */
static void work(const struct dl_workers_request *q, const struct worker *w, int to, pid_t parent)
{
    end_with(parent);
    for (size_t i = 0; i < DL_COUNT(stopping); i++) signal(stopping[i], SIG_IGN);
    FILE *const out = fdopen(to, "w");
    if (!out) _exit(EXIT_FAILURE);
    for (size_t i = 0; i < w->n_points; i++) {
        struct begun b = {.point = w->points[i], .begun_s = dl_clock_s(), .out = out};
        send_line(out, json_pack("{sI}", "begins", (json_int_t)b.point));
        b.opened = q->open(q->user, b.point);
        if (q->stands_alone(b.opened))
            run_in_a_child(q, &b);
        else
            send_result(&b, q->run(b.opened));
        q->close(b.opened);
    }
    _exit(EXIT_SUCCESS); /* without the exit handlers of the parent */
}

/* ---- batches ---- */

/* As many as take about a quarter of a second, as far as is known. */
static size_t batch_size(const struct crowd *c)
{
    const double each_s = c->n_done ? c->spent_s / (double)c->n_done : batch_s;
    const double fair = (double)(c->request->n_points - c->n_done) / (2.0 * (double)c->request->n_workers);
    const double n = each_s > 0 ? batch_s / each_s : most_of_a_batch;
    const double most = n < fair ? n : fair;
    return most < 1 ? 1 : most > most_of_a_batch ? most_of_a_batch : (size_t)most;
}

static bool next_point(struct crowd *c, uint64_t *point)
{
    if (c->n_again) {
        *point = c->again[--c->n_again];
        return true;
    }
    if (c->n_started == c->request->n_points) return false;
    *point = c->request->points[c->n_started++];
    return true;
}

static void give_back(struct crowd *c, uint64_t point)
{
    DL_GROW(c->again, c->n_again, c->again_capacity);
    c->again[c->n_again++] = point;
}

static void fill_batch(struct crowd *c, struct worker *w)
{
    const size_t most = batch_size(c);
    uint64_t point;
    w->points = dl_alloc(most * sizeof *w->points);
    while (w->n_points < most && next_point(c, &point)) w->points[w->n_points++] = point;
}

static bool start_worker(struct crowd *c)
{
    struct worker w = {0};
    int ends[2];
    fill_batch(c, &w);
    if (!w.n_points) {
        dl_free(w.points);
        return false;
    }
    const pid_t parent = getpid();
    fflush(NULL); /* or the child would print it again */
    const bool has_pipe = pipe2(ends, O_CLOEXEC) == 0;
    w.child = has_pipe ? fork() : -1;
    if (w.child == 0) {
        close(ends[0]);
        work(c->request, &w, ends[1], parent);
    }
    if (has_pipe) close(ends[1]);
    if (w.child < 0) {
        if (has_pipe) close(ends[0]);
        for (size_t i = w.n_points; i-- > 0;) give_back(c, w.points[i]);
        dl_free(w.points);
        if (!c->n_running) dl_fail(c->err, DL_STALLED, NULL, "no process for a point: %s", strerror(errno));
        return false;
    }
    c->workers[c->n_running] = w;
    c->pipes[c->n_running++] = (struct pollfd){.fd = ends[0], .events = POLLIN};
    return true;
}

/* ---- results ---- */

static void take_result(struct crowd *c, struct worker *w, json_t *result)
{
    w->is_inside = false;
    w->n_finished++;
    c->n_done++;
    c->spent_s += json_number_value(json_object_get(result, "seconds"));
    if (!c->err->status) c->request->take(c->request->user, result, c->err);
}

static void take_line(struct crowd *c, struct worker *w, const char *line, size_t bytes)
{
    json_t *const value = json_loadb(line, bytes, 0, NULL);
    if (json_object_get(value, "begins")) {
        w->is_inside = true;
        w->begun_s = dl_clock_s();
    } else if (value) {
        take_result(c, w, value);
    }
    json_decref(value);
}

static void take_lines(struct crowd *c, struct worker *w)
{
    size_t taken = 0;
    for (char *end; (end = memchr(w->text + taken, '\n', w->n_text - taken));) {
        take_line(c, w, w->text + taken, (size_t)(end - w->text) - taken);
        taken = (size_t)(end - w->text) + 1;
    }
    memmove(w->text, w->text + taken, w->n_text - taken);
    w->n_text -= taken;
}

/* Whether there may be more: the pipe of a child that has ended has an end. */
static bool receive(struct crowd *c, size_t which)
{
    enum { piece = 65536 };
    struct worker *const w = &c->workers[which];
    w->text = dl_reserve(w->text, w->n_text + piece, &w->capacity, 1);
    const ssize_t part = read(c->pipes[which].fd, w->text + w->n_text, piece);
    if (part < 0) return errno == EINTR || errno == EAGAIN;
    w->n_text += (size_t)part;
    take_lines(c, w);
    return part > 0;
}

/* The point inside which the process ended has this for its result. */
static void put_failure(struct crowd *c, struct worker *w, const char *status, const char *reason)
{
    json_t *const result = json_pack("{sI ss ss sf}", "point", (json_int_t)w->points[w->n_finished], "status", status,
                                     "reason", reason, "seconds", dl_clock_s() - w->begun_s);
    take_result(c, w, result);
    json_decref(result);
}

static void judge_end(struct crowd *c, struct worker *w, int status, const char *timed_out)
{
    char reason[120];
    if (stopped_by || w->n_finished == w->n_points) return;
    if (timed_out) {
        put_failure(c, w, "timed-out", timed_out);
        return;
    }
    if (WIFSIGNALED(status))
        snprintf(reason, sizeof reason, "its process ended by signal %d, %s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(reason, sizeof reason, "its process ended with exit code %d before the result", WEXITSTATUS(status));
    if (!w->is_inside) w->begun_s = dl_clock_s();
    put_failure(c, w, "failed", reason);
}

static void end_worker(struct crowd *c, size_t which, const char *timed_out)
{
    struct worker *const w = &c->workers[which];
    int status = 0;
    close(c->pipes[which].fd);
    while (waitpid(w->child, &status, 0) < 0 && errno == EINTR) continue;
    judge_end(c, w, status, timed_out);
    while (w->n_points > w->n_finished) give_back(c, w->points[--w->n_points]);
    dl_free(w->points);
    dl_free(w->text);
    c->n_running--;
    c->workers[which] = c->workers[c->n_running];
    c->pipes[which] = c->pipes[c->n_running];
}

static void end_late_ones(struct crowd *c)
{
    char reason[80];
    for (size_t i = c->n_running; i-- > 0;) {
        const struct worker *const w = &c->workers[i];
        if (!w->is_inside || dl_clock_s() - w->begun_s <= c->request->limit_s) continue;
        snprintf(reason, sizeof reason, "it took more than %g s", c->request->limit_s);
        kill(w->child, SIGKILL);
        end_worker(c, i, reason);
    }
}

static void wait_for_some(struct crowd *c)
{
    const double limit_s = c->request->limit_s < tick_s ? c->request->limit_s : tick_s;
    if (poll(c->pipes, c->n_running, (int)(1000 * limit_s) + 1) > 0)
        for (size_t i = c->n_running; i-- > 0;) /* from the end, because the last takes the place of one that ended */
            if (c->pipes[i].revents && !receive(c, i)) end_worker(c, i, NULL);
    end_late_ones(c);
    dl_workers_tick(c->request, &c->ticked_s, c->n_done, c->err);
}

static void end_all(struct crowd *c)
{
    for (size_t i = c->n_running; i-- > 0;) {
        kill(c->workers[i].child, SIGKILL);
        while (receive(c, i)) continue;                 /* what was finished counts */
        stopped_by = stopped_by ? stopped_by : SIGTERM; /* the point inside which it is killed has no result */
        end_worker(c, i, NULL);
    }
}

int dl_workers_run(const struct dl_workers_request *request, struct dl_error *err)
{
    struct sigaction before[DL_COUNT(stopping)];
    struct crowd c = {.request = request,
                      .err = err,
                      .workers = dl_alloc(request->n_workers * sizeof *c.workers),
                      .pipes = dl_alloc(request->n_workers * sizeof *c.pipes)};
    if (request->simulates) dl_simgrid_load();
    catch_signals(before);
    while (!err->status && !stopped_by && c.n_done < request->n_points) {
        while (c.n_running < request->n_workers && start_worker(&c)) continue;
        if (c.n_running) wait_for_some(&c);
    }
    const int signal = stopped_by;
    end_all(&c);
    restore_signals(before);
    if (!err->status) request->tick(request->user, c.n_done, err);
    dl_free(c.workers);
    dl_free(c.pipes);
    dl_free(c.again);
    return signal;
}

int (*dl_sweep_workers)(const struct dl_workers_request *, struct dl_error *) = dl_workers_run;
