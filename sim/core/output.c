#define _GNU_SOURCE /* mkostemp */
#include "sim/core/output.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- where a name leads ---- */

/* Of a name such as /dev/fd/3, to which /dev/stdout leads: a file by that name is not the place to write to, because
 * the shell that opened it may have written before. -1: it is none. */
static int own_descriptor(const char *path)
{
    static const char *const folders[] = {"/proc/self/fd/", "/dev/fd/"};
    if (strcmp(path, "-") == 0) return STDOUT_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const size_t length = strlen(folders[i]);
        if (strncmp(path, folders[i], length)) continue;
        char *end;
        const long number = strtol(path + length, &end, 10);
        if (end > path + length && !*end && number >= 0 && number <= INT_MAX) return (int)number;
    }
    return -1;
}

static size_t folder_length(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The name at the end of a chain of links, where a file need not be. 0, or an error number. */
static int follow(const char *path, char target[DL_LONGEST_PATH])
{
    enum { most_links = 40 };
    char link[DL_LONGEST_PATH];
    if (snprintf(target, DL_LONGEST_PATH, "%s", path) >= DL_LONGEST_PATH) return ENAMETOOLONG;
    for (int i = 0; own_descriptor(target) < 0; i++) {
        const ssize_t length = readlink(target, link, sizeof link - 1);
        if (length < 0) return errno == EINVAL || errno == ENOENT ? 0 : errno; /* no link, or nothing yet */
        if (i == most_links) return ELOOP;
        link[length] = '\0';
        const size_t kept = *link == '/' ? 0 : folder_length(target);
        if (kept + (size_t)length >= DL_LONGEST_PATH) return ENAMETOOLONG;
        memcpy(target + kept, link, (size_t)length + 1);
    }
    return 0;
}

struct target {
    char path[DL_LONGEST_PATH]; /* behind all links */
    int own;                    /* descriptor, or -1 */
    bool is_there;
    struct stat info; /* if it is there */
};

/* 0, or an error number. */
static int look(const char *path, struct target *t)
{
    *t = (struct target){.own = -1};
    const int wrong = follow(path, t->path);
    if (wrong) return wrong;
    t->own = own_descriptor(t->path);
    t->is_there = (t->own >= 0 ? fstat(t->own, &t->info) : stat(path, &t->info)) == 0;
    return t->is_there || (t->own < 0 && errno == ENOENT) ? 0 : errno;
}

static bool is_file(const struct target *t) { return t->own < 0 && (!t->is_there || S_ISREG(t->info.st_mode)); }

static void folder_of(const struct target *t, char folder[DL_LONGEST_PATH])
{
    const size_t length = folder_length(t->path);
    snprintf(folder, DL_LONGEST_PATH, "%.*s", length ? (int)length : 1, length ? t->path : ".");
}

const char *dl_why_not_written(const char *path)
{
    struct target t;
    char folder[DL_LONGEST_PATH];
    const int wrong = look(path, &t);
    if (wrong) return strerror(wrong);
    if (t.own >= 0) return NULL;
    if (t.is_there && S_ISDIR(t.info.st_mode)) return strerror(EISDIR);
    if (t.is_there && access(path, W_OK)) return strerror(errno);
    folder_of(&t, folder);
    return is_file(&t) && access(folder, W_OK | X_OK) ? strerror(errno) : NULL;
}

/* /dev/null holds any number of outputs. */
static bool swallows(const struct target *t)
{
    struct stat null;
    return t->is_there && S_ISCHR(t->info.st_mode) && !stat("/dev/null", &null) && null.st_rdev == t->info.st_rdev;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Of files that are not there yet. */
static bool will_be_same(const struct target *a, const struct target *b)
{
    char x[DL_LONGEST_PATH], y[DL_LONGEST_PATH];
    struct stat in_a, in_b;
    folder_of(a, x);
    folder_of(b, y);
    return strcmp(a->path + folder_length(a->path), b->path + folder_length(b->path)) == 0 && !stat(x, &in_a) &&
           !stat(y, &in_b) && is_same(&in_a, &in_b);
}

bool dl_is_same_file(const char *a, const char *b)
{
    struct target x, y;
    if (look(a, &x) || look(b, &y)) return strcmp(a, b) == 0;
    if (swallows(&x)) return x.own >= 0 && x.own == y.own; /* standard output, wherever it goes */
    if (x.is_there && y.is_there) return is_same(&x.info, &y.info);
    return x.is_there == y.is_there && will_be_same(&x, &y);
}

/* ---- what is removed if a signal ends the program ---- */

static const int endings[] = {SIGINT, SIGTERM, SIGHUP};
enum { n_endings = sizeof endings / sizeof *endings };
static char unfinished[DL_LONGEST_PATH];
static struct sigaction before[n_endings];

static void remove_and_end(int signal_number)
{
    unlink(unfinished);
    raise(signal_number); /* by now with its usual effect */
}

static sigset_t block_endings(void)
{
    sigset_t set, old;
    sigemptyset(&set);
    for (int i = 0; i < n_endings; i++) sigaddset(&set, endings[i]);
    sigprocmask(SIG_BLOCK, &set, &old);
    return old;
}

/* Signals that the program or whoever started it handles or ignores (nohup) stay so. */
static void guard(const char *path)
{
    assert(!*unfinished);
    strcpy(unfinished, path);
    for (int i = 0; i < n_endings; i++) {
        const struct sigaction action = {.sa_handler = remove_and_end, .sa_flags = SA_RESETHAND};
        sigaction(endings[i], NULL, &before[i]);
        if (before[i].sa_handler == SIG_DFL) sigaction(endings[i], &action, NULL);
    }
}

static void unguard(void)
{
    for (int i = 0; i < n_endings; i++)
        if (before[i].sa_handler == SIG_DFL) sigaction(endings[i], &before[i], NULL);
    *unfinished = '\0';
}

/* ---- writing ---- */

static const char *open_as_it_is(struct dl_output *o, const char *path, int own)
{
    if (own == STDOUT_FILENO)
        o->stream = stdout;
    else
        o->stream = own >= 0 ? fdopen(dup(own), "wb") : fopen(path, "wb");
    return o->stream ? NULL : strerror(errno);
}

/* As a new file would have, or as the one has that is replaced. */
static void set_mode(int file, const struct stat *old)
{
    const mode_t mask = umask(0);
    umask(mask);
    const bool keeps_owner = old && fchown(file, old->st_uid, old->st_gid) == 0;
    const mode_t mode = old ? old->st_mode & (keeps_owner ? 07777 : 0777) : 0666 & ~mask;
    if (fchmod(file, mode)) return; /* a file system without modes */
}

static const char *open_beside(struct dl_output *o, const struct stat *old)
{
    const size_t folder = folder_length(o->target);
    const int length = snprintf(o->temporary, DL_LONGEST_PATH, "%.*s.dlsim-XXXXXX", (int)folder, o->target);
    if (length >= DL_LONGEST_PATH) return strerror(ENAMETOOLONG);
    const sigset_t old_mask = block_endings();
    const int file = mkostemp(o->temporary, O_CLOEXEC);
    const int wrong = errno;
    if (file >= 0) guard(o->temporary);
    sigprocmask(SIG_SETMASK, &old_mask, NULL);
    if (file < 0) return strerror(wrong);
    set_mode(file, old);
    o->stream = fdopen(file, "wb");
    if (o->stream) return NULL;
    close(file);
    unlink(o->temporary);
    unguard();
    return strerror(ENOMEM);
}

const char *dl_output_open(struct dl_output *o, const char *path)
{
    struct target t;
    *o = (struct dl_output){0};
    const char *const refusal = dl_why_not_written(path);
    if (refusal) return refusal;
    const int wrong = look(path, &t);
    if (wrong) return strerror(wrong);
    if (!is_file(&t)) return open_as_it_is(o, path, t.own);
    strcpy(o->target, t.path);
    return open_beside(o, t.is_there ? &t.info : NULL);
}

const char *dl_output_close(struct dl_output *o, bool is_whole)
{
    const bool has_failed = ferror(o->stream) != 0;
    const char *wrong = fflush(o->stream) || has_failed ? strerror(errno) : NULL;
    if (o->stream != stdout && fclose(o->stream) && !wrong) wrong = strerror(errno);
    if (!*o->temporary) return wrong;
    if (is_whole && !wrong && rename(o->temporary, o->target)) wrong = strerror(errno);
    if (!is_whole || wrong) unlink(o->temporary);
    unguard();
    return wrong;
}
