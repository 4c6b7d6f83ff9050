#define _GNU_SOURCE /* fork, pipe, poll, strsignal */
#include "sim/session/pool.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/core/clock.h"
#include "sim/core/memory.h"
#include "sim/engine/simgrid.h"
#include "sim/report/progress.h"

struct worker {
    pid_t child;
    size_t job, n_received;
    double begun_s;
    bool is_late;
};

struct pool {
    const struct dl_pool_request *request;
    char *results;
    struct dl_error *errors;
    struct worker *workers;
    struct pollfd *pipes; /* of the workers */
    size_t n_running, n_started, n_done;
    bool is_in_vain; /* one was late, and all should be in time */
};

/* ---- in the child ---- */

static void send_result(int to, const char *result, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t part = write(to, result + done, bytes - done);
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0) _exit(EXIT_FAILURE); /* nobody waits for it any more */
        done += (size_t)part;
    }
}

static void work(const struct dl_pool_request *q, size_t job, int to)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody would wait for the result of a batch job that was killed */
    char *const result = dl_alloc(q->result_bytes);
    q->run(q->user, job, result);
    send_result(to, result, q->result_bytes);
    _exit(EXIT_SUCCESS); /* without the exit handlers of the parent */
}

/* ---- in the parent ---- */

/* False: no process can be had now. */
static bool start_job(struct pool *p)
{
    const size_t job = p->n_started;
    int ends[2];
    fflush(NULL); /* or the child would print it again */
    const bool has_pipe = pipe(ends) == 0;
    const pid_t child = has_pipe ? fork() : -1;
    if (child == 0) {
        close(ends[0]);
        work(p->request, job, ends[1]);
    }
    if (has_pipe) close(ends[1]);
    if (child < 0) {
        if (has_pipe) close(ends[0]);
        return false;
    }
    p->n_started++;
    p->workers[p->n_running] = (struct worker){.child = child, .job = job, .begun_s = dl_clock_s()};
    p->pipes[p->n_running++] = (struct pollfd){.fd = ends[0], .events = POLLIN};
    return true;
}

/* As many as may be at once, or as there can be: those that run make room for the next. */
static void start_jobs(struct pool *p, size_t n_workers)
{
    while (p->n_running < n_workers && p->n_started < p->request->n_jobs) {
        if (p->is_in_vain) {
            dl_fail(&p->errors[p->n_started++], DL_LATE, NULL, "was not started after one that was late");
            p->n_done++;
            continue;
        }
        if (start_job(p)) continue;
        if (p->n_running) return;
        dl_fail(&p->errors[p->n_started++], DL_STALLED, NULL, "no process for it: %s", strerror(errno));
        p->n_done++;
    }
}

static void judge_end(struct pool *p, const struct worker *w, int status)
{
    struct dl_error *const err = &p->errors[w->job];
    if (w->is_late)
        dl_fail(err, DL_LATE, NULL, "took longer than %g s", p->request->limit_s);
    else if (WIFSIGNALED(status))
        dl_fail(err, DL_STALLED, NULL, "its process ended by signal %d, %s", WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) || w->n_received < p->request->result_bytes)
        dl_fail(err, DL_STALLED, NULL, "its process ended with exit code %d before the result", WEXITSTATUS(status));
    if (err->status) memset(p->results + w->job * p->request->result_bytes, 0, p->request->result_bytes);
}

static void end_job(struct pool *p, size_t which)
{
    int status = 0;
    close(p->pipes[which].fd);
    while (waitpid(p->workers[which].child, &status, 0) < 0 && errno == EINTR) continue;
    judge_end(p, &p->workers[which], status);
    p->is_in_vain |= p->request->all_in_time && p->workers[which].is_late;
    p->n_running--;
    p->n_done++;
    p->workers[which] = p->workers[p->n_running];
    p->pipes[which] = p->pipes[p->n_running];
}

/* Whether there may be more: the pipe of a child that has ended has an end. */
static bool receive(struct pool *p, size_t which)
{
    struct worker *const w = &p->workers[which];
    const size_t bytes = p->request->result_bytes;
    char extra = 0; /* after the result comes nothing but the end */
    const bool complete = w->n_received == bytes;
    char *const place = complete ? &extra : p->results + w->job * bytes + w->n_received;
    const ssize_t part = read(p->pipes[which].fd, place, complete ? 1 : bytes - w->n_received);
    if (part < 0) return errno == EINTR || errno == EAGAIN;
    if (!complete) w->n_received += (size_t)part;
    return part > 0;
}

/* Ends those that are late; milliseconds until the next will be, -1: none will. */
static int end_late(struct pool *p)
{
    const double limit_s = p->request->limit_s, most_s = 1e6; /* that poll can count */
    double left_s = most_s;
    for (size_t i = 0; i < p->n_running && limit_s > 0; i++) {
        struct worker *const w = &p->workers[i];
        const double its_s = w->begun_s + limit_s - dl_clock_s();
        if (its_s <= 0 && !w->is_late) w->is_late = kill(w->child, SIGKILL) == 0;
        if (!w->is_late) left_s = fmin(left_s, its_s);
    }
    return limit_s > 0 ? (int)ceil(1e3 * left_s) : -1;
}

static void wait_for_some(struct pool *p)
{
    if (poll(p->pipes, p->n_running, end_late(p)) < 0) return; /* a signal; ask again */
    for (size_t i = p->n_running; i-- > 0;) /* from the end, because the last takes the place of one that ended */
        if (p->pipes[i].revents && !receive(p, i)) end_job(p, i);
}

size_t dl_pool_processors(void)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors > 0 ? (size_t)processors : 1;
}

size_t dl_pool_workers(const struct dl_pool_request *q)
{
    const size_t wanted = q->n_workers ? q->n_workers : dl_pool_processors();
    return wanted < q->n_jobs ? wanted : q->n_jobs;
}

void dl_pool_run(const struct dl_pool_request *request, void *results, struct dl_error *errors)
{
    const size_t n_workers = dl_pool_workers(request);
    struct pool p = {.request = request,
                     .results = results,
                     .errors = errors,
                     .workers = dl_alloc(n_workers * sizeof *p.workers),
                     .pipes = dl_alloc(n_workers * sizeof *p.pipes)};
    memset(results, 0, request->n_jobs * request->result_bytes);
    memset(errors, 0, request->n_jobs * sizeof *errors);
    if (request->simulates) dl_simgrid_load();
    while (p.n_done < request->n_jobs) {
        start_jobs(&p, n_workers);
        if (p.n_running) wait_for_some(&p);
        if (request->what) dl_progress_jobs(p.n_done, request->n_jobs, request->what);
    }
    if (request->what) dl_progress_end();
    dl_free(p.workers);
    dl_free(p.pipes);
}

enum dl_status dl_pool_check(const struct dl_pool_request *request, const struct dl_error *errors, const char *where,
                             struct dl_error *err)
{
    size_t n_lost = 0, first = 0;
    for (size_t i = 0; i < request->n_jobs; i++)
        if (errors[i].status && !n_lost++) first = i;
    if (!n_lost) return DL_OK;
    return dl_fail(err, DL_STALLED, where, "%zu of %zu runs were lost, so there is no answer; of the first %s", n_lost,
                   request->n_jobs, errors[first].text);
}
